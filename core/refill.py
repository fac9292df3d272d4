"""Lists that are emptied and filled again for each batch.

Compiled modules take the inline C form from `refill.pxd`. Use as `from core import refill` and `refill.empty(items)`.
"""

from __future__ import annotations

from typing import Any


def empty(items: list[Any]) -> None:
    """Empty a list; compiled, one that held a single item keeps its room for the next."""
    items.clear()
