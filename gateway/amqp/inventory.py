"""What the AMQP door has, for operators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from core.broker import Broker
from core.lmq.queue_name import amqp_level_name, level_of
from core.queues.levelled_queue import LEVEL_SHIFT, LevelledQueue
from core.stage import Stage
from gateway.amqp.ack_timeouts import find_timeout
from gateway.amqp.channel import Channel
from gateway.amqp.consumer import Consumer
from gateway.amqp.letter_queues import find_letter_queues
from gateway.amqp.queue_pops import GROUP
from gateway.amqp.queues import VirtualHost
from gateway.amqp.services import AmqpServices, OpenConnection
from gateway.amqp.shared_queue import SharedQueue
from gateway.amqp.stream_consumer import StreamConsumer
from gateway.inventory import (
    ACKNOWLEDGED,
    SUBSCRIBED_LATER,
    ChannelEntry,
    ConnectionEntry,
    ConsumerEntry,
    FateEntry,
    Inventory,
    QueueEntry,
    SessionEntry,
    describe_connection,
    name_channel,
    name_connection,
    take_each,
    text_of,
)

TRIMMED = "dropped: its stream keeps no more"  # by age or bytes
NOT_WANTED = "not wanted by its filter"
OpenChannel = tuple[OpenConnection, Channel]
OpenConsumer = tuple[OpenChannel, Consumer]


class AmqpInventory(Inventory):
    """Connections, and the queues of all virtual hosts."""

    def __init__(self, services: AmqpServices) -> None:
        self._services = services

    def open_connections(self) -> Iterable[OpenConnection]:
        """Return the open connections."""
        return self._services.connections

    def connection_changes(self) -> object:
        """Return how many came, and how many are there: something else once one came or went."""
        counts = self._services.metrics
        return counts.connections_total, counts.connections

    def channel_changes(self) -> object:
        """Return something else once a channel or consumer came or went, by itself or with its connection."""
        return self.connection_changes(), self._services.metrics.channel_changes

    def describe_open(self, connection: OpenConnection) -> ConnectionEntry | None:
        """Return what one of these is; None where it is closed, or the gateway's own."""
        is_shown = _is_shown(connection) and connection in self._services.connections
        if not is_shown:
            return None
        return _describe_connection(connection, is_held=self._services.held.is_held_at(connection.transport))

    def place_of(self, connection: OpenConnection) -> tuple[str | None, str]:
        """Return the user and the virtual host of an open connection."""
        user = None if connection.identity is None else connection.identity.user
        return user, "" if connection.vhost is None else connection.vhost.name

    def channels(self) -> Iterator[ChannelEntry | None]:
        """Give the channels of all connections."""
        return (None if one is None else self.describe_channel(one) for one in self.open_channels())

    def consumers(self) -> Iterator[ConsumerEntry | None]:
        """Give the consumers of all channels."""
        return (None if one is None else self.describe_consumer(one) for one in self.open_consumers())

    def open_channels(self) -> Iterator[OpenChannel | None]:
        """Give the channels of all connections as the door has them."""
        connections = self._services.connections
        for one in take_each(connections):
            if not _is_shown(one) or one not in connections:
                yield None
                continue
            for channel in channels_of(one):
                yield one, channel

    def open_consumers(self) -> Iterator[OpenConsumer | None]:
        """Give the consumers of all channels as the door has them."""
        for found in self.open_channels():
            if found is None:
                yield None
                continue
            for consumer in list(found[1].consumers.values()):
                yield found, consumer

    def describe_channel(self, found: OpenChannel) -> ChannelEntry | None:
        """Return what a channel is; None where it is closed."""
        one, channel = found
        if one not in self._services.connections or channel not in channels_of(one):
            return None
        return _describe_channel(_describe_connection(one), channel)

    def name_channel(self, found: OpenChannel) -> str:
        """Return what an open channel is called, without describing it."""
        one, channel = found
        return name_channel(name_connection(one.transport), channel.number)

    def describe_consumer(self, found: OpenConsumer) -> ConsumerEntry | None:
        """Return what a consumer is; None where it is cancelled."""
        (one, channel), consumer = found
        entry = self.describe_channel((one, channel))
        is_there = entry is not None and channel.consumers.get(consumer.tag) is consumer
        if entry is None or not is_there:
            return None
        return _describe_consumer(entry, consumer, self._services.settings.consumer_timeout_ms)

    def turn_out(self, conn_id: int, reason: str, now_ms: int) -> bool:
        """Close a connection; return whether it was there."""
        found = [one for one in self._services.connections if one.transport.conn_id == conn_id]
        for one in found:
            one.turn_out(now_ms, reason)
        return bool(found)

    def sessions(self) -> Iterator[SessionEntry]:
        """Give none: nothing outlives a connection but queues."""
        return iter(())

    def queues(self) -> Iterator[QueueEntry | None]:
        """Give the queues; expired messages that nobody has asked for are counted for up to 10 s."""
        services = self._services
        for vhost in services.vhosts:
            for queue in vhost:
                yield None if queue.is_deleted else describe_queue(services.broker, vhost, queue)
            yield None

    def fates(self, light_queue: bytes, offset: int) -> Iterator[FateEntry | None]:
        """Give how far the queue is, and of a stream each consumer that reads it.

        What an earlier queue of the name had is not asked of this one.
        """
        level = level_of(light_queue)
        for vhost in self._services.vhosts:
            for queue in vhost:
                if queue.is_deleted or not _has(queue, light_queue, level) or offset < queue.first_offset:
                    yield None
                else:
                    shifted, pop = offset | level << LEVEL_SHIFT, queue.pop
                    stage = pop.stage(shifted)
                    holder = ""
                    for each in self._holders(vhost, queue, shifted, stage):
                        yield None
                        holder = holder or each
                    yield FateEntry(
                        "queue",
                        f"{queue.name} in {vhost.name}",
                        stage,
                        holder=holder,
                        done_as=TRIMMED if queue.is_stream else ACKNOWLEDGED,
                        ends=((light_queue, GROUP, offset), (queue.light_name, GROUP, shifted)),
                        letters=tuple(map(vhost.light_name, find_letter_queues(vhost, queue, {})))
                        if queue.has_dead_letters
                        else (),
                        died_in=queue.name,
                        first_place=pop.first_place if isinstance(pop, LevelledQueue) else 0,
                        may_be=self._other_ends(queue, light_queue, offset),
                        ttl_ms=queue.limit_ms,
                        is_told=self._services.broker.pop.tells_endings(light_queue, GROUP),
                        is_fresh=self._is_fresh(light_queue, offset),
                    )
                    yield from self._readers(vhost, queue, offset)

    def _readers(self, vhost: VirtualHost, queue: SharedQueue, offset: int) -> Iterator[FateEntry | None]:
        """Give how far each consumer of a stream is, from when it began to read."""
        for connection in take_each(self._services.connections) if queue.is_stream and queue.streams else ():
            yield None
            for channel in channels_of(connection) if connection.vhost is vhost else ():
                for one in list(channel.consumers.values()):
                    if isinstance(one, StreamConsumer) and one.queue is queue and one.span is not None:
                        yield _tell_reader(describe_consumer(connection, one), one, one.span, offset)

    def _other_ends(self, queue: SharedQueue, light_queue: bytes, offset: int) -> tuple[str, ...]:
        """Return how a message of a queue may have ended that nobody acknowledged and whose time is not over.

        A queue that drops its oldest by their number alone has dropped none that not so many others followed. Nobody
        takes a message out of a stream.
        """
        if queue.is_stream:
            return ()
        ends, terms = ["rejected", "purged"], queue.terms
        if terms.has_length and not terms.is_refusing:
            broker = self._services.broker
            behind = broker.max_offset(broker.find_queue(light_queue)) - offset - 1
            if terms.bytes_max >= 0 or terms.priority_max > 0 or behind >= terms.length_max:
                ends.append("dropped as its queue was full")
        if terms.delivery_limit >= 0:
            ends.append("given up after too many attempts")
        return tuple(ends)

    def _is_fresh(self, light_queue: bytes, offset: int) -> bool:
        pop = self._services.broker.pop.find(light_queue, GROUP)
        return pop is not None and offset >= pop.fresh_from

    def _holders(self, vhost: VirtualHost, queue: SharedQueue, offset: int, stage: Stage) -> Iterator[str]:
        """Give, by connection, the consumer that has a message, or had it last as far as its channel remembers."""
        if stage not in {Stage.TAKEN, Stage.DONE}:
            return
        for connection in take_each(self._services.connections):
            for channel in channels_of(connection) if connection.vhost is vhost else ():
                ring = channel.unacked
                for number, slot in enumerate(channel.slots):
                    if slot is None or slot.queue is not queue or (slot.consumer and slot.consumer.is_stream):
                        continue  # what reads without consuming has no message of the queue
                    if stage is Stage.TAKEN:
                        is_its = ring.holds(number, offset)
                    else:
                        is_its = ring.has_settled(number, offset, slot.from_tag)
                    if is_its:
                        yield describe_consumer(connection, slot.consumer)
            yield ""


