"""Whole servers under load from outside."""
