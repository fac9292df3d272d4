"""Filters of consumers beyond tags: SQL92 over a message's properties."""
