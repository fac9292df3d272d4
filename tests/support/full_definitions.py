"""A disk without room for definitions, as the store finds it."""

from __future__ import annotations

from core.errors import DiskFullError


def set_room_for_definitions(store, has_room):
    """Let the disk have room for what is written down, or none at all."""
    store.definitions.__dict__.pop("check_room", None)
    if not has_room:
        store.definitions.check_room = _refuse


def _refuse():
    raise DiskFullError("definitions.db")
