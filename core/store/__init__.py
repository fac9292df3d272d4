"""All bytes on disk: the commit log, its indexes, places and definitions."""
