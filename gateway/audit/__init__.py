"""The audit log: what was told of who did what, as lines of JSON in files that take turns."""
