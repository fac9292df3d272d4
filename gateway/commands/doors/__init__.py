"""Clients of the doors for the commands that publish, subscribe and consume: one module for each protocol.

`choice.open_link` gives the `Link` of a door. Its library may be missing, so it is imported there and not before.
"""
