"""What operators set: names, ranges and defaults, how settings are read, and what changes when they are read again."""
