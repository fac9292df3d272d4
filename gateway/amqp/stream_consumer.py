"""A consumer that reads a queue from somewhere on and takes nothing from it: each such consumer gets all messages.

What it acknowledges makes room for more, and is nothing to the queue.

Source: docs/protocols/amqp.md, "Reading without consuming".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pamqp.commands import Basic

from core.broker import Broker
from core.errors import LmqError
from core.flows import Outflow
from core.lmq.expiry import take_expired
from core.lmq.waiters import Reader
from core.message import StoredBatch
from core.metrics import DoorMetrics
from core.queues.terms import NO_LIMIT
from gateway.amqp.channel import Channel
from gateway.amqp.consumer import Consumer
from gateway.amqp.delivery_codec import DeliveryEncoder
from gateway.amqp.errors import AmqpError
from gateway.amqp.output import ConnectionOutput
from gateway.amqp.reply_codes import ReplyCode
from gateway.amqp.shared_queue import TAKE_BYTES_MAX, TURN_BYTES_MAX, SharedQueue
from gateway.amqp.stream_filter import StreamFilter
from gateway.amqp.stream_offset import Start
from gateway.amqp.stream_sources import make_source

PASSED_OVER_BYTES = TURN_BYTES_MAX // 16  # what a read without messages counts as
READ_BYTES_MIN = TURN_BYTES_MAX // 64  # what any read counts as: of priorities that alternate each gives one message
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
        outflow: Of its virtual host.
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
        outflow: Outflow,
        no_ack: bool,
        broker: Broker,
        start: Start,
        stored: StoredBatch,
        wanted: StreamFilter | None = None,
    ) -> None:
        super().__init__(
            channel,
            tag,
            queue,
            output,
            encoder=encoder,
            metrics=metrics,
            outflow=outflow,
            no_ack=no_ack,
            exclusive=False,
        )
        self.is_stream = True
        self._peer = output  # the consumer's own is of the compiled class alone
        self._codec = encoder
        self._broker = broker
        self._start = start
        self._source = make_source(broker, queue, self._add)
        self._stored = stored
        self._wanted = wanted
        self._reader = _StreamReader(self)
        self._is_begun = False  # it is known where it begins, and it was not stopped since

    @property
    def span(self) -> range | None:
        """The offsets that it has read; None where that is not to be told."""
        return self._source.span

    @property
    def has_filter(self) -> bool:
        """Whether it passes over messages that it does not want."""
        return self._wanted is not None

    def start_reading(self, refuse: Callable[[AmqpError], None]) -> None:
        """Find where it begins, and read from there on, unless cancelled meanwhile.

        Args:
            refuse: Closes its channel, where the queue cannot be read.
        """
        if self._is_gone():
            return
        self.queue.streams = [*self.queue.streams, self]  # the empty one is shared
        self._source.begin(self._start, partial(self._begin, refuse))

    def _is_gone(self) -> bool:
        return self.channel.consumers.get(self.tag) is not self or self.queue.is_deleted

    def _begin(self, refuse: Callable[[AmqpError], None], error: LmqError | None) -> None:
        if self._is_gone() or not self._peer.is_open(self.channel):
            return
        if error is not None:
            reason = f"queue '{self.queue.name}' is not to be had now: {error}"
            refuse(AmqpError(ReplyCode.NOT_FOUND, reason, Basic.Consume.index))
            return
        self._is_begun = True
        for ref in self._source.refs():
            self._broker.park(ref, self._reader)
        self._broker.request_run(self._reader)

    def _add(self, ref: int) -> None:
        """Read another light queue, too."""
        if self._is_begun:
            self._broker.park(ref, self._reader)

    def note_room(self) -> None:
        """Go on: there is room again."""
        if self._is_begun:
            self._broker.request_run(self._reader)

    def stop(self) -> None:
        """Read nothing more."""
        for ref in self._source.refs() if self._is_begun else ():
            self._broker.unpark(ref, self._reader)
        self._broker.cancel_run(self._reader)
        self._source.end()
        self._is_begun = False
        if self in self.queue.streams:
            self.queue.streams.remove(self)
        super().stop()

    def read_on(self, now_ms: int) -> None:
        """Send what there is and the client has room for."""
        stored = self._stored
        budget = TURN_BYTES_MAX
        while budget > 0 and self._is_begun:
            room = self.room()
            if room <= 0:
                break
            # of what a filter picks from, much may be left out: small reads would be many
            bytes_max = self.room_bytes() if self._wanted is None else TAKE_BYTES_MAX
            count = self._source.read(stored, room, bytes_max)
            if count < 0:
                break
            size = stored.record_end[count - 1] - stored.record_start[0] if count else PASSED_OVER_BYTES
            budget -= max(size, READ_BYTES_MIN)
            if not self.queue.is_stream:
                take_expired(stored, now_ms, NO_LIMIT, _FOR_EVER)
            if self._wanted is not None:
                self._wanted.apply(stored)
            if stored.count:
                self._codec.tells_offsets = True
                self.send(stored)
        stored.clear()
        self.flush()
        if budget <= 0 and self._is_begun:
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
        """Return 1: it is one reader."""
        return 1
