"""One report a module."""
