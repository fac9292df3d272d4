"""Measurements; their figures are printed, never asserted."""
