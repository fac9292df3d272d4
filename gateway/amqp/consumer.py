"""One consumer of a queue on one channel, and the slots that tell whose an unacknowledged delivery is."""

from __future__ import annotations

from core.flows import Outflow
from core.message import StoredBatch
from core.metrics import DoorMetrics
from core.queues.terms import NO_LIMIT
from gateway.amqp.channel import Channel
from gateway.amqp.delivery_codec import DeliveryEncoder
from gateway.amqp.output import ConnectionOutput
from gateway.amqp.shared_queue import TAKE_BYTES_MAX, TAKE_COUNT_MAX, SharedQueue

_TAKE_COUNT_MAX = TAKE_COUNT_MAX
_TAKE_BYTES_MAX = TAKE_BYTES_MAX
FREE_LOOKED_AT = 8  # released slots in one go: those of many messages that are not acknowledged would take long


class Slot:
    """Where unacknowledged deliveries of a channel belong; `consumer` is None for those of basic.get."""

    __slots__ = ("consumer", "from_tag", "queue")

    def __init__(self, queue: SharedQueue, consumer: Consumer | None) -> None:
        self.queue = queue
        self.consumer = consumer
        self.from_tag = 1  # deliveries before were another slot's of the number


class Consumer:
    """One consumer: takes what its prefetch and its connection have room for.

    Args:
        channel: The channel that it is on.
        tag: Its consumer tag.
        queue: What it consumes.
        output: Its connection.
        encoder: The door's.
        metrics: The door's.
        outflow: Of its virtual host.
        no_ack: Whether a message is done once it is sent.
        exclusive: Whether it has the queue to itself.
        rank: Its priority.
    """

    __slots__ = (
        "_encoder",
        "_metrics",
        "_outflow",
        "_output",
        "_prefetch",
        "_tag_text",
        "channel",
        "exclusive",
        "is_stream",
        "no_ack",
        "queue",
        "rank",
        "slot",
        "tag",
        "timeout_ms",
    )

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
        exclusive: bool,
        rank: int = 0,
    ) -> None:
        self.channel = channel
        self.tag = tag
        self.queue = queue
        self.no_ack = no_ack
        self.exclusive = exclusive
        self.is_stream = False  # reads without consuming
        self.timeout_ms = NO_LIMIT  # time to acknowledge, where its arguments have one
        self.rank = rank
        self.slot = take_slot(channel, Slot(queue, self))
        self._output = output
        self._encoder = encoder
        self._metrics = metrics
        self._outflow = outflow
        self._prefetch = channel.prefetch_count
        encoded = tag.encode()
        self._tag_text = bytes((len(encoded),)) + encoded

    @property
    def prefetch_count(self) -> int:
        """How many unacknowledged messages it may have, 0 for no limit."""
        return self._prefetch

    def start(self) -> None:
        """Be handed messages from now on, unless cancelled meanwhile."""
        if self.channel.consumers.get(self.tag) is self and not self.queue.is_deleted:
            self.queue.add_consumer(self)

    def room(self) -> int:
        """Return how many more messages it takes now."""
        room = self._room()
        if room <= 0:
            self.channel.starved[self.tag] = self
        return room

    def _room(self) -> int:
        channel = self.channel
        if channel.is_closing or not self._output.has_room():
            return 0
        room = _TAKE_COUNT_MAX
        if self._output.pace is not None:
            room = min(room, self._output.pace.room())
        if self.no_ack:
            return room
        if self._prefetch:
            room = min(room, self._prefetch - channel.unacked.in_flight[self.slot])
        if channel.prefetch_global:
            room = min(room, channel.prefetch_global - (channel.unacked.live - channel.unacked.got))
        return room

    def room_bytes(self) -> int:
        """Return how many bytes of records it takes at once, where there is room: at least one."""
        pace = self._output.pace
        return _TAKE_BYTES_MAX if pace is None else min(_TAKE_BYTES_MAX, pace.room_bytes())

    def note_room(self) -> None:
        """Be handed messages again."""
        self.queue.note_room(self)

    def deliver(self, stored: StoredBatch) -> None:
        """Send these messages, which are the consumer's until they are settled."""
        self._encoder.tells_offsets = False
        if stored.attempt[0] > 1:  # new messages and others are never taken together
            self._metrics.redelivered += stored.count
            self._outflow.redelivered += stored.count
        self.send(stored)
        if self.no_ack:
            self.queue.pop.ack_many(stored.queue_offset, stored.count)

    def send(self, stored: StoredBatch) -> None:
        """Send messages, in the form that the encoder was told."""
        channel = self.channel
        count = stored.count
        first = channel.unacked.skip(count) if self.no_ack else channel.unacked.push(stored, self.slot)
        self._encoder.counts_deliveries = self.queue.counts_deliveries
        data = self._encoder.encode_deliveries(stored, channel.number, self._tag_text, first, self._output.payload_max)
        self._output.put(data)
        self._metrics.messages_out += count
        self._outflow.add_delivered(count, self.no_ack)
        self._metrics.bytes_out += self._encoder.body_bytes
        if self._output.pace is not None:
            self._output.pace.note(count, self._encoder.body_bytes)

    def flush(self) -> None:
        """Write what was put together."""
        self._output.flush()

    def stop(self) -> None:
        """Take nothing more; what is unacknowledged stays with the channel."""
        if self.exclusive:
            self.queue.has_exclusive = False
        self.queue.remove_consumer(self)
        self.channel.starved.pop(self.tag, None)
        release_slot(self.channel, self.slot)

    def on_queue_deleted(self) -> None:
        """The queue is no more: forget it."""
        self.channel.consumers.pop(self.tag, None)
        self._metrics.channel_changes += 1
        self.stop()

    def tell_deleted(self) -> None:
        """Tell the client that its consumer is no more."""
        self._output.notify_cancel(self.channel, self.tag)


def take_slot(channel: Channel, slot: Slot) -> int:
    """Return the number of a free slot, now taken by `slot`."""
    unacked = channel.unacked
    free = channel.free_slots
    for _ in range(min(len(free), FREE_LOOKED_AT)):
        number = free.popleft()
        if not unacked.in_flight[number]:
            slot.from_tag = unacked.next_tag
            channel.slots[number] = slot
            unacked.take_slot(number, slot.consumer is None)
            return number
        free.append(number)  # behind the others: the next search begins with those
    channel.slots.append(slot)
    number = len(channel.slots) - 1
    unacked.take_slot(number, slot.consumer is None)
    return number


def find_get_slot(channel: Channel, queue: SharedQueue) -> int:
    """Return the number of the slot that gets of a queue have, the same from one to the next."""
    number = channel.get_slot
    slot = channel.slots[number] if number >= 0 else None
    if slot is None or slot.queue is not queue or slot.consumer is not None:
        number = channel.get_slot = take_slot(channel, Slot(queue, None))
        release_slot(channel, number)  # it may be another's once all of them are acknowledged
    return number


def release_slot(channel: Channel, number: int) -> None:
    """Let the slot be taken again, once nothing of it is unacknowledged."""
    channel.free_slots.append(number)
