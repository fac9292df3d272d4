"""What groups have taken of queues by POP: the core's pop queues, by group and queue, and where groups begin.

Source: docs/protocols/rocketmq.md, "POP".
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Protocol

from core.broker import Broker
from core.message import StoredBatch
from core.stage import Stage
from gateway.rocketmq.moved_places import note_beginning
from gateway.rocketmq.topic_table import RETRY_PREFIX

IN_FLIGHT_MAX = 1_000_000  # of all groups: what is hidden until a moment takes about 200 bytes
OWNER_PREFIX = b"rocketmq:"  # of a group's name among those that share light queues


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

    @property
    def fresh_from(self) -> int:
        """The first offset that had not been taken when this process opened it."""

    def stage(self, queue_offset: int) -> Stage:
        """Return how far a message is."""

    def take(self, into: StoredBatch, count_max: int, bytes_max: int, until_ms: int, now_ms: int) -> int:
        """Fill `into` with messages, and hide them."""

    def peek(self, into: StoredBatch, count_max: int) -> int:
        """Fill `into` with messages that could be taken next."""

    def read_offsets(self, offsets: array[int], count: int, into: StoredBatch) -> int:
        """Fill `into` with messages by their offsets; return how many of these are dealt with, or AWAY."""

    def attempt(self, queue_offset: int) -> int:
        """Return how often a message was taken."""

    def is_hidden(self, queue_offset: int) -> bool:
        """Whether a message is hidden."""

    def ack_many(self, queue_offsets: array[int], count: int) -> None:
        """Finish messages that were just taken."""

    def ack_taken(self, queue_offsets: array[int], count: int, until_ms: int, code: int = 0) -> int:
        """Finish messages that are hidden until just that moment; return how many were. `code`: of the consumer."""

    def change_invisible(self, queue_offset: int, until_ms: int, visible_at_ms: int) -> bool:
        """Show a message that is hidden until just that moment at another."""

    @property
    def next_offset(self) -> int:
        """The first offset that was never taken."""

    def skip_to(self, queue_offset: int) -> None:
        """Take what was never taken below an offset as done."""

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
        self.in_flight_count = 0  # of all groups, or more: what is done is taken off when it is counted anew
        self._known: dict[tuple[bytes, bytes], Taken] = {}  # by group and queue
        self._idle: set[tuple[bytes, bytes]] = set()  # nobody took from or acknowledged them since the last `rest`
        self._busy: dict[tuple[bytes, bytes], Taken] = {}  # something of them may be in flight
        self._moved: dict[tuple[bytes, bytes], Taken] = {}  # whose floors may not be noted as the group's offset

    def find(self, group: bytes, key: bytes) -> Taken | None:
        """Return what a group has taken of a queue, None where it never took any."""
        found = self._known.get((group, key))
        if found is not None:
            self._idle.discard((group, key))
        else:
            found = self._broker.pop.find(key, OWNER_PREFIX + group)
            if found is not None:
                self._known[group, key] = found
        return found

    def open(self, group: bytes, key: bytes, *, at_end: bool) -> Taken:
        """Return what a group has taken of a queue, which is there.

        A group that is new goes on at the offset that it committed, else at the first message, or, `at_end`, at the
        last one, unless the queue is young: as with an official broker. One that pulled meanwhile goes on behind that.
        """
        found = self.find(group, key)
        if found is not None:
            self._follow_pulls(group, key, found)
        else:
            found = self._broker.pop.open(key, OWNER_PREFIX + group, self._find_start(group, key, at_end=at_end))
            self._known[group, key] = found
        return found

    def _follow_pulls(self, group: bytes, key: bytes, taken: Taken) -> None:
        committed = self._broker.consumer_offsets.get(group, key)
        if committed is None or committed <= taken.next_offset:
            return
        if committed <= self._broker.max_offset(taken.queue_ref):
            taken.skip_to(committed)
        else:  # it would be some message's later
            self._broker.consumer_offsets.commit(group, key, taken.next_offset)

    def _find_start(self, group: bytes, key: bytes, *, at_end: bool) -> int:
        queue_ref = self._broker.find_queue(key)
        end = self._broker.max_offset(queue_ref)
        committed = self._broker.consumer_offsets.get(group, key)
        if committed is not None and committed > end:  # it would be some message's later
            self._broker.consumer_offsets.commit(group, key, end)
        if committed is not None:
            return min(committed, end)
        if at_end and not key.startswith(RETRY_PREFIX) and not self._is_young(key):
            note_beginning(self._broker, group, key, max(end - 1, 0))
            return max(end - 1, 0)
        return min(self._broker.min_offset(queue_ref), end)

    def reset(self, group: bytes, key: bytes, queue_offset: int) -> bool:
        """Let a group go on from an offset of a queue that it has taken from; return whether it has."""
        found = self.find(group, key)
        if found is not None:
            found.seek(queue_offset)
        return found is not None

    def note_taken(self, group: bytes, key: bytes, taken: Taken, count: int) -> None:
        """Count what was taken."""
        self.in_flight_count += count
        self._busy[group, key] = taken

    @property
    def is_full(self) -> bool:
        """Whether so much is in flight of all groups that no more may be."""
        return self.in_flight_count >= IN_FLIGHT_MAX

    def count_in_flight(self) -> bool:
        """Count anew what is in flight; return whether it was too much, and is no more."""
        was_full = self.is_full
        self._busy = {key: taken for key, taken in self._busy.items() if taken.unacked_count}
        self.in_flight_count = sum(taken.unacked_count for taken in self._busy.values())
        return was_full and not self.is_full

    def rest(self) -> None:
        """Keep only the places of what nobody used since the last call and nothing is in flight of."""
        for group, key in self._idle:
            if (group, key) in self._known and self._broker.pop.rest(key, OWNER_PREFIX + group):
                del self._known[group, key]
        self._idle = set(self._known)

    def queues_of(self, group: bytes) -> list[bytes]:
        """Return the queues that a group ever took from."""
        return [queue for queue, _floor in self._broker.pop.floors(OWNER_PREFIX + group)]

    def drop(self, group: bytes) -> None:
        """Forget all that a group has taken and where it is."""
        owner = OWNER_PREFIX + group
        for queue in self.queues_of(group):
            self._broker.pop.drop(queue, owner)
            self._broker.lasting_endings.trim((queue, group), 0)  # it may begin elsewhere, if it is made again
            self._broker.pop.acknowledgers.forget((queue, group))
            for known in (self._known, self._busy, self._moved):
                known.pop((group, queue), None)

    def note_moved(self, group: bytes, key: bytes, taken: Taken) -> None:
        """Have a queue's floor noted as the group's offset, soon."""
        self._moved[group, key] = taken

    def commit_floors(self) -> None:
        """Note how far groups are in what they acknowledged: what offsets are asked for, and pulls go on at."""
        while self._moved:
            (group, key), taken = self._moved.popitem()
            committed = self._broker.consumer_offsets.get(group, key)
            if committed is None or committed < taken.floor:  # else the group pulled as well
                self._broker.consumer_offsets.commit(group, key, taken.floor, has_begun=True)
