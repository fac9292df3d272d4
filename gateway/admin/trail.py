"""When readers came by a message, as far as looks at their places every few seconds tell.

Of each reader whose place moves, some places and moments are kept, the older the fewer: nothing is written for a
message, and nothing is looked at where messages go by. Looks of processes before are among them (`kept_looks.py`).
"""

from __future__ import annotations

from array import array
from typing import NamedTuple

READERS_MAX = 4_000  # those whose places moved last; chosen, as many as doors look at: PLACES_MAX of their inventories
LOOKS_MAX = 64  # of one reader; then every other one of the older half goes


Reader = tuple[bytes, bytes]  # light queue, and the reader's name at its door


class Look(NamedTuple):
    """Where a reader was at a moment."""

    at_ms: int
    next_offset: int  # was never taken then
    floor: int  # all before it were done then
    by: str  # its consumers


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
        self._kept: dict[Reader, _Places] = {}

    def note(self, reader: Reader, at_ms: int, next_offset: int, floor: int, by: str = "") -> None:
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

    def readers(self) -> list[Reader]:
        """Return the readers that something is kept of."""
        return list(self._kept)

    def latest(self, reader: Reader, count: int) -> list[Look]:
        """Return the latest looks at a reader that is kept, oldest first."""
        known = self._kept[reader]
        columns = (known.at_ms, known.next_offset, known.floor, known.by)
        return [Look(*each) for each in zip(*(column[-count:] for column in columns), strict=True)]

    def find(self, reader: Reader, offset: int, stored_ms: int = 0) -> Passed:
        """Return between which moments a message that is done became so, and the consumers there meanwhile.

        Args:
            reader: Who read it.
            offset: The message's.
            stored_ms: When it was stored. A look before that was past it was at one that a power cut took.
        """
        known = self._kept.get(reader)
        from_ms = until_ms = 0
        names: dict[str, None] = {}
        if known is not None:
            for at_ms, next_offset, floor, by in zip(
                known.at_ms, known.next_offset, known.floor, known.by, strict=True
            ):
                if at_ms < stored_ms and next_offset > offset:
                    continue
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
