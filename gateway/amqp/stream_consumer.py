"""A consumer that reads a queue from somewhere on and takes nothing from it: each such consumer gets all messages.

What it acknowledges makes room for more, and is nothing to the queue.

Source: docs/protocols/amqp.md, "Reading without consuming".
"""

from __future__ import annotations

from typing import cast

from core.broker import Broker
from core.errors import LmqError
from core.lmq.expiry import take_expired
from core.lmq.waiters import Reader
from core.message import StoredBatch
from core.metrics import DoorMetrics
from core.queues.terms import NO_LIMIT
from gateway.amqp.channel import Channel
from gateway.amqp.consumer import Consumer
from gateway.amqp.delivery_codec import DeliveryEncoder
from gateway.amqp.output import ConnectionOutput
from gateway.amqp.queue_ties import Trimmed
from gateway.amqp.shared_queue import TAKE_BYTES_MAX, TURN_BYTES_MAX, SharedQueue
from gateway.amqp.stream_filter import StreamFilter
from gateway.amqp.stream_offset import FIRST, LAST, NEXT, Start

_FOR_EVER = 1 << 62


class StreamConsumer(Consumer):
    """One such consumer.

    Args:
        channel: The channel that it is on.
        tag: Its consumer tag.
        queue: What it reads.
        output: Its connection.
        encoder: The door's.
        metrics: The door's.
        no_ack: Whether a message makes room for another once it is sent.
        broker: Where the queue is.
        start: Where it begins.
        stored: The door's own batch to read into.
        wanted: Which messages it wants; None: all.
    """

    def __init__(
        self,
        channel: Channel,
        tag: str,
        queue: SharedQueue,
        output: ConnectionOutput,
        *,
        encoder: DeliveryEncoder,
        metrics: DoorMetrics,
        no_ack: bool,
        broker: Broker,
        start: Start,
        stored: StoredBatch,
        wanted: StreamFilter | None = None,
    ) -> None:
        super().__init__(channel, tag, queue, output, encoder=encoder, metrics=metrics, no_ack=no_ack, exclusive=False)
        self.is_stream = True
        self._codec = encoder
        self._broker = broker
        self._start = start
        self._queue_ref = broker.intern_queue(queue.light_name)
        self._stored = stored
        self._wanted = wanted
        self._reader = _StreamReader(self)
        self._offset = -1  # of the next message; negative until it is known

    def start(self) -> None:
        """Find where it begins, and read from there on, unless cancelled meanwhile."""
        if self._is_gone():
            return
        self.queue.streams = [*self.queue.streams, self]  # the empty one is shared
        self._broker.open_queue(self._queue_ref, self._begin)

    def _is_gone(self) -> bool:
        return self.channel.consumers.get(self.tag) is not self or self.queue.is_deleted

    def _begin(self, error: LmqError | None) -> None:
        if error is not None or self._is_gone():
            return
        if self._start.at_ms >= 0:
            self._broker.find_offset(self._queue_ref, self._start.at_ms, self._begin_at)
            return
        end = self._broker.max_offset(self._queue_ref)
        offset = {FIRST: 0, LAST: max(end - 1, 0), NEXT: end}.get(self._start.word, self._start.offset)
        self._begin_at(offset)

    def _begin_at(self, offset: int) -> None:
        if self._is_gone():
            return
        first = cast("Trimmed", self.queue.pop).next_offset if self.queue.is_stream else self.queue.first_offset
        self._offset = max(offset, first, self._broker.min_offset(self._queue_ref))
        self._broker.park(self._queue_ref, self._reader)
        self._broker.request_run(self._reader)

    def note_room(self) -> None:
        """Go on: there is room again."""
        if self._offset >= 0:
            self._broker.request_run(self._reader)

    def stop(self) -> None:
        """Read nothing more."""
        self._broker.unpark(self._queue_ref, self._reader)
        self._broker.cancel_run(self._reader)
        self._offset = -1
        if self in self.queue.streams:
            self.queue.streams.remove(self)
        super().stop()

    def read_on(self, now_ms: int) -> None:
        """Send what there is and the client has room for."""
        stored = self._stored
        budget = TURN_BYTES_MAX
        while budget > 0 and self._offset >= 0:
            room = self.room()
            if room <= 0:
                break
            # of what a filter picks from, much may be left out: small reads would be many
            bytes_max = self.room_bytes() if self._wanted is None else TAKE_BYTES_MAX
            count = self._broker.read(self._queue_ref, self._offset, stored, room, bytes_max)
            if count < 0 or stored.next_offset <= self._offset:
                break
            self._offset = stored.next_offset
            if count:
                budget -= stored.record_end[count - 1] - stored.record_start[0]
            if not self.queue.is_stream:
                take_expired(stored, now_ms, NO_LIMIT, _FOR_EVER)
            if self._wanted is not None:
                self._wanted.apply(stored)
            if stored.count:
                self._codec.tells_offsets = True
                self.send(stored)
        stored.clear()
        self.flush()
        if budget <= 0 and self._offset >= 0:
            self._broker.request_run(self._reader)


class _StreamReader(Reader):
    """Has a consumer read on when its queue grew."""

    def __init__(self, consumer: StreamConsumer) -> None:
        self._consumer = consumer

    def on_ready(self, now_ms: int) -> bool:
        """Read on."""
        self._consumer.read_on(now_ms)
        return False

    def reader_count(self) -> int:
        """Return that it is one."""
        return 1
