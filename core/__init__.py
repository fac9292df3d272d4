"""The broker's heart: the log, light queues, routing and shared consumption; no loop, no socket, no clock."""