def _has(queue: SharedQueue, light_queue: bytes, level: int) -> bool:
    if not level:
        return queue.light_name == light_queue
    return level <= queue.terms.priority_max and amqp_level_name(queue.light_name, level) == light_queue


def describe_consumer(connection: OpenConnection, consumer: Consumer | None) -> str:
    """Return how operators know a consumer; None stands for a get."""
    tag = "a get" if consumer is None else f"consumer {consumer.tag}"
    user = "" if connection.identity is None else connection.identity.user
    return f"{tag} of {user} at {connection.transport.peer}" if user else f"{tag} at {connection.transport.peer}"


def _tell_reader(name: str, one: StreamConsumer, span: range, offset: int) -> FateEntry:
    """Return how far a consumer of a stream is with a message.

    Args:
        name: How operators know it.
        one: The consumer.
        span: What it has read.
        offset: The message's.
    """
    stage, ring = Stage.DONE, one.channel.unacked
    done_as, or_else = ACKNOWLEDGED, ""
    if offset >= span.stop:
        stage = Stage.WAITS
    elif offset < span.start:
        done_as = SUBSCRIBED_LATER
    elif ring.holds(one.slot, offset):
        stage = Stage.TAKEN
    elif one.has_filter and not ring.has_settled(one.slot, offset, one.channel.slots[one.slot].from_tag):
        or_else = NOT_WANTED
    is_its = stage is Stage.TAKEN or (stage is Stage.DONE and done_as == ACKNOWLEDGED and not or_else)
    return FateEntry(
        "reader",
        name,
        stage,
        f"began at offset {span.start}",
        holder=name if is_its else "",
        done_as=done_as,
        or_else=(or_else,) if or_else else (),
        is_fresh=True,  # all that it read it read since the start
    )


