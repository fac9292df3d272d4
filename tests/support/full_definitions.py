"""A disk without room for definitions, as the store finds it."""

from __future__ import annotations

from core.errors import DiskFullError


def set_room_for_definitions(store, has_room, *, is_stuck=False):
    """Let the disk have room for what is written down, or for deletions alone; `is_stuck`: not for these."""
    for name in ("check_room", "check_commits"):
        store.definitions.__dict__.pop(name, None)
    if not has_room:
        store.definitions.check_room = _refuse
    if is_stuck:
        store.definitions.check_commits = _refuse


def _refuse(row_bytes=0):
    raise DiskFullError("definitions.db")
