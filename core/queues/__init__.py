"""What shared queues are told, apart from how they hand out."""
