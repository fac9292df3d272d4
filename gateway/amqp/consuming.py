"""The methods that read queues: consume, cancel, get, qos, recover; and what acknowledgements do."""

from __future__ import annotations

import secrets
from array import array
from collections.abc import Mapping
from typing import cast

from pamqp.commands import Basic

from core.errors import ReceiptError
from core.message import AWAY
from core.metrics import DoorMetrics
from core.properties import DIED_IN, decode_properties
from core.queues.terms import NO_LIMIT
from gateway.amqp.argument_rules import CONSUMER_TIMEOUT, RULES, check_integer
from gateway.amqp.channel import Channel
from gateway.amqp.consumer import Consumer, Slot, find_get_slot
from gateway.amqp.declaring import RELEASED_A_STEP, Declarer
from gateway.amqp.delivery_codec import DeliveryEncoder
from gateway.amqp.direct_reply import REPLY_TO, make_reply_name
from gateway.amqp.errors import AmqpError, not_of_streams
from gateway.amqp.field_table import Field
from gateway.amqp.first_message import take_first
from gateway.amqp.methods import arguments_of
from gateway.amqp.output import ConnectionOutput
from gateway.amqp.queues import VirtualHost
from gateway.amqp.reply_codes import ReplyCode
from gateway.amqp.shared_queue import SharedQueue
from gateway.amqp.stream_consumer import StreamConsumer
from gateway.amqp.stream_filter import parse_filter
from gateway.amqp.stream_offset import NEXT, STREAM_OFFSET, Start, parse_start
from gateway.amqp.unacked import ACK, DROP, REQUEUE

PRIORITY = "x-priority"
_ACK = ACK
_DROP = DROP
_REQUEUE = REQUEUE


