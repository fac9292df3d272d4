"""The operator's door."""
