"""Mosquitto's files, read to be settings of the gateway."""