class Reading:
    """What one connection reads.

    Args:
        vhost: Where the queues are.
        declarer: Finds them by name, and knows the user's rights.
        output: The connection.
        encoder: The door's.
        metrics: The door's.
    """

    def __init__(
        self,
        vhost: VirtualHost,
        declarer: Declarer,
        output: ConnectionOutput,
        encoder: DeliveryEncoder,
        metrics: DoorMetrics,
    ) -> None:
        self._vhost = vhost
        self._declarer = declarer
        self._output = output
        self._encoder = encoder
        self._metrics = metrics
        self._outflow = vhost.outflow
        self._refused = ""  # a stream that a message was given back to
        self.notes_origin = False
        self.origin = b""  # `LMQ_DIED` of the message that `get` returned last, where it is to be noted

    def qos(self, channel: Channel, method: Basic.Qos) -> None:
        """Set the prefetch of consumers to come, or of the channel."""
        if method.prefetch_size:
            raise AmqpError(ReplyCode.NOT_IMPLEMENTED, f"prefetch_size!=0 ({method.prefetch_size})")
        if method.global_:
            channel.prefetch_global = method.prefetch_count
            self.run_starved(channel)
        else:
            channel.prefetch_count = method.prefetch_count

    def consume(self, channel: Channel, method: Basic.Consume, now_ms: int) -> Consumer | None:
        """Make a consumer; it is handed nothing until it is added to its queue. None: its queue is being opened."""
        tag = method.consumer_tag or f"amq.ctag-{secrets.token_urlsafe(16)}"
        if tag in channel.consumers:
            raise AmqpError(ReplyCode.NOT_ALLOWED, f"attempt to reuse consumer tag '{tag}'")
        if method.queue == REPLY_TO:
            queue = self._open_replies(channel, method)
            if not queue.is_open:
                return None
        else:
            queue = self._declarer.get_readable(channel, method.queue)
        arguments = arguments_of(method.arguments)
        what = f"queue '{queue.name}' in vhost '{self._vhost.name}'"
        rank = 0
        if PRIORITY in arguments and not queue.is_stream:
            rank = check_integer(arguments[PRIORITY], f"invalid arg '{PRIORITY}' for {what}")
        if queue.has_exclusive or (method.exclusive and (queue.consumers or queue.terms.is_single_active)):
            reason = f"queue '{queue.name}' in vhost '{self._vhost.name}' in exclusive use"
            raise AmqpError(ReplyCode.ACCESS_REFUSED, reason)
        if queue.is_stream or STREAM_OFFSET in arguments:
            return self._read_stream(channel, tag, queue, method, now_ms)
        consumer = Consumer(
            channel,
            tag,
            queue,
            self._output,
            encoder=self._encoder,
            metrics=self._metrics,
            outflow=self._outflow,
            no_ack=method.no_ack,
            exclusive=method.exclusive,
            rank=rank,
        )
        consumer.timeout_ms = _timeout_of(arguments, what)
        channel.consumers[tag] = consumer
        self._metrics.channel_changes += 1
        self._vhost.use(queue)
        if method.exclusive:
            queue.has_exclusive = True
        return consumer

    def _read_stream(
        self, channel: Channel, tag: str, queue: SharedQueue, method: Basic.Consume, now_ms: int
    ) -> Consumer:
        """Make a consumer that takes nothing from its queue."""
        what = f"queue '{queue.name}' in vhost '{self._vhost.name}'"
        arguments = arguments_of(method.arguments)
        if queue.is_stream:
            _check_stream_consumer(channel, method, what)
        else:
            _check_can_be_read_again(channel, queue, method, what)
        start = parse_start(arguments[STREAM_OFFSET], now_ms, what) if STREAM_OFFSET in arguments else Start(word=NEXT)
        wanted = parse_filter(arguments, what)
        self._vhost.use(queue)
        consumer = StreamConsumer(
            channel,
            tag,
            queue,
            self._output,
            encoder=self._encoder,
            metrics=self._metrics,
            outflow=self._outflow,
            no_ack=method.no_ack,
            broker=self._vhost.broker,
            start=start,
            stored=self._vhost.stored,
            wanted=wanted,
        )
        consumer.timeout_ms = _timeout_of(arguments, what)
        channel.consumers[tag] = consumer
        self._metrics.channel_changes += 1
        return consumer

    def _open_replies(self, channel: Channel, method: Basic.Consume) -> SharedQueue:
        """Make the queue of a channel's direct replies, which goes when its consumer does."""
        queue = self._vhost.find(channel.reply_name)
        if queue is not None and not [one for one in channel.consumers.values() if one.queue is queue]:
            return queue  # it was being opened
        if channel.reply_name:
            raise AmqpError(ReplyCode.PRECONDITION_FAILED, "reply consumer already set")
        if not method.no_ack:
            raise AmqpError(ReplyCode.PRECONDITION_FAILED, "reply consumer cannot acknowledge")
        queue = self._vhost.add(make_reply_name(), durable=False, auto_delete=True, owner=self._output, arguments={})
        channel.reply_name = queue.name
        return queue

    def cancel(self, channel: Channel, tag: str) -> None:
        """Stop a consumer; harmless where there is none."""
        consumer = channel.consumers.pop(tag, None)
        if consumer is not None:
            self._metrics.channel_changes += 1
            consumer.stop()
            if consumer.queue.name == channel.reply_name:
                channel.reply_name = ""
            self._maybe_remove(consumer)

    def _maybe_remove(self, consumer: Consumer) -> None:
        """Delete the queue of a consumer that is gone, if it goes with its last one; readers are none."""
        queue = consumer.queue
        if queue.is_auto_delete and not queue.consumers and not queue.is_deleted and not consumer.is_stream:
            self._vhost.remove(queue)

    def can_get(self, channel: Channel, queue: str) -> bool:
        """Return whether `get` need not wait: for its queue to open, for a commit, or for a rate."""
        if self._output.pace is not None or channel.transaction is not None:
            return False
        found = self._vhost.find(queue)
        return found is not None and found.is_open

    def get(self, channel: Channel, method: Basic.Get, now_ms: int) -> bytes | None:
        """Return the frames of one message, or None where there is none; empty ones while it is on its way."""
        queue = self._declarer.get_readable(channel, method.queue)
        stored = self._vhost.stored
        if queue.is_stream:
            raise not_of_streams("basic.get", f"queue '{queue.name}' in vhost '{self._vhost.name}'")
        if queue.lease_ms >= 0:
            self._vhost.use(queue)
        taken = take_first(queue, stored, now_ms)
        if taken == AWAY:
            return b""
        if taken <= 0:
            self._outflow.add_got_nothing()
            return None
        if queue.has_dead_letters:  # the next message is the first now, whose time may be over
            queue.run_soon()
        ring = channel.unacked
        tag = ring.skip(1) if method.no_ack else ring.push(stored, find_get_slot(channel, queue))
        pop = queue.pop
        left = pop.ready_count
        if self.notes_origin:
            properties = stored.buf[stored.properties_start[0] : stored.properties_end[0]]
            self.origin = decode_properties(properties).get(DIED_IN, b"")
        encoder = self._encoder
        encoder.tells_offsets = False
        encoder.counts_deliveries = queue.counts_deliveries
        self._metrics.redelivered += stored.attempt[0] > 1
        self._outflow.add_got(method.no_ack, stored.attempt[0] > 1)
        data = encoder.encode_get_ok(stored, channel.number, tag, self._output.payload_max, left)
        if method.no_ack:
            pop.ack_many(stored.queue_offset, 1)
        stored.clear()
        self._metrics.messages_out += 1
        self._metrics.bytes_out += encoder.body_bytes
        if self._output.pace is not None:
            self._output.pace.note(1, encoder.body_bytes)
        return data

    def settle(self, channel: Channel, now_ms: int) -> None:
        """Do what the run of acknowledgements in the channel's ring says.

        Raises:
            AmqpError: PRECONDITION_FAILED: the run ended with a tag that is not unacknowledged; NOT_IMPLEMENTED: it
                gives back or refuses messages of a stream.
        """
        self._apply(channel, now_ms)
        if self._refused:
            raise self._take_refusal()
        ring = channel.unacked
        if ring.unknown_in:
            reason = f"unknown delivery tag {ring.unknown_tag % (1 << 64)}"
            raise AmqpError(ReplyCode.PRECONDITION_FAILED, reason, ring.unknown_in)

    def recover(self, channel: Channel, now_ms: int, *, requeue: bool) -> None:
        """Show everything unacknowledged again.

        Raises:
            AmqpError: NOT_IMPLEMENTED: that is not asked for, or some is of a stream.
        """
        if not requeue:
            raise AmqpError(ReplyCode.NOT_IMPLEMENTED, "requeue=false")
        channel.unacked.settle_rest(REQUEUE)
        self._apply(channel, now_ms)
        if self._refused:
            raise self._take_refusal()

    def settle_held(self, channel: Channel, held: dict[int, int], now_ms: int) -> AmqpError | None:
        """Do what a committed transaction acknowledged and rejected; return what of it is against the rules."""
        channel.unacked.settle_held(held)
        self._apply(channel, now_ms)
        return self._take_refusal() if self._refused else None

    def _take_refusal(self) -> AmqpError:
        """Return what says that messages of a stream are not given back."""
        what, self._refused = f"queue '{self._refused}' in vhost '{self._vhost.name}'", ""
        return not_of_streams("basic.nack and basic.reject", what)

    def give_back(self, channel: Channel, now_ms: int) -> bool:
        """Give back some of what a channel has that ended, the oldest first; return whether there is more."""
        if channel.transaction is not None:
            channel.transaction.roll_back()
        channel.unacked.held = None
        channel.unacked.settle_oldest(RELEASED_A_STEP, REQUEUE)
        self._apply(channel, now_ms)
        self._refused = ""
        return channel.unacked.live > 0

    def release(self, channel: Channel, now_ms: int) -> None:
        """Stop all consumers of a channel that ended, and give back what it has left."""
        consumers = list(channel.consumers.values())
        channel.consumers.clear()
        self._metrics.channel_changes += 1
        for consumer in consumers:
            consumer.stop()
        while self.give_back(channel, now_ms):
            pass
        channel.slots.clear()  # they refer back to the channel, by its consumers
        channel.again, channel.get_slot = None, -1  # the former as well
        for consumer in consumers:
            self._maybe_remove(consumer)

    def _apply(self, channel: Channel, now_ms: int) -> None:
        """Do what the ring says."""
        ring = channel.unacked
        count = ring.settled_count
        if not count:
            return
        if ring.is_uniform():
            if ring.settled_kind[0] == _ACK:
                self._outflow.add_acked(count)
            self._finish(channel.slots[ring.settled_slot[0]], ring.settled_kind[0], ring.settled_offset, count, now_ms)
        else:
            for slot, kind in ring.settled_slots():
                offsets = array("q", bytes(8 * count))
                found = ring.collect(slot, kind, offsets)
                if kind == _ACK:
                    self._outflow.add_acked(found)
                self._finish(channel.slots[slot], kind, offsets, found, now_ms)
        if channel.starved:
            self.run_starved(channel)

    def _finish(self, taken: Slot, kind: int, offsets: array[int], count: int, now_ms: int) -> None:
        queue = taken.queue
        if queue.is_deleted or (taken.consumer is not None and taken.consumer.is_stream):
            if queue.is_stream and kind in {_DROP, _REQUEUE}:
                self._refused = queue.name
            return
        try:
            if kind == _DROP:
                queue.reject(offsets, count, now_ms)
            elif kind == _REQUEUE:
                queue.give_back(offsets, count, now_ms)  # wakes its consumers
            else:
                queue.pop.ack_many(offsets, count)
        except ReceiptError:
            return  # dropped by retention or an operator meanwhile: nothing to finish

    @staticmethod
    def run_starved(channel: Channel) -> None:
        """Let queues run again whose consumers on this channel had no room."""
        if channel.starved:
            starved, channel.starved = channel.starved, {}
            for consumer in starved.values():
                consumer.note_room()


