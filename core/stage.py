"""How far a reader is with one message."""

from __future__ import annotations

from enum import Enum


class Stage(Enum):
    """Where a message stands with a reader; the value is for people."""

    DONE = "done"  # acknowledged, or ended in another way
    TAKEN = "taken"  # a consumer has it, or it waits for a moment
    BACK = "given back"  # it was taken before, and can be taken again
    WAITS = "waits"  # it was never taken
