"""Light queues: their names, what they match, and how far each reader is."""
