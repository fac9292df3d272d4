"""What the timer asks of the broker that it hands messages on by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from core.engine import Engine, Holder, Outcome, Places, Table
from core.lmq.consumer_offsets import ConsumerOffsets
from core.lmq.waiters import Reader
from core.message import PublishBatch, Route, StoredBatch
from core.metrics import Metrics
from core.room import Room


class TimerBroker(Protocol):
    """The broker, as far as the timer knows it."""

    consumer_offsets: ConsumerOffsets
    metrics: Metrics
    room: Room

    @property
    def engine(self) -> Engine:
        """What keeps the messages."""

    @property
    def is_failed(self) -> bool:
        """Whether nothing can be promised any more."""

    def table(self, name: str) -> Table:
        """Return the durable table `name`."""

    def places(self, name: str) -> Places:
        """Return the places `name`."""

    def route_rocketmq(self, topic: bytes, queue_id: int, dispatch: Sequence[bytes], prefix: bytes = b"") -> Route:
        """Return a route to a topic's queue."""

    def publish_batch(self, batch: PublishBatch, now_ms: int) -> None:
        """Append messages and wake their readers."""

    def find_queue(self, key: bytes) -> int:
        """Return the number of a queue, or -1."""

    def open_queue(self, queue_ref: int, then: Outcome) -> None:
        """Call back when the ends of a queue are known."""

    def max_offset(self, queue_ref: int) -> int:
        """Return the next offset to be given."""

    def read(self, queue_ref: int, offset: int, into: StoredBatch, count_max: int, bytes_max: int) -> int:
        """Read on in one queue."""

    def request_run(self, reader: Reader) -> None:
        """Call `reader.on_ready` in the next turn."""

    def when_stored(self, ticket: int, then: Outcome) -> None:
        """Call back when the messages of a ticket are safe, or lost."""

    def hold(self, positions: Holder) -> None:
        """Keep what `positions` names from retention."""
