"""When readers came by a message, as far as looks at their places every few seconds tell.

Of each reader whose place moves, some places and moments are kept, the older the fewer: nothing is written for a
message, and nothing is looked at where messages go by.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable
from typing import NamedTuple

READERS_MAX = 4_000  # those whose places moved last
LOOKS_MAX = 64  # of one reader; then every other one of the older half goes


class Passed(NamedTuple):
    """Between which moments a message was done; 0 where that is not known; and with which consumers there."""

    from_ms: int
    until_ms: int
    by: str


NOWHERE = Passed(0, 0, "")  # nothing is known


class _Places:
    __slots__ = ("at_ms", "by", "floor", "next_offset")

    def __init__(self) -> None:
        self.at_ms = array("q")
        self.next_offset = array("q")  # was never taken then
        self.floor = array("q")  # all before it were done then
        self.by: list[str] = []


class Trail:
    """Places of readers over time, by reader."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, _Places] = {}

    def note(self, reader: Hashable, at_ms: int, next_offset: int, floor: int, by: str = "") -> None:
        """Note where a reader is at a moment, and its consumers."""
        known = self._kept.get(reader)
        if known is not None and known.floor[-1] == floor and known.next_offset[-1] == next_offset:
            if len(known.floor) > 1 and known.floor[-2] == floor and known.next_offset[-2] == next_offset:
                known.at_ms[-1], known.by[-1] = at_ms, by  # it stands still: the first look and the last one are enough
                return
        elif known is not None:
            self._kept[reader] = self._kept.pop(reader)
        if known is None:
            if len(self._kept) >= READERS_MAX:
                del self._kept[next(iter(self._kept))]
            known = self._kept[reader] = _Places()
        known.at_ms.append(at_ms)
        known.next_offset.append(next_offset)
        known.floor.append(floor)
        known.by.append(by)
        if len(known.at_ms) > LOOKS_MAX:
            old = slice(1, LOOKS_MAX // 2, 2)
            del known.at_ms[old], known.next_offset[old], known.floor[old], known.by[old]

    def find(self, reader: Hashable, offset: int) -> Passed:
        """Return between which moments a message that is done became so, and the consumers there meanwhile."""
        known = self._kept.get(reader)
        from_ms = until_ms = 0
        names: dict[str, None] = {}
        if known is not None:
            for at_ms, next_offset, floor, by in zip(
                known.at_ms, known.next_offset, known.floor, known.by, strict=True
            ):
                if next_offset <= offset:
                    from_ms, names = at_ms, {by: None} if by else {}
                    continue
                if floor == offset:  # the first that was not done then
                    from_ms = at_ms
                if by:
                    names[by] = None
                if floor > offset:
                    until_ms = at_ms
                    break
        return Passed(from_ms, until_ms, "; ".join(names))
