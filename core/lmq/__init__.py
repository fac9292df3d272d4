"""Light queues: their names, who they match, and how far each reader is."""
