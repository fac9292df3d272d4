"""Sockets; knows no protocol."""
