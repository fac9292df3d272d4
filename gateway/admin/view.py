"""What the admin API looks at, and how its routes come by it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Literal

from fastapi import Depends, Request
from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric

from core.broker import Broker
from core.room import DISK_LOW, MEMORY_LOW
from gateway.admin.activity import QueueActivity
from gateway.admin.held_looks import HeldLooks
from gateway.admin.kept_looks import KeptLooks
from gateway.admin.limit_metrics import (
    audit_families,
    backend_families,
    memory_families,
    penalty_families,
    remembered_families,
)
from gateway.admin.metrics import GatewayCollector
from gateway.admin.oldest import OldestMessages
from gateway.admin.pace import Pace
from gateway.admin.rosters.keeper import Rosters
from gateway.admin.steps import LOOKS
from gateway.admin.totals import TotalsKeeper
from gateway.admin.trail import Trail
from gateway.admin.used_queues import UsedQueues
from gateway.amqp.door import AmqpDoor
from gateway.amqp.inventory import channels_of, describe_consumer
from gateway.amqp.queues import VirtualHost
from gateway.amqp.shared_queue import SharedQueue
from gateway.amqp.virtual_hosts import VirtualHosts
from gateway.audit.writer import Counts
from gateway.auth.api_tokens import ApiTokens
from gateway.auth.authenticator import Authenticator
from gateway.carriage import SecureAddress
from gateway.door import Door
from gateway.inventory import GroupEntry, PlaceEntry, take_each
from gateway.mqtt.door import MqttDoor
from gateway.net.descriptors import Capacity
from gateway.process.memory import MemoryWatch
from gateway.retention import LogFiles
from gateway.rocketmq.door import RocketmqDoor
from gateway.rocketmq.topic_table import OWN_GROUPS
from gateway.settings.models import GatewaySettings

_OWN_GROUPS = OWN_GROUPS.decode()  # begins the names of official brokers' own, and of the gateway's


def of_users(groups: Iterator[GroupEntry | None]) -> Iterator[GroupEntry | None]:
    """Give the groups but those by which the gateway keeps how far it is itself; None is a look in vain."""
    return (None if entry is not None and entry.group.startswith(_OWN_GROUPS) else entry for entry in groups)


class AdminView:
    """What the API may look at."""

    def __init__(
        self,
        broker: Broker,
        doors: Mapping[str, Door],
        capacity: Capacity,
        authenticator: Authenticator,
        *,
        is_ready: Callable[[], bool],
        uptime_ms: Callable[[], int],
        since_ms: int,
        listening: Callable[[], Iterable[tuple[str, tuple[str, int]]]],
        begin_read: Callable[[int], int],
        settings: Callable[[], GatewaySettings],
        certificates: Callable[[], Iterable[SecureAddress]] = tuple,
        api_tokens: ApiTokens,
        memory: MemoryWatch,
        audited: Counts | None = None,
        listeners: Callable[[], Iterable[tuple[str, str, str, int]]] = tuple,
        log_files: LogFiles | None = None,
    ) -> None:
        self.broker = broker
        self.doors = doors
        self.capacity = capacity
        self.authenticator = authenticator
        self.is_ready = is_ready
        self.uptime_ms = uptime_ms
        self.listening = listening
        self.begin_read = begin_read
        self.settings = settings  # in force
        pace = Pace()
        self.totals = self._make_totals(pace)
        self.rosters = Rosters(pace)
        self.trail = Trail()
        self.since_ms = since_ms  # the start, by the gateway's clock: how what came before ended may not be known
        kept_looks = KeptLooks(self.trail, broker.journal("looks"))
        self.activity = QueueActivity(broker, self._consumed, self.trail, self._places, kept_looks)
        self.held_looks = HeldLooks(lambda: self.vhosts)
        self.certificates = certificates
        self.api_tokens, self.memory = api_tokens, memory
        self.audited = audited or Counts()
        self.log_files = log_files
        self.registry = CollectorRegistry()
        self.loop_delay_s = 0.0  # in the last second
        self.rates = 0.0, 0.0  # messages a second that came in and went out, of late
        self.registry.register(
            GatewayCollector(
                broker,
                capacity,
                certificates,
                totals=lambda: self.totals.latest,
                loop_delay_s=lambda: self.loop_delay_s,
                guards=self._guard_families,
                listeners=listeners,
            )
        )

    def _guard_families(self) -> Iterator[Metric]:
        yield from audit_families(self.audited)
        yield from memory_families(self.memory)
        yield from backend_families(self.authenticator.backends.all)
        yield from remembered_families(
            {"passwords": self.authenticator.passwords, "tokens": self.authenticator.tokens.memory}
        )
        yield from penalty_families(self.authenticator.penalties, time.time_ns() // 1_000_000)

    def _consumed(self) -> Iterator[tuple[VirtualHost, SharedQueue, str] | None]:
        for count, connection in enumerate(take_each(self.amqp.connections)):
            if connection.vhost is not None:
                for channel in channels_of(connection):
                    for consumer in list(channel.consumers.values()):
                        yield connection.vhost, consumer.queue, describe_consumer(connection, consumer)
            if count % LOOKS == 0:
                yield None  # most connections may have no consumer

    def _places(self) -> Iterator[PlaceEntry | None]:
        for door in self.doors.values():
            yield from door.inventory().places()

    def _make_totals(self, pace: Pace) -> TotalsKeeper:
        return TotalsKeeper(
            lambda: iter(UsedQueues(self.broker, lambda: self.vhosts)),
            self._count_channels,
            self.mqtt.sessions.tallies,
            OldestMessages(self.broker),
            pace,
            lambda: sum(map(len, self.vhosts)),
            self._repeating_groups,
            self.mqtt.inventory().backlogs,
            self._groups,
        )

    def _repeating_groups(self) -> Iterator[GroupEntry | None]:
        for door in self.doors.values():
            yield from door.inventory().repeating_groups()

    def _groups(self) -> Iterator[GroupEntry | None]:
        for door in self.doors.values():
            yield from of_users(door.inventory().groups())

    def _count_channels(self) -> Iterator[int]:
        return (len(channels_of(connection)) for connection in take_each(self.amqp.connections))

    @property
    def amqp(self) -> AmqpDoor:
        """The AMQP door."""
        door = self.doors[AmqpDoor.name]
        assert isinstance(door, AmqpDoor)
        return door

    @property
    def mqtt(self) -> MqttDoor:
        """The MQTT door."""
        door = self.doors[MqttDoor.name]
        assert isinstance(door, MqttDoor)
        return door

    @property
    def rocketmq(self) -> RocketmqDoor:
        """The RocketMQ door."""
        door = self.doors[RocketmqDoor.name]
        assert isinstance(door, RocketmqDoor)
        return door

    @property
    def vhosts(self) -> VirtualHosts:
        """The virtual hosts of AMQP."""
        return self.amqp.vhosts

    @property
    def vhost(self) -> VirtualHost:
        """The virtual host that clients are in that name none."""
        return self.amqp.vhost

    @property
    def disk(self) -> Literal["ok", "low"]:
        """Whether there is room for what publishers bring."""
        return "low" if self.broker.room.is_disk_low else "ok"

    def alarms(self) -> list[str]:
        """Return what holds new work up, in words; docs/operations.md says what each means."""
        marks, room = self.capacity.watermarks, self.broker.room
        found = (
            (room.is_disk_low, DISK_LOW),
            (room.is_memory_low, MEMORY_LOW),
            (marks.is_full(self.capacity.count), "there are as many connections as there may be"),
            (self.capacity.is_paused, "file descriptors allow no more connections"),
            (self.broker.is_failed, "the disk refused a sync"),
        )
        return [text for is_on, text in found if is_on]


async def _find_view(request: Request) -> AdminView:
    view = request.app.state.view
    assert isinstance(view, AdminView)
    return view


# The routes know no gateway: FastAPI keeps for good what each function of a route has in its closure.
View = Annotated[AdminView, Depends(_find_view)]
