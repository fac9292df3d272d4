"""What things cost as they grow."""