def _is_shown(one: OpenConnection) -> bool:
    """Return whether it is a client's: what the gateway connects to itself has no number."""
    return one.transport.conn_id > 0


def _describe_connection(one: OpenConnection, *, is_held: bool = False) -> ConnectionEntry:
    vhost = "" if one.vhost is None else one.vhost.name
    channels = len(channels_of(one))
    return describe_connection(one.transport, one.identity, one.client, vhost=vhost, channels=channels, is_held=is_held)


def channels_of(one: OpenConnection) -> list[Channel]:
    """Return the open channels of a connection."""
    connection = one.output.connection
    return [] if connection is None else list(connection.channels.values())


def _describe_channel(connection: ConnectionEntry, channel: Channel) -> ChannelEntry:
    return ChannelEntry(
        connection=connection,
        number=channel.number,
        consumers=len(channel.consumers),
        unacked=channel.unacked.live,
        prefetch=channel.prefetch_count,
        prefetch_global=channel.prefetch_global,
        is_confirming=channel.is_confirming,
        is_transactional=channel.transaction is not None,
        unconfirmed=channel.published - channel.confirmed,
    )


def _describe_consumer(channel: ChannelEntry, consumer: Consumer, timeout_ms: int) -> ConsumerEntry:
    queue = consumer.queue
    return ConsumerEntry(
        channel=channel,
        tag=consumer.tag,
        queue=queue.name,
        is_acknowledging=not consumer.no_ack,
        is_exclusive=consumer.exclusive,
        is_active=not queue.terms.is_single_active or queue.consumers[:1] == [consumer],
        prefetch=consumer.prefetch_count,
        timeout_ms=find_timeout(queue, consumer, timeout_ms),
    )