def _timeout_of(arguments: Mapping[str, Field], what: str) -> int:
    """Return how long a consumer says that it may leave a message unacknowledged."""
    said = arguments.get(CONSUMER_TIMEOUT)
    if said is None:
        return NO_LIMIT
    RULES[CONSUMER_TIMEOUT].check(said, f"invalid arg '{CONSUMER_TIMEOUT}' for {what}")
    return cast("int", said.value)


def _check_stream_consumer(channel: Channel, method: Basic.Consume, what: str) -> None:
    """Check what a stream asks of its consumers.

    Raises:
        AmqpError: PRECONDITION_FAILED, or NOT_IMPLEMENTED, which ends the connection.
    """
    if PRIORITY in arguments_of(method.arguments):
        reason = f"invalid arg '{PRIORITY}' for {what} of queue type rabbit_stream_queue"
        raise AmqpError(ReplyCode.PRECONDITION_FAILED, reason)
    if not channel.prefetch_count:
        raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"consumer prefetch count is not set for '{what}'")
    if method.no_ack:
        raise not_of_streams("automatic acknowledgement", what)


def _check_can_be_read_again(channel: Channel, queue: SharedQueue, method: Basic.Consume, what: str) -> None:
    """Check that a queue that is consumed can be read besides.

    Raises:
        AmqpError: PRECONDITION_FAILED.
    """
    if queue.name == channel.reply_name:
        raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"{what} has direct replies, and cannot be read again")
    if method.exclusive:
        raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"invalid arg '{STREAM_OFFSET}' for an exclusive consumer")
