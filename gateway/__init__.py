"""Everything that speaks a wire protocol, from either end."""