def count_messages(broker: Broker, vhost: VirtualHost, queue: SharedQueue) -> tuple[int, int]:
    """Return how many messages are ready, and how many consumers have.

    Where nothing is in flight, what is taken and done in a queue is not opened for its figures: that takes ten times as
    long, and room. A queue that is being opened has none yet.
    """
    if queue.is_deleted:
        return 0, 0
    first = end = 0
    if queue.opened is None:
        queue_ref = broker.find_queue(queue.light_name)
        if queue_ref >= 0:
            first, end = broker.min_offset(queue_ref), broker.max_offset(queue_ref)
        if end <= first and not queue.terms.priority_max:
            return 0, 0
    vhost.open(queue)
    if not queue.is_open:
        return 0, 0
    if queue.opened is None and not queue.terms.priority_max:
        place = vhost.pops.resting_at(queue.light_name, queue.first_offset)
        if place >= 0:
            return max(end - max(place, first), 0), 0
    return queue.pop.ready_count, queue.pop.unacked_count


def count_given(broker: Broker, queue: SharedQueue, queue_ref: int) -> int:
    """Return how many messages ever came into a queue, which is that light queue."""
    if queue.terms.priority_max > 0 and queue.is_open and isinstance(queue.pop, LevelledQueue):
        return sum(map(broker.max_offset, queue.pop.refs))
    return max(broker.max_offset(queue_ref) - queue.first_offset, 0) if queue_ref >= 0 else 0


def count_again(queue: SharedQueue) -> int:
    """Return how many times consumers got messages of a queue once more, since the start."""
    return queue.opened.again_count if queue.opened is not None and not queue.is_deleted else 0


def describe_queue(broker: Broker, vhost: VirtualHost, queue: SharedQueue) -> QueueEntry:
    """Return the entry of a queue; expired messages that nobody has asked for are counted for up to 10 s."""
    queue_ref = broker.find_queue(queue.light_name)
    min_offset, max_offset = (broker.min_offset(queue_ref), broker.max_offset(queue_ref)) if queue_ref >= 0 else (0, 0)
    ready, unacked = count_messages(broker, vhost, queue)
    return QueueEntry(
        name=queue.name,
        light_queue=text_of(queue.light_name),
        min_offset=min_offset,
        max_offset=max_offset,
        readers=queue.reader_count(),
        ready=ready,
        unacked=unacked,
        vhost=vhost.name,
        first_waiting=_find_first(broker, vhost, queue, queue_ref, min_offset) if ready or unacked else (),
        again=count_again(queue),
        came=_count_came(broker, queue, max_offset),
    )


def _count_came(broker: Broker, queue: SharedQueue, max_offset: int) -> int:
    """Return how many messages ever came into a queue, as far as it is open: those with a priority, too."""
    if queue.terms.priority_max > 0 and queue.is_open and isinstance(queue.pop, LevelledQueue):
        return sum(map(broker.max_offset, queue.pop.refs))
    return max_offset


def _find_first(
    broker: Broker, vhost: VirtualHost, queue: SharedQueue, queue_ref: int, min_offset: int
) -> tuple[tuple[int, int], ...]:  # fmt: skip
    """Return the light queues of a queue that holds messages, each with the first offset that is not done."""
    if queue.opened is None:
        return ((queue_ref, max(vhost.pops.resting_at(queue.light_name, queue.first_offset), min_offset)),)
    names = (amqp_level_name(queue.light_name, level) for level in range(1, queue.terms.priority_max + 1))
    pops = [broker.pop.find(name, GROUP) for name in (queue.light_name, *names)]
    return tuple((pop.queue_ref, pop.floor) for pop in pops if pop is not None and pop.ready_count + pop.unacked_count)
