"""The process itself: its memory, its core dumps, Python's collector, the service manager, what of it is compiled."""
