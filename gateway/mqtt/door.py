"""The MQTT door."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from functools import partial

from core.errors import LmqError
from gateway.auth.recheck import LOOKS_A_STEP
from gateway.door import Address, ClientLimits, Door, Interval, Listen, find_listening
from gateway.events import Kind
from gateway.mqtt.attachments import Attachments
from gateway.mqtt.connection import MqttConnection
from gateway.mqtt.exact_log import ExactLog
from gateway.mqtt.given_again import take_back_endings
from gateway.mqtt.giving_way import let_go_of_idle
from gateway.mqtt.handler import MqttHandler
from gateway.mqtt.inventory import MqttInventory
from gateway.mqtt.login import PROTOCOL
from gateway.mqtt.queued_limits import WaitingMax
from gateway.mqtt.services import MqttServices
from gateway.mqtt.session import NEVER
from gateway.mqtt.session_loader import Queues
from gateway.mqtt.terms import NO_LIMITS
from gateway.mqtt.turned_away import TurnedAway
from gateway.net.protocol import HandlerFactory, Transport
from gateway.settings.models import GatewaySettings, MqttSettings

LOGGER = logging.getLogger(__name__)


class MqttDoor(MqttServices, Door):
    """All MQTT connections and sessions of the gateway."""

    name = PROTOCOL
    _is_sweeping = False  # the search for expired sessions is under way

    @property
    def limits(self) -> MqttSettings:
        """How many connections may be open."""
        return self.settings

    @property
    def handlers(self) -> Attachments:
        """The connections of clients that were let in."""
        return self.attachments

    def connect_at(self, listen: Listen) -> HandlerFactory:
        """Return a function that makes handlers for new connections of one address, with the limits of its clients."""
        return partial(self.connect, limits=listen.clients)

    def connect(self, transport: Transport, limits: ClientLimits = NO_LIMITS) -> MqttHandler:
        """Return the handler of a new connection."""
        settings = self.settings
        packet_bytes_max = limits.packet_bytes_max or settings.packet_bytes_max
        connection = MqttConnection(self.runs, packet_bytes_max, settings.connect_timeout_ms)
        handler = MqttHandler(self, transport, connection, limits)
        self.note_open(handler)
        return handler

    def refuser(self) -> HandlerFactory:
        """Return what answers clients that are too many."""
        return partial(TurnedAway, self.runs)

    def start(self, now_ms: int) -> None:
        """Take up what durable sessions wait for."""
        subscribing = self.subscribing
        queues = Queues(
            subscribing.take_up,
            subscribing.find_queue,
            subscribing.history.intern_queue,
            subscribing.sharing.group_of,
            subscribing.sharing.own,
            self.broker.max_offset,
            partial(take_back_endings, self.broker),
        )
        log = ExactLog(self.broker)
        sure_place, takes_unnoted = self.broker.sure_place, self.broker.waits_for_disk
        self.exact.load(log.count_from, log.find_from, sure_place, takes_unnoted=takes_unnoted)
        self.sessions.load(queues, self.broker.next_version, now_ms)
        self.broker.keep_first()  # places that a power cut left behind the end of the log were cut back
        self.subscribing.sharing.forget_others()
        self._forget_long_names()
        for client_id in self.delivery.queued.limits.own_clients():
            if self.sessions.outline(client_id) is None:  # a process was killed between two commits
                self.delivery.queued.limits.forget(client_id)
        self.metrics.sessions = len(self.sessions)
        self.sys_tree.start(now_ms, self.settings.sys_interval_s)

    def on_started(self, now_ms: int) -> None:
        """Publish the wills of connections that a killed process left."""
        self.wills.publish_left(now_ms)

    def _forget_long_names(self) -> None:
        """Forget what long filters are called that nobody uses and that have no messages."""
        broker = self.broker
        for light_name in broker.long_names.unused():
            queue_ref = broker.find_queue(light_name)
            if queue_ref >= 0:
                broker.open_queue(queue_ref, partial(self._forget_if_empty, light_name, queue_ref))
            else:
                broker.long_names.forget(light_name)

    def _forget_if_empty(self, light_name: bytes, queue_ref: int, error: LmqError | None) -> None:
        broker = self.broker
        if error is None and broker.min_offset(queue_ref) == broker.max_offset(queue_ref):
            broker.long_names.forget(light_name)

    def stop(self, now_ms: int) -> None:
        """Close all connections; their wills are published."""
        for handler in [*self.attachments, *self.strangers]:
            handler.shut_down(now_ms)
        self.wills.stop()
        self.subscribing.chores.finish()

    def let_go(self) -> None:
        """Nothing to do: there is nothing here that the collector does not see."""

    def reload(self, settings: GatewaySettings) -> None:
        """Go by other settings from now on."""
        self.settings = settings.mqtt
        self.delivery.inflight_max = settings.mqtt.inflight_max
        self.delivery.lag_count_max = settings.mqtt.lag_count_max
        waiting_max = WaitingMax(settings.mqtt.queued_count_max, settings.mqtt.queued_bytes_max)
        self.delivery.queued.set_limits(waiting_max)
        self.subscribing.count_max = settings.mqtt.subscription_count_max
        self.subscribing.sharing.strategy = settings.mqtt.shared_strategy
        self.attachments.expiry_max_s = settings.mqtt.session_expiry_s or NEVER
        self.set_publishing(settings.mqtt)
        self.sys_tree.set_interval(settings.mqtt.sys_interval_s)

    def listens(self) -> list[Listen]:
        """Return the door's one address."""
        return find_listening("mqtt", self.settings.listen)

    async def on_listening(self, bound: Mapping[str, Address]) -> None:
        """Nothing to do: clients are told no address."""

    def intervals(self) -> list[Interval]:
        """Delayed wills, the $SYS tree and stalled groups are looked at each second; deadlines are the timer's."""
        return [Interval(1_000, self._do_due)]

    def _do_due(self, now_ms: int) -> None:
        self.wills.publish_due(now_ms)
        self.sys_tree.tick(now_ms)
        self.subscribing.sharing.look_at_stalled()
        self.exact.keep_up()

    def tend(self, now_ms: int) -> None:
        """End durable sessions that nobody has come back to in time, and count what waits for the others."""
        if not self._is_sweeping:
            self._is_sweeping = True
            self.subscribing.chores.start(self._sweep(now_ms))
        self.delivery.now_ms = now_ms
        self.delivery.queued.look(self.sessions.behind, self._let_go_oldest)

    def _let_go_oldest(self, client_id: bytes) -> None:
        """Let the oldest of too many messages go that wait for a client without a connection."""
        work = let_go_of_idle(self.delivery, self.sessions, client_id, self.delivery.now_ms)
        self.delivery.queued.chores.start(work, is_long=True)

    def end_sessions_of(self, user: str) -> None:
        """End the sessions of a user that is no more, or disabled; those with a connection, when that is closed."""
        self.subscribing.chores.start(self._end_sessions_of(user.encode()))

    def _end_sessions_of(self, owner: bytes) -> Iterator[None]:
        for number, outline in enumerate(self.sessions.outlines()):
            session = self.sessions.find(outline.client_id) if outline.owner == owner else None
            if session is not None and session.outlet is None:
                self.subscribing.end_session(session)
                yield
            elif session is not None:
                session.expiry_s = 0
            if number % LOOKS_A_STEP == LOOKS_A_STEP - 1:
                yield

    def _sweep(self, now_ms: int) -> Iterator[None]:
        """Look at one session a step: there may be a hundred thousand."""
        try:
            for session in self.sessions.find_expired(now_ms, self.attachments.expiry_max_s):
                if session is not None:
                    LOGGER.info("session expired client=%r", session.client_id)
                    self.tell_session(Kind.SESSION_EXPIRED, session, None)
                    self.subscribing.end_session(session)
                    self.sys_counts.expired += 1
                yield
        finally:
            self._is_sweeping = False

    def read_departed(self) -> None:
        """Let the connections end that are held back, and whose peers are gone."""
        self.held.read_departed()

    def inventory(self) -> MqttInventory:
        """Return what the door has."""
        return MqttInventory(self)
