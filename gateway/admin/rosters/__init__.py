"""Long lists, kept sorted between two questions."""
