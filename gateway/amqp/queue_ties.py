"""What a shared queue is tied to: its consumers, its place in the broker, and what becomes of its messages."""

from __future__ import annotations

from array import array
from typing import Protocol

from core.message import StoredBatch
from core.queues.terms import QueueTerms
from core.stage import Stage


class QueueConsumer(Protocol):
    """A consumer of a queue's messages."""

    def room(self) -> int:
        """Return how many more messages it takes now; where none, the queue's `note_room` is called when it does."""

    def room_bytes(self) -> int:
        """Return how many bytes of records it takes at once, at least one: a record that is larger comes alone."""

    def deliver(self, stored: StoredBatch) -> None:
        """Send these messages; they are hidden from others."""

    def flush(self) -> None:
        """Write what was put together by `deliver`."""

    @property
    def channel(self) -> object:
        """Where it is."""

    @property
    def rank(self) -> int:
        """Its priority: one of a higher rank that has room is served before."""

    def on_queue_deleted(self) -> None:
        """The queue is no more; `tell_deleted` follows."""

    def tell_deleted(self) -> None:
        """Tell the client so."""


class Shared(Protocol):
    """What is taken, hidden and done in a light queue: the broker's pop queue, as far as it is used here."""

    @property
    def queue_ref(self) -> int:
        """The light queue."""

    @property
    def ready_count(self) -> int:
        """How many messages could be taken now."""

    @property
    def unacked_count(self) -> int:
        """How many messages consumers have."""

    @property
    def again_count(self) -> int:
        """How many times messages were given that had been given before, since it was opened."""

    def identify(self, queue_offset: int) -> tuple[int, int]:
        """Return what the service of pop queues knows a message by."""

    def stage(self, queue_offset: int) -> Stage:
        """Return how far a message is."""

    def take(self, into: StoredBatch, count_max: int, bytes_max: int, until_ms: int, now_ms: int) -> int:
        """Fill `into` with messages, and hide them."""

    def peek(self, into: StoredBatch, count_max: int) -> int:
        """Fill `into` with what `take` would give next, without taking it."""

    def ack_many(self, queue_offsets: array[int], count: int) -> None:
        """Finish messages."""

    def nack_many(self, queue_offsets: array[int], count: int, visible_at_ms: int = 0) -> None:
        """Show messages again."""

    def read_offsets(self, offsets: array[int], count: int, into: StoredBatch) -> int:
        """Fill `into` with messages; return how many of these are dealt with."""

    def purge(self, now_ms: int = 0) -> int:
        """Finish all messages that nobody has."""

    def attempt(self, queue_offset: int) -> int:
        """Return how often a message was taken."""


class Counted(Shared, Protocol):
    """One that also knows the bytes of what is ready."""

    @property
    def ready_bytes(self) -> int:
        """How many bytes the bodies of ready messages have, as far as they were counted."""

    def count_on(self) -> bool:
        """Count what came; return False where there is more to count."""


class Trimmed(Shared, Protocol):
    """One whose oldest messages can be let go of."""

    @property
    def next_offset(self) -> int:
        """The first offset that was never taken, nor let go of."""

    def skip_to(self, queue_offset: int) -> None:
        """Let go of what was never taken below an offset."""


class CountedStream(Counted, Protocol):
    """One that can keep so many bytes of the newest messages."""

    def keep_bytes(self, most: int) -> None:
        """Let go of the oldest messages that are not needed to have so many bytes."""


class Dying(Protocol):
    """A queue that has dead letters."""

    name: str
    is_deleted: bool

    @property
    def terms(self) -> QueueTerms:
        """What it was told."""

    @property
    def pop(self) -> Shared:
        """What is taken and done in it."""


class Burial(Protocol):
    """What becomes of messages that are rejected or outlive their queue."""

    def bury(self, queue: Dying, hidden: array[int], count: int, reason: bytes, now_ms: int) -> None:
        """Let messages go on as dead letters, and finish them."""


class Expiring(Protocol):
    """A queue that is called when its first message outlives its time."""

    def on_expiry(self, at_ms: int) -> None:
        """The moment `at_ms` that was asked for has come."""


class Expiries(Protocol):
    """Calls queues when their first message outlives its time."""

    def file(self, at_ms: int, queue: Expiring) -> None:
        """Have `on_expiry` called at a moment, or a little later."""
