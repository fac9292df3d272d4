"""What the RocketMQ door has, for operators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from core.stage import Stage
from gateway.inventory import (
    SUBSCRIBED_LATER,
    ConnectionEntry,
    FateEntry,
    GroupEntry,
    Inventory,
    PlaceEntry,
    QueueEntry,
    SessionEntry,
    describe_connection,
    name_some,
    take_each,
    text_of,
)
from gateway.rocketmq.delay import PLACES_GROUP as DELAYS_GROUP
from gateway.rocketmq.pop.claims import OWNER_PREFIX
from gateway.rocketmq.services import OpenConnection, RocketmqServices
from gateway.rocketmq.topic_table import DEAD_PREFIX, RETRY_PREFIX, SENT_GROUP, queue_key
from gateway.rocketmq.transactions.half import HALF_KEY, OP_KEY
from gateway.rocketmq.transactions.progress import PLACES_GROUP as TRANSACTIONS_GROUP

DOOR = "rocketmq"
PLACES_MAX = 4_000  # that are looked at every few seconds, as of MQTT's sessions
_HANDED_ON = "handed on at its time, as a message of its own"
_ENDED = "its transaction ended: committed, as a message of its own, or rolled back, or given up"
_SENT_BACK = FateEntry("group", text_of(SENT_GROUP), Stage.DONE, done_as="sent back by an operator")


class RocketmqInventory(Inventory):
    """Connections, and the queues of topics."""

    def __init__(self, services: RocketmqServices) -> None:
        self._services = services

    def open_connections(self) -> Iterable[OpenConnection]:
        """Return the open connections."""
        return self._services.connections

    def connection_changes(self) -> object:
        """Return how many came, and how many are there: something else once one came or went."""
        counts = self._services.metrics
        return counts.connections_total, counts.connections

    def describe_open(self, connection: OpenConnection) -> ConnectionEntry | None:
        """Return what one of these is; None where it is closed."""
        is_open = connection in self._services.connections
        client = connection.client.client_id
        return describe_connection(connection.transport, connection.identity, client) if is_open else None

    def turn_out(self, conn_id: int, reason: str, now_ms: int) -> bool:
        """Close a connection; return whether it was there."""
        found = [one for one in self._services.connections if one.transport.conn_id == conn_id]
        for one in found:
            one.turn_out(now_ms, reason)
        return bool(found)

    def sessions(self) -> Iterator[SessionEntry]:
        """Give none: groups keep offsets, and no client keeps anything."""
        return iter(())

    def groups(self) -> Iterator[GroupEntry | None]:
        """Give the groups by the places that they left."""
        for group, key, offset in self._services.broker.consumer_offsets.items():
            yield self._describe_group(group, key, offset)

    def repeating_groups(self) -> Iterator[GroupEntry | None]:
        """Give those that were given messages once more, by POP or from their retry topics."""
        offsets = self._services.broker.consumer_offsets
        for group, key in take_each(self._services.retried.known()):
            offset = offsets.get(group, key)
            yield None if offset is None else self._describe_group(group, key, offset)

    def group_members(self, group: str) -> Iterator[str]:
        """Give the clients whose heartbeats name the group, those too that left no place yet."""
        live = self._services.clients.find_group(group)
        return iter(()) if live is None else (member.client_id for member in take_each(live.members.values()))

    def _describe_group(self, group: bytes, key: bytes, offset: int) -> GroupEntry:
        broker = self._services.broker
        queue_ref = broker.find_queue(key)
        live = self._services.clients.find_group(text_of(group))
        end = broker.max_offset(queue_ref) if queue_ref >= 0 else offset
        return GroupEntry(
            door=DOOR,
            group=text_of(group),
            topic=text_of(key),
            light_queue=text_of(key),
            next_offset=offset,
            lag=max(end - max(offset, broker.min_offset(queue_ref)), 0) if queue_ref >= 0 else 0,
            members=0 if live is None else len(live.members),
            redelivered=self._services.retried.find(group, key),
            came=end,
        )

    def queues(self) -> Iterator[QueueEntry | None]:
        """Give the queues of the topics that were made, those that were sent to."""
        broker = self._services.broker
        for queue_ref in self.queue_refs():
            key = b"" if queue_ref is None else broker.queue_key(queue_ref)
            yield (
                None
                if queue_ref is None
                else QueueEntry(
                    name=text_of(key),
                    light_queue=text_of(key),
                    min_offset=broker.min_offset(queue_ref),
                    max_offset=broker.max_offset(queue_ref),
                    readers=broker.reader_count(queue_ref),
                )
            )

    def queue_refs(self) -> Iterator[int | None]:
        """Give the numbers of these queues."""
        services = self._services
        for name in services.topics.names():
            topic = services.topics.find(name)
            for queue_id in range(0 if topic is None else topic.write_queues):
                queue_ref = services.broker.find_queue(queue_key(name, queue_id))
                yield queue_ref if queue_ref >= 0 else None
            yield None

    def places(self) -> Iterator[PlaceEntry]:
        """Give how far groups are by what they committed, the first of many."""
        for group, key, offset in islice(self._services.broker.consumer_offsets.items(), PLACES_MAX):
            live = self._services.clients.find_group(text_of(group))
            by = "" if live is None else name_some(member.client_id.encode() for member in live.members.values())
            yield PlaceEntry(key, group, offset, offset, by)

    def _find_acknowledger(self, group: bytes, key: bytes, offset: int) -> str:
        """Return the member that acknowledged a message, by POP or as it pulled; empty where that is not kept."""
        find = self._services.broker.pop.acknowledgers.find
        return text_of(find((key, OWNER_PREFIX + group), offset) or find((key, group), offset))

    def fates(self, light_queue: bytes, offset: int) -> Iterator[FateEntry | None]:
        """Give how far each group is that ever committed an offset on the queue."""
        services = self._services
        if light_queue == HALF_KEY:
            is_over = services.transactions.is_over(offset)
            yield _tell_inside(TRANSACTIONS_GROUP, _ENDED, is_over=is_over)._replace(done_queue=OP_KEY)
        for group, key, committed in services.broker.consumer_offsets.items():
            if key != light_queue:
                yield None
                continue
            if group == SENT_GROUP:  # an operator is no reader
                yield _SENT_BACK if offset < committed else None
                continue
            if group in {DELAYS_GROUP, TRANSACTIONS_GROUP}:  # nor is the gateway itself
                yield _tell_inside(group, _HANDED_ON, is_over=offset < committed) if group == DELAYS_GROUP else None
                continue
            taken = services.claims.find(group, key)
            is_fresh = taken is not None and offset >= taken.fresh_from
            stage = Stage.WAITS if taken is None else taken.stage(offset)
            stage = Stage.DONE if offset < committed else stage
            yield FateEntry(
                "group",
                text_of(group),
                stage,
                holder=self._find_acknowledger(group, key, offset) if stage is Stage.DONE else "",
                done_as="acknowledged, or not wanted by its filter",
                ends=((key, group, offset),),
                letters=(queue_key(RETRY_PREFIX + group, 0), queue_key(DEAD_PREFIX + group, 0)),
                may_be=("passed over, as its group was sent on",),
                or_else=() if is_fresh else (SUBSCRIBED_LATER,),
                is_lasting=True,
                is_fresh=is_fresh,
            )


def _tell_inside(group: bytes, done_as: str, *, is_over: bool) -> FateEntry:
    """Return how far the gateway itself is with a message, by the name under which it keeps that."""
    return FateEntry("group", text_of(group), Stage.DONE if is_over else Stage.WAITS, done_as=done_as, is_told=True)
