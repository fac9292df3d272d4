"""One step of the data path at a time."""
