"""What groups have taken of queues by POP: the core's pop queues, by group and queue, and where groups begin.

Source: docs/protocols/rocketmq.md, "POP".
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Protocol

from core.broker import Broker
from core.message import StoredBatch
from gateway.rocketmq.topic_table import RETRY_PREFIX

OWNER_PREFIX = b"rocketmq:"  # of a group's name among those who share light queues


class Taken(Protocol):
    """One queue as one group shares it: the core's pop queue, as far as it is used here."""

    @property
    def queue_ref(self) -> int:
        """The queue's number."""

    @property
    def ready_count(self) -> int:
        """How many messages could be taken now."""

    @property
    def unacked_count(self) -> int:
        """How many messages are hidden."""

    @property
    def floor(self) -> int:
        """The first offset that is not done."""

    def take(self, into: StoredBatch, count_max: int, bytes_max: int, until_ms: int, now_ms: int) -> int:
        """Fill `into` with messages, and hide them."""

    def ack_many(self, queue_offsets: array[int], count: int) -> None:
        """Finish messages that were just taken."""

    def ack_taken(self, queue_offsets: array[int], count: int, until_ms: int) -> int:
        """Finish messages that are hidden until just that moment; return how many were."""

    def change_invisible(self, queue_offset: int, until_ms: int, visible_at_ms: int) -> bool:
        """Show a message that is hidden until just that moment at another."""

    def seek(self, queue_offset: int) -> None:
        """Go on from an offset; what was taken is forgotten."""


class Claims:
    """All that groups have taken.

    Args:
        broker: Where the queues are.
        is_young: Whether the queue of a key still has its first message, and not much was stored since.
    """

    def __init__(self, broker: Broker, is_young: Callable[[bytes], bool]) -> None:
        self._broker = broker
        self._is_young = is_young
        self._known: dict[tuple[bytes, bytes], Taken] = {}  # by group and queue
        self._moved: dict[tuple[bytes, bytes], Taken] = {}  # whose floors may not be noted as the group's offset

    def find(self, group: bytes, key: bytes) -> Taken | None:
        """Return what a group has taken of a queue, None where it never took any."""
        found = self._known.get((group, key))
        if found is None:
            found = self._broker.pop.find(key, OWNER_PREFIX + group)
            if found is not None:
                self._known[group, key] = found
        return found

    def open(self, group: bytes, key: bytes, *, at_end: bool) -> Taken:
        """Return what a group has taken of a queue, which is there.

        A group that is new goes on at the offset that it committed, else at the first message, or, `at_end`, at the
        last one, unless the queue is young: as with an official broker.
        """
        found = self.find(group, key)
        if found is None:
            found = self._broker.pop.open(key, OWNER_PREFIX + group, self._find_start(group, key, at_end=at_end))
            self._known[group, key] = found
        return found

    def _find_start(self, group: bytes, key: bytes, *, at_end: bool) -> int:
        queue_ref = self._broker.find_queue(key)
        end = self._broker.max_offset(queue_ref)
        committed = self._broker.consumer_offsets.get(group, key)
        if committed is not None:
            return min(committed, end)
        if at_end and not key.startswith(RETRY_PREFIX) and not self._is_young(key):
            return max(end - 1, 0)
        return min(self._broker.min_offset(queue_ref), end)

    def reset(self, group: bytes, key: bytes, queue_offset: int) -> bool:
        """Let a group go on from an offset of a queue that it has taken from; return whether it has."""
        found = self.find(group, key)
        if found is not None:
            found.seek(queue_offset)
        return found is not None

    def note_moved(self, group: bytes, key: bytes, taken: Taken) -> None:
        """Have a queue's floor noted as the group's offset, soon."""
        self._moved[group, key] = taken

    def commit_floors(self) -> None:
        """Note how far groups are in what they acknowledged: what offsets are asked for, and pulls go on at."""
        moved, self._moved = self._moved, {}
        for (group, key), taken in moved.items():
            self._broker.consumer_offsets.commit(group, key, taken.floor)
