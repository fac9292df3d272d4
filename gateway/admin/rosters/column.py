"""What the things of a long list are sorted by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

NAME = "name"  # the column that is the same for good
Thing = TypeVar("Thing")


class Column(NamedTuple, Generic[Thing]):
    """What things are sorted by."""

    name: str  # what the order is known by; `NAME` for that of names
    key: Callable[[Thing], object]  # not asked for names
    reverse: bool = False  # the greatest comes first
