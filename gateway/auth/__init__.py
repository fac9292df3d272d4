"""Finds the user of a peer, and what that user may do."""
