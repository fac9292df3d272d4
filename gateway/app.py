"""Builds the parts, starts them in order, and stops them the other way round."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterator
from itertools import chain

import core.message
from core.broker import Broker
from core.cache_budget import CacheBudget
from core.lmq.waiters import Reader
from core.metrics import Metrics
from core.store.descriptors import descriptor_count_max
from gateway.admin.opening import AdminOpening, Site
from gateway.amqp.door import AmqpDoor
from gateway.audit.log import AuditLog
from gateway.auth.api_tokens import ApiTokens
from gateway.auth.authenticator import Authenticator
from gateway.auth.check_threads import CheckThreads
from gateway.auth.recheck import recheck
from gateway.auth.users import User
from gateway.bridges.manager import Bridges
from gateway.certificate_watch import LOOK_INTERVAL_MS as CERTIFICATES_INTERVAL_MS
from gateway.door import ADMIN, Door, find_listening
from gateway.event_stream.stream import DROPS_INTERVAL_MS, EventStream
from gateway.events import Actor, Kind
from gateway.listeners import Listeners
from gateway.logs import set_up_logs
from gateway.mqtt.door import MqttDoor
from gateway.net.admission import Admission
from gateway.net.connection_table import ConnectionTable
from gateway.net.descriptors import LOOK_INTERVAL_MS, Capacity, descriptor_limit, find_connections_max
from gateway.net.endpoint import Endpoint
from gateway.net.limits import AddressConnections, ConnectionLimits
from gateway.net.paces import AllPaces
from gateway.net.shares import Shares
from gateway.net.watermarks import Watermarks
from gateway.process.boot import find_boot
from gateway.process.compiled import find_warnings
from gateway.process.memory import LOOK_INTERVAL_MS as MEMORY_INTERVAL_MS, MemoryWatch
from gateway.rocketmq.door import RocketmqDoor
from gateway.runtime.disk_threads import PrepareThread, RoomWatch
from gateway.runtime.flush_thread import FlushThread
from gateway.runtime.loop import Alarm, BrokerTimer, Clock, CoarseTimer, TurnRunner
from gateway.settings.changes import find_changes, log_changes, settings_in_force
from gateway.settings.models import GatewaySettings
from gateway.telemetry.manager import Telemetry
from gateway.upkeep import DEPARTED_INTERVAL_MS, TEND_INTERVAL_MS, Every, Upkeep

LOGGER = logging.getLogger(__name__)

DRAIN_S = 1.5  # what open connections get to take their last bytes when we stop
DRAIN_MORE_S = 1.5  # and those that are behind, as long as they read on
ENDS_S = 0.5  # what the ends of those that are left get: some are told in each turn
FLUSH_STOP_S = 2.0  # what a sync under way gets then


class Gateway:
    """One gateway over one data folder, on the running loop.

    Args:
        settings: All of them.
        free_bytes: How much room the disk has, if not as the store sees it.

    Raises:
        DataFolderInUseError, DataFolderUnusableError: The folder cannot be opened.
        DescriptorsError: The process may open too few files.
        SettingsError: A user's password is missing.
    """

    def __init__(self, settings: GatewaySettings, *, free_bytes: Callable[[], int] | None = None) -> None:
        self.settings = settings
        self.clock = Clock()
        self.is_ready = False
        self.stopped = asyncio.Event()  # set when the gateway cannot go on by itself
        self._loop = loop = asyncio.get_running_loop()
        self.check_threads = CheckThreads(loop)
        caches = CacheBudget(settings.cache.bytes_max)
        self.authenticator = Authenticator(settings.auth, os.environ, self.clock, self.check_threads, caches)
        self.capacity = self._make_capacity()
        self.telemetry = Telemetry(settings.telemetry)
        self.engine = self.telemetry.open_engine(settings.data_dir, settings.store, now_ms=self.clock.now_ms())
        self.store = self.engine.store
        self.started_ms = self.clock.go_on_from(self.store.report.newest_ms)
        self.broker = self._make_broker(caches)
        self.authenticator.keep_secret(self.broker.table("auth"))
        self.authenticator.keep_users(self.broker.table("auth_users"))
        self.authenticator.quotas.keep(self.broker.table("user_limits"))
        self.authenticator.rules.keep(self.broker.table("auth_rules"))
        self.authenticator.on_changed = self._recheck
        self._make_guards()
        self.connections = ConnectionTable()
        self.admission = Admission(loop.call_soon)
        self.shares = Shares(loop.call_soon, self.broker.metrics.loop)
        self.timer = CoarseTimer(self.clock)
        self._broker_timer = BrokerTimer(self.broker, self.timer)
        self.flusher = FlushThread(self.store, self.engine.durability, loop, self._on_synced)
        self.engine.durability.request_flush = self.flusher.request
        self.doors: dict[str, Door] = {}
        self.upkeep = Upkeep(self.broker, self.store, self.doors, settings.store.retention, settings.data_dir)
        measure, lacks_room = free_bytes or self.store.free_bytes, self.store.pages_ahead.lacks_room
        self.room_watch = RoomWatch(self.broker.room, measure, loop, self._note_room, lacks_room)
        self.preparer = PrepareThread(
            self.store,
            loop,
            self.flusher.fail,
            self.room_watch,
            is_busy=lambda: self.store.retention.is_giving_back or self.store.keys.is_making,
        )
        self.engine.wake_preparer = self.preparer.wake
        mqtt = self._make_doors()
        self.bridges = Bridges(
            settings.bridges, mqtt, self.authenticator, self.broker.metrics, begin_read=self.turns.begin_read
        )
        self._limits = {name: self._make_limits(door) for name, door in self.doors.items()}
        self._quiet_flush = Every(settings.store.flush.interval_ms, self._flush_quietly, self.started_ms)
        self.listeners = Listeners(self.capacity)
        self._admin: AdminOpening | None = None

    def _make_capacity(self) -> Capacity:
        settings = self.settings
        connections_max = find_connections_max(descriptor_limit(), descriptor_count_max(settings.store))
        watermarks = Watermarks(settings.limits.connections_max)
        return Capacity(connections_max, self._loop.call_later, watermarks=watermarks)

    def _make_guards(self) -> None:
        """Make what keeps the gateway safe, or says what was done."""
        self._paces = AllPaces(self.settings.limits.address, self.clock.now_ms)
        self._addresses = AddressConnections(self.settings.limits.address)
        self.audit = AuditLog(self.authenticator.events, self.clock)
        self.api_tokens = ApiTokens(self.broker.table("api_tokens"))
        bytes_max = self.settings.limits.memory_bytes_max
        self.memory = MemoryWatch(self.broker.room, self.capacity.watermarks, bytes_max)

    def _make_broker(self, caches: CacheBudget) -> Broker:
        store = self.settings.store
        broker = Broker(self.engine, parent_topic=store.parent_topic.encode(), metrics=Metrics(), caches=caches)
        broker.lasting_endings.begin(find_boot(), self.started_ms)
        self.turns = TurnRunner(self._loop, self.clock, broker)
        broker.schedule = self.turns.schedule
        self.alarm = Alarm(self._loop, self.clock, broker.timer.ring)
        broker.timer.wake_at = self.alarm.set
        broker.on_reader_error = _log_reader_error
        self.telemetry.watch(broker, self.engine)
        return broker

    def _make_doors(self) -> MqttDoor:
        """Make the doors; return MQTT's, which bridges go through."""
        settings = self.settings
        mqtt = MqttDoor(self.broker, settings.mqtt, self.authenticator)
        self.authenticator.stored.on_deleted = self._forget_user
        self.authenticator.stored.on_written_off = self.authenticator.quotas.write_off
        self.doors[MqttDoor.name] = mqtt
        self.doors[AmqpDoor.name] = amqp = AmqpDoor(self.broker, settings.amqp, self.authenticator)
        self.event_stream = EventStream(self.broker, amqp.vhosts, self.authenticator.events, self.clock)
        self.doors[RocketmqDoor.name] = RocketmqDoor(
            self.broker, settings.rocketmq, self.authenticator, self.upkeep.retention
        )
        return mqtt

    def _forget_user(self, name: str) -> None:
        """Let go of what a deleted user has."""
        self.api_tokens.revoke_of(name)
        self.authenticator.quotas.forget(name)
        for door in self.doors.values():
            door.end_sessions_of(name)

    def _make_limits(self, door: Door) -> ConnectionLimits:
        limits = door.limits
        return ConnectionLimits(limits.connections_max, limits.host_connections_max, self.capacity, self._addresses)

    def _make_endpoint(self, door: Door) -> Endpoint:
        return Endpoint(
            door.name,
            door.connect,
            clock=self.clock,
            timer=self.timer,
            table=self.connections,
            limits=self._limits[door.name],
            refused=door.metrics.refused,
            turns=self.turns,
            admission=self.admission,
            shares=self.shares,
            paces=self._paces.of(door.name, door.accepts_rate),
            turn_away=door.refuser(),
            events=self.authenticator.events,
        )

    # Start

    async def start(self) -> None:
        """Load what is durable, then open the doors.

        Raises:
            ListenError: An address cannot be listened on.
            SettingsError: A certificate cannot be used, or the audit log cannot be written.
        """
        now_ms = self.clock.now_ms()
        self.audit.use(self.settings.audit)
        limits = descriptor_limit(), self.capacity.connections_max
        LOGGER.info("files may be opened and connections let in descriptors=%d connections_max=%d", *limits)
        admin = find_listening(ADMIN, self.settings.admin.listen)
        listens = {**{door.name: door.listens() for door in self.doors.values()}, ADMIN: admin}
        self.authenticator.open_ways.listeners = {name: [one.ways for one in of] for name, of in listens.items()}
        open_doors = [name for name, of in listens.items() if of]
        for line in [*self.authenticator.describe(open_doors), *find_warnings(core.message)]:
            text, _, cause = line.partition(" setting=")
            LOGGER.warning(*(("%s setting=%s", text, cause) if cause else (line,)))  # a key of its own in JSON
        self.authenticator.tokens.timer = self.timer
        self.authenticator.tokens.start(self.settings.auth.jwt)  # wills that were left may need its keys
        self.flusher.start()  # a door may publish at once: the will of a client that was lost with the process
        for door in self.doors.values():
            door.start(now_ms)
        self.event_stream.use(self.settings.events)  # the exchange is known once definitions are
        self.room_watch.look_first()
        self.preparer.start()
        self.timer.start(self._loop)
        self.alarm.set(now_ms)  # what came due while we were down
        self._watch_intervals(now_ms)
        await self.bridges.open()  # before anybody publishes: what comes from here on is carried
        for door in self.doors.values():
            door.on_started(now_ms)
        for door in reversed(self.doors.values()):  # RocketMQ's address is stamped on what the others store
            await door.on_listening(await self.listeners.open(door, self._make_endpoint(door)))
        await self._listen_admin()
        self.bridges.start()
        self.authenticator.book.index_in_steps(self.check_threads.call_later, self._recheck)
        self.is_ready = True

    def _watch_intervals(self, now_ms: int) -> None:
        self.timer.watch(self._quiet_flush)
        self.timer.watch(Every(TEND_INTERVAL_MS, self.upkeep.tend, now_ms))
        self.timer.watch(Every(DEPARTED_INTERVAL_MS, self.upkeep.read_departed, now_ms))
        self.timer.watch(Every(LOOK_INTERVAL_MS, self.capacity.look, now_ms))
        self.timer.watch(Every(CERTIFICATES_INTERVAL_MS, self.listeners.watch.look, now_ms))
        self.timer.watch(Every(DROPS_INTERVAL_MS, self.event_stream.note_drops, now_ms))
        self.timer.watch(Every(MEMORY_INTERVAL_MS, self.memory.look, now_ms))
        if self.telemetry.interval_ms:
            self.timer.watch(Every(self.telemetry.interval_ms, self.telemetry.send_metrics, now_ms))
        for door in self.doors.values():
            for interval_ms, work in door.intervals():
                self.timer.watch(Every(interval_ms, work, now_ms))

    async def _listen_admin(self) -> None:
        listens = find_listening(ADMIN, self.settings.admin.listen)
        if listens or self.telemetry.interval_ms:  # else a gateway does without its libraries, and their memory
            self.broker.journal("looks")  # which is checked when it is opened: some ms, before there is work
            self._admin = AdminOpening(self._make_site, self.listeners, self.stopped.set)
            await self._admin.open(listens)

    def _make_site(self) -> Site:
        from gateway.admin.site import AdminSite  # noqa: PLC0415 - a thread has loaded it
        from gateway.admin.view import AdminView  # noqa: PLC0415 - a thread has loaded it

        view = AdminView(
            self.broker,
            self.doors,
            self.capacity,
            self.authenticator,
            is_ready=self._takes_work,
            uptime_ms=self._uptime_ms,
            since_ms=self.started_ms,
            certificates=self.listeners.certificates,
            listeners=self.listeners.connections,
            listening=self.listeners.bound,
            begin_read=self.turns.begin_read,
            settings=lambda: self.settings,
            api_tokens=self.api_tokens,
            memory=self.memory,
            audited=self.audit.counts,
            log_files=self.store.retention,
        )
        self.telemetry.collect = view.registry.collect
        return AdminSite(view, self._paces.of(ADMIN, self.settings.admin.connects_rate))

    @property
    def listening(self) -> dict[str, tuple[str, int]]:
        """The first host and port that is listened on, by the name that it is told by."""
        return self.listeners.first()

    def lines(self) -> list[str]:
        """Return one line for each address that is listened on."""
        return self.listeners.lines([*self.doors, ADMIN])

    # Settings that are read again

    async def reload(self, wanted: GatewaySettings) -> None:
        """Go by other settings: by all of them that can change now, or, where they are wrong, by none.

        There is a line in the log for each one that differs, also where it takes effect at the next start only.

        Raises:
            SettingsError: They cannot be used; nothing has changed.
            RulesError: They count, but for their rules: those before stay in force.
        """
        settings = settings_in_force(self.settings, wanted)
        self.bridges.check(settings.bridges)
        certificates = await asyncio.to_thread(self.listeners.read_certificates)
        self.audit.check(settings.audit)
        ways = await asyncio.to_thread(self.authenticator.read, settings.auth, os.environ)  # hashes passwords
        changes = find_changes(self.settings, wanted)
        log_changes(changes)
        self.audit.use(settings.audit)
        self.event_stream.use(settings.events)
        operator = Actor(self.authenticator.events, "signal", 0, "")
        operator.tell(Kind.SETTINGS_CHANGED, names=[change.name for change in changes])
        self.listeners.use_certificates(certificates)
        self.authenticator.use(ways)
        self.authenticator.tokens.start(settings.auth.jwt)
        self._apply(settings, ways.users, self.clock.now_ms())
        try:
            await self.authenticator.book.whole()
        finally:
            await self.bridges.reload(settings.bridges)

    def _apply(self, settings: GatewaySettings, users: dict[str, User], now_ms: int) -> None:
        if settings.log != self.settings.log:
            set_up_logs(settings.log.level, settings.log.format)
        self.settings = settings
        self._quiet_flush.change_interval(settings.store.flush.interval_ms, now_ms)
        self.timer.watch(self._quiet_flush)
        self.upkeep.retention.use(settings.store.retention)
        self.broker.room.free_bytes_min = settings.store.disk_free_bytes_min
        self.broker.caches.limit(settings.cache.bytes_max)
        self.memory.use(settings.limits.memory_bytes_max)
        self.capacity.watermarks.connections_max = settings.limits.connections_max
        for door in self.doors.values():
            door.reload(settings)
            self._limits[door.name].reload(door.limits.connections_max, door.limits.host_connections_max)
        rates = {name: door.accepts_rate for name, door in self.doors.items()}
        self._addresses.use(settings.limits.address)
        self._paces.use(settings.limits.address, {**rates, ADMIN: settings.admin.connects_rate})
        self.authenticator.reload(settings.auth, users)
        self._recheck()

    def _recheck(self) -> None:
        """Turn out, in steps, users that could not come in any more, or may read less than before."""
        now_ms = self.clock.now_ms()
        checks = [recheck(self.authenticator, name, list(door.handlers), now_ms) for name, door in self.doors.items()]
        self._step(chain.from_iterable(checks))

    def _step(self, steps: Iterator[None]) -> None:
        """Take a step, and the next one after what else the loop has to do."""
        for _ in steps:
            self._loop.call_soon(self._step, steps)
            return

    # Work

    def _flush_quietly(self, now_ms: int) -> None:
        del now_ms
        self.engine.durability.keep_all()

    def _note_room(self, free_bytes: int, is_full: bool) -> None:  # noqa: FBT001  # called by the loop
        self.upkeep.note_room(free_bytes, self.clock.now_ms(), is_full=is_full)

    def _on_synced(self, took_s: float | None) -> None:
        sync = self.broker.metrics.sync
        if took_s is not None:
            sync.add(took_s * 1000)
            return
        sync.failed += 1
        LOGGER.critical("the disk refused a sync: stopping, so that nothing is promised that is not kept")
        self.is_ready = False
        self.stopped.set()

    def _takes_work(self) -> bool:
        return self.is_ready and not self.broker.is_failed

    def _uptime_ms(self) -> int:
        return self.clock.now_ms() - self.started_ms

    # Stop

    async def stop(self) -> None:
        """Close the doors, let connections end, sync, and close the store; mostly under 5 s."""
        self.is_ready = False
        began_ms = self.clock.now_ms()
        LOGGER.info("stopping connections=%d", len(self.connections))
        await self.bridges.stop()  # they are clients of the MQTT door, so before it stops
        self.listeners.stop()  # so that nobody comes in after the doors have said farewell
        if self._admin is not None:
            await self._admin.stop()
        now_ms = self.clock.now_ms()
        for door in self.doors.values():
            door.stop(now_ms)
        self.check_threads.stop()
        self.authenticator.stop()
        self.authenticator.tokens.stop()
        self.connections.close_all()
        await self._drain()
        self.timer.stop()
        self.alarm.stop()
        audited = self.audit.end()
        if audited is not None:
            await asyncio.to_thread(audited.join)
        await self.telemetry.stop()
        is_idle = await self.flusher.stop(FLUSH_STOP_S)  # after the drain, in which clients may wait for a sync
        if await asyncio.to_thread(self.preparer.stop, FLUSH_STOP_S) and is_idle:
            self.broker.lasting_endings.end()
            self.engine.durability.end()
            self.store.close()
            for door in self.doors.values():
                door.let_go()
            LOGGER.info("stopped, all is on disk took_ms=%d", self.clock.now_ms() - began_ms)
        else:
            LOGGER.error("the disk is still busy with a sync: leaving the log as it is, it is recovered at the start")

    async def _drain(self) -> None:
        await self.connections.until_empty(DRAIN_S, DRAIN_MORE_S)
        self.connections.abort_all()
        await self.connections.until_empty(0.0, ENDS_S)


def _log_reader_error(reader: Reader, error: Exception) -> None:
    LOGGER.error("a reader failed reader=%s", type(reader).__name__, exc_info=error)
