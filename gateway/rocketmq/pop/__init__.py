"""Consumption by POP: a group's consumers take messages of all its queues, each for a time, and acknowledge them."""
