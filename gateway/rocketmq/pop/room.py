"""The waiting room of one group on one topic: its requests that wait for messages, served in turn.

A queue that may have messages is looked at; one that was found empty is parked on until it grows or something is shown
again. So an empty queue costs nothing, and a message as much among many queues as among few.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Protocol

from core.broker import Broker
from core.errors import LmqError
from core.lmq.waiters import Reader
from gateway.rocketmq.held import Held
from gateway.rocketmq.held_table import HeldTable
from gateway.rocketmq.topic_table import queue_key

WAITING_MAX = 1_024  # in one room for the same queue, as with an official broker
SERVED_MAX = 64  # requests of one room that one turn answers, 16 MiB at most
LOOKS_MAX = 1_024  # queues that one turn looks into; chosen: of more the rest waits for the next turn
ALL_QUEUES = -1


class Peer(Protocol):
    """The connection that a request came in by."""

    held: HeldTable

    @property
    def is_writable(self) -> bool:
        """Whether an answer with messages may be written now."""

    def hold(self, held: Held) -> None:
        """Keep a request that waits, and see to its deadline."""


class Waiting(Held):
    """A request that waits in a room, or is answered at once."""

    __slots__ = ("peer", "queue_id", "room")

    def __init__(self, peer: Peer, room: Room, queue_id: int) -> None:
        self.deadline_ms = 0
        self.peer = peer
        self.room = room
        self.queue_id = queue_id

    def try_serve(self, now_ms: int) -> bool:
        """Answer the request, where there is something for it; return whether it was."""
        raise NotImplementedError

    def answer_empty(self, now_ms: int) -> None:
        """Answer that there is nothing."""
        raise NotImplementedError

    def on_ready(self, now_ms: int) -> bool:
        """The output has room again."""
        self.room.serve(now_ms)
        return False

    def resume(self, now_ms: int) -> None:
        """End it where its time is over: a queue that has something now has it for the next."""
        if self.deadline_ms <= now_ms:
            self.forget()
            if not self.peer.is_writable or not self.try_serve(now_ms):
                self.answer_empty(now_ms)

    def forget(self) -> None:
        """End it without an answer."""
        self.peer.held.pop(id(self), None)
        self.room.leave(self)


class QueueWatch(Reader):
    """One queue of a room."""

    __slots__ = ("is_blocked", "is_opening", "is_parked", "key", "queue_id", "queue_ref", "room")

    def __init__(self, room: Room, queue_id: int, key: bytes) -> None:
        self.room = room
        self.queue_id = queue_id
        self.key = key
        self.queue_ref = -1  # until it is there and open
        self.is_opening = False
        self.is_parked = False
        self.is_blocked = False  # by what is taken: it may have messages as soon as some of that is done

    def on_ready(self, now_ms: int) -> bool:
        """There may be messages."""
        self.room.note_ready(self)
        self.room.serve(now_ms)
        return False

    def reader_count(self) -> int:
        """Return how many requests wait."""
        return len(self.room.waiting)


class RoomKeeper(Protocol):
    """Keeps the rooms."""

    broker: Broker
    waiting_count: int  # in all rooms

    def note_settled(self, group: bytes, topic: bytes, queue_id: int) -> None:
        """A message that was taken is done, or shown otherwise."""


class Room(Reader):
    """The waiting requests of one group on one topic; those that want an order have a room of their own."""

    __slots__ = ("_counts", "_keeper", "_queue_count", "_ready", "_watches", "group", "is_used", "topic", "waiting")

    def __init__(self, keeper: RoomKeeper, group: bytes, topic: bytes) -> None:
        self.group = group
        self.topic = topic
        self.waiting: dict[int, Waiting] = {}  # in the order of their turns
        self.is_used = True  # since the keeper looked last
        self._keeper = keeper
        self._queue_count = 0  # of the topic, when it was asked for last
        self._watches: dict[int, QueueWatch] = {}
        self._ready: dict[int, QueueWatch] = {}  # that may have messages, in the order of their turns
        self._counts: dict[int, int] = {}  # waiting requests by queue

    def open_queues(self, queue_id: int, queue_count: int) -> None:
        """See to it that a queue of the topic is watched, or all of them."""
        self.is_used = True
        if queue_count < self._queue_count:  # the topic has fewer than before
            for number in [number for number in self._watches if number >= queue_count]:
                self._ready.pop(number, None)
                self._unpark(self._watches.pop(number))
        self._queue_count = queue_count
        if queue_id != ALL_QUEUES:
            self._open(queue_id)
        elif len(self._watches) < queue_count:
            for number in range(queue_count):
                self._open(number)

    def _open(self, queue_id: int) -> None:
        if queue_id not in self._watches:
            watch = QueueWatch(self, queue_id, queue_key(self.topic, queue_id))
            self._watches[queue_id] = self._ready[queue_id] = watch

    def find_watch(self, queue_id: int) -> QueueWatch | None:
        """Return the watch of a queue, None where there is none."""
        return self._watches.get(queue_id)

    def ready_queues(self, queue_id: int) -> Iterator[QueueWatch]:
        """Give the watches of queues that may have messages, of one queue or of all, each in its turn.

        What is looked at has its next turn after the others.
        """
        if queue_id != ALL_QUEUES:
            watch = self._ready.get(queue_id)
            if watch is not None:
                yield watch
            return
        for number in list(self._ready)[:LOOKS_MAX]:
            watch = self._ready.pop(number, None)
            if watch is not None:
                self._ready[number] = watch
                yield watch

    def has_ready(self, queue_id: int) -> bool:
        """Return whether a queue, or any of them, may have messages."""
        return bool(self._ready) if queue_id == ALL_QUEUES else queue_id in self._ready

    def find_queue(self, watch: QueueWatch) -> int:
        """Return the number of a watched queue, -1 while nobody sent anything there: waiting makes none.

        So it is until the queue is open; then it is looked at again.
        """
        if watch.queue_ref < 0 and not watch.is_opening:
            queue_ref = self._keeper.broker.find_queue(watch.key)
            if queue_ref >= 0:
                watch.is_opening = True
                self._keeper.broker.open_queue(queue_ref, partial(self._note_open, watch, queue_ref))
        return watch.queue_ref

    def _note_open(self, watch: QueueWatch, queue_ref: int, error: LmqError | None) -> None:
        watch.is_opening = False
        self.note_ready(watch)  # also where nobody waits now, and where the next request is to try again
        if error is None:
            watch.queue_ref = queue_ref
            if self.waiting:
                self._keeper.broker.request_run(watch)

    def note_empty(self, watch: QueueWatch, *, is_blocked: bool = False) -> None:
        """Look at a queue no more until something happens there; one that is blocked, until something is done, too."""
        watch.is_blocked = is_blocked
        self._ready.pop(watch.queue_id, None)
        if not watch.is_parked:
            queue_ref = self.find_queue(watch)
            watch.is_parked = True
            if queue_ref < 0:
                self._keeper.broker.await_queue(watch.key, watch)
            else:
                self._keeper.broker.park(watch.queue_ref, watch)

    def note_ready(self, watch: QueueWatch) -> None:
        """Look at a queue again."""
        self._unpark(watch)
        watch.is_blocked = False
        self._ready[watch.queue_id] = watch

    def tell_settled(self, queue_id: int) -> None:
        """A message that was taken is done, or shown otherwise: each of the group may have the next."""
        self._keeper.note_settled(self.group, self.topic, queue_id)

    def note_settled(self, queue_id: int) -> None:
        """Look at a queue again where what was taken of it was in the way: some of it is done, or shown again."""
        watch = self._watches.get(queue_id)
        if watch is not None and watch.is_blocked:
            self.note_ready(watch)
            if self.waiting:
                self._keeper.broker.request_run(self)

    def note_room(self) -> None:
        """Look again at all queues that what is taken was in the way of, of this group or of others."""
        for watch in self._watches.values():
            self.note_settled(watch.queue_id)

    def look_again(self) -> None:
        """Look at all queues again: the group is elsewhere in them than before."""
        for watch in self._watches.values():
            self.note_ready(watch)
        if self.waiting:
            self._keeper.broker.request_run(self)

    def _unpark(self, watch: QueueWatch) -> None:
        if watch.is_parked:
            watch.is_parked = False
            if watch.queue_ref < 0:
                self._keeper.broker.forget_awaited(watch.key, watch)
            else:
                self._keeper.broker.unpark(watch.queue_ref, watch)

    # Waiting requests

    def count_waiting(self, queue_id: int) -> int:
        """Return how many requests wait for a queue, or for all (-1)."""
        return self._counts.get(queue_id, 0)

    def enter(self, waiting: Waiting) -> None:
        """Let a request wait, after those that do."""
        self.waiting[id(waiting)] = waiting
        self._keeper.waiting_count += 1
        self._counts[waiting.queue_id] = self.count_waiting(waiting.queue_id) + 1
        if self.has_ready(waiting.queue_id):
            self._keeper.broker.request_run(self)

    def leave(self, waiting: Waiting) -> None:
        """Let a request wait no more."""
        if self.waiting.pop(id(waiting), None) is not None:
            self._keeper.waiting_count -= 1
            self._counts[waiting.queue_id] -= 1
            self._keeper.broker.cancel_run(waiting)

    def on_ready(self, now_ms: int) -> bool:
        """Go on serving."""
        self.serve(now_ms)
        return False

    def serve(self, now_ms: int) -> None:
        """Answer the requests that there is something for, in turn; what is left after some has the next turn."""
        self.is_used = True
        tried = 0
        for waiting in list(self.waiting.values()):
            if not self._ready:
                return
            if self.has_ready(waiting.queue_id) and waiting.peer.is_writable:
                if waiting.try_serve(now_ms):
                    waiting.forget()
                tried += 1
                if tried == SERVED_MAX:
                    break
        if any(one.peer.is_writable and self.has_ready(one.queue_id) for one in self.waiting.values()):
            self._keeper.broker.request_run(self)

    def close(self) -> None:
        """Watch nothing any more."""
        for watch in self._watches.values():
            self._unpark(watch)
        self._keeper.broker.cancel_run(self)
