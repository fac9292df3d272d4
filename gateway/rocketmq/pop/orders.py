"""Which messages groups took in order: a queue's next ones come when those are done, as at official brokers.

Of what was in flight when the gateway started, nobody knows whether it was taken in order: all of it counts as such.

Source: docs/protocols/rocketmq.md, "POP".
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gateway.rocketmq.pop.claims import Taken

QUEUES_MAX = 10_000  # of all groups, of which it is known; of others, all that is in flight is in the way


@dataclass(slots=True)
class _Known:
    """What is known of one queue of one group."""

    unknown_until: int  # what is in flight below this offset may have been taken in order
    offsets: list[int] = field(default_factory=list)  # taken in order last


class Orders:
    """What is in the way of an ordered consumer, by group and queue."""

    def __init__(self) -> None:
        self._known: dict[tuple[bytes, bytes], _Known] = {}

    def open(self, group: bytes, key: bytes, taken: Taken) -> None:
        """Look at a queue, before anything is taken of it."""
        known = self._known.get((group, key))
        if known is None:
            if len(self._known) >= QUEUES_MAX:
                del self._known[next(iter(self._known))]
            self._known[group, key] = _Known(taken.next_offset if taken.unacked_count else 0)
        elif not taken.unacked_count:
            known.unknown_until = 0

    def is_blocked(self, group: bytes, key: bytes, taken: Taken) -> bool:
        """Return whether something that was taken in order is hidden."""
        self.open(group, key, taken)
        if not taken.unacked_count:
            return False
        known = self._known[group, key]
        return taken.floor < known.unknown_until or any(taken.is_hidden(offset) for offset in known.offsets)

    def note_taken(self, group: bytes, key: bytes, offsets: list[int]) -> None:
        """Note what was just taken in order, which nothing was in the way of."""
        known = self._known.get((group, key))
        if known is not None:
            known.offsets = offsets
