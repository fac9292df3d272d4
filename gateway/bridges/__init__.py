"""Bridges: sessions of our own broker whose other end is another MQTT broker."""
