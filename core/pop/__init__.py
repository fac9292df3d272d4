"""At-least-once delivery for many consumers of one queue."""
