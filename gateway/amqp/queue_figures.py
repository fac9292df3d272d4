"""What was found out of queues, by their numbers, for as long as it is so: a million are not asked for each page.

A queue that nobody has opened changes by new messages alone, and those its next offset tells. So what is known of one
is good until it has another next offset, or is opened; of one that is open nothing is known here.
"""

from __future__ import annotations

from array import array

BLOCK = 1_024  # queues; blocks in which no message is take no room, others 56 B a queue
_UNKNOWN = array("q", [-1]) * BLOCK
_ZEROS = array("q", bytes(8 * BLOCK))


class FigureBlock:
    """What is known of queues whose numbers follow each other."""

    __slots__ = ("body_bytes", "counted_at", "given", "newest_ms", "oldest_ms", "ready", "seen_at")

    def __init__(self) -> None:
        self.counted_at = _UNKNOWN[:]  # the next offset at which `ready` was so; -1: it is not known
        self.ready = _ZEROS[:]  # messages that could be taken
        self.given = _ZEROS[:]  # that ever came
        self.seen_at = _UNKNOWN[:]  # the next offset at which the rest was so
        self.oldest_ms = _ZEROS[:]  # when the first that could be taken was stored, 0 where there is none
        self.newest_ms = _ZEROS[:]  # when the last that is kept was stored
        self.body_bytes = array("d", bytes(8 * BLOCK))  # of one message, about


class QueueFigures:
    """The blocks of a virtual host's queues."""

    def __init__(self) -> None:
        self._blocks: list[FigureBlock | None] = []

    def find(self, block: int) -> FigureBlock | None:
        """Return a block by its number; None where nothing is known of its queues."""
        return self._blocks[block] if block < len(self._blocks) else None

    def get(self, block: int) -> FigureBlock:
        """Return a block, made where there is none."""
        while block >= len(self._blocks):
            self._blocks.append(None)
        found = self._blocks[block]
        if found is None:
            found = self._blocks[block] = FigureBlock()
        return found

    def counted_at(self, number: int) -> int:
        """Return the next offset at which the messages of a queue were counted, -1 where that is not known."""
        found = self.find(number // BLOCK)
        return -1 if found is None else found.counted_at[number % BLOCK]

    def forget(self, number: int) -> None:
        """Know nothing any more of a queue."""
        block, at = divmod(number, BLOCK)
        found = self.find(block)
        if found is not None:
            found.counted_at[at] = found.seen_at[at] = -1

    def end(self, number: int) -> None:
        """Know for good that nothing is in a queue, as it is deleted."""
        block, at = divmod(number, BLOCK)
        found = self.find(block)
        if found is not None:
            found.ready[at] = found.oldest_ms[at] = found.newest_ms[at] = 0
            found.counted_at[at] = found.seen_at[at] = -1
