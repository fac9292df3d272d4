"""What all connections of the MQTT door work with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from hashlib import blake2b
from typing import Protocol

from core.broker import Broker
from gateway.auth.authenticator import Authenticator
from gateway.events import Actor, Kind
from gateway.logs import said
from gateway.mqtt.attachments import Attached, Attachments
from gateway.mqtt.catch_up import CatchUps
from gateway.mqtt.claims import SessionClaims
from gateway.mqtt.delivery import Delivery
from gateway.mqtt.events import RunPool
from gateway.mqtt.exact import ExactJournal
from gateway.mqtt.publishing import Publishing
from gateway.mqtt.rewriting import Rewriting
from gateway.mqtt.session import NEVER, Session
from gateway.mqtt.session_table import SessionTable
from gateway.mqtt.set_aside import AsideRoom
from gateway.mqtt.subscribing import Subscribing
from gateway.mqtt.sys_counts import SysCounts
from gateway.mqtt.sys_tree import SysTree
from gateway.mqtt.wills import Wills
from gateway.net.held_publishers import HeldConnection, HeldPublishers
from gateway.net.paces import take_one
from gateway.net.protocol import Transport
from gateway.rates import Rate, Recent
from gateway.settings.models import MqttSettings
from gateway.version import VERSION

KEY_BYTES = 16  # by which the rate of a client is kept: identifiers may be long


class OpenConnection(Attached, HeldConnection, Protocol):
    """A connection of the door."""

    @property
    def session(self) -> Session | None:
        """Its session, once it has one."""


class MqttServices:
    """The parts of one door, and which connections are open.

    Args:
        broker: The one door of the core.
        settings: The door's settings.
        authenticator: Lets clients in.
    """

    def __init__(self, broker: Broker, settings: MqttSettings, authenticator: Authenticator) -> None:
        self.broker = broker
        self.metrics = broker.metrics.door("mqtt")
        self.room = broker.room
        self.held = HeldPublishers(broker.room, self.metrics)
        self.aside = AsideRoom()
        self.runs = RunPool()
        places = broker.places("mqtt")
        catch_ups = CatchUps(broker.journal("mqtt_retained"), places)
        self.exact = ExactJournal(broker.journal("mqtt_exact"), lambda: broker.end_place)
        self.sessions = SessionTable(broker.table, places, catch_ups, self.exact, broker.when_kept)
        self.delivery = Delivery(broker, settings, places, catch_ups, self.exact)
        self.sessions.loader.window_max = lambda: self.delivery.inflight_max
        self.delivery.on_left = self.sessions.note_left
        self.sessions.find_first = self.delivery.queued.find_first
        self.subscribing = Subscribing(
            broker, self.sessions, self.delivery, self.metrics, settings.subscription_count_max
        )
        self.subscribing.sharing.strategy = settings.shared_strategy
        self.claims = SessionClaims(broker, self.subscribing.chores, self.subscribing.is_leaving)
        self.publishing = Publishing(broker, self.exact, self.metrics)
        self.wills = Wills(self.sessions, self.publishing, authenticator, self.metrics)
        self.authenticator = authenticator
        self.attachments = Attachments(self.sessions, self.subscribing, authenticator, self.metrics)
        self.attachments.expiry_max_s = settings.session_expiry_s or NEVER
        self.sys_counts = SysCounts(broker, self.sessions, self.subscribing, self.metrics)
        self.sys_tree = SysTree(self.subscribing.chores, VERSION, self.sys_counts.now, self.sys_counts.growing)
        self.subscribing.sys_tree = self.sys_tree
        self.strangers: set[OpenConnection] = set()  # not let in yet
        self.settings = settings
        self._connects: Rate | None = None
        self._client_connects: Recent[Rate] = Recent()
        self.set_publishing(settings)
        broker.hold(self.sessions.held_positions)
        broker.hold(self.subscribing.sharing.held_positions)

    def set_publishing(self, settings: MqttSettings) -> None:
        """Go by the rules of these settings for what is published."""
        self.publishing.retained_count_max = settings.retained_count_max
        self.publishing.delayed.seconds_max = settings.delayed_max_s
        self.publishing.retained_body_bytes_max = settings.retained_body_bytes_max
        self.publishing.rewriting = self.subscribing.rewriting = Rewriting(settings.rewrite, self.broker.caches)

    def may_connect(self, now_ms: int) -> bool:
        """Return whether one more client is let in at this moment."""
        per_s = self.settings.connects_rate
        if not per_s:
            return True
        if self._connects is None or self._connects.per_s != per_s:
            self._connects = Rate(per_s, now_ms)
        if self._connects.left(now_ms) < 1:
            return False
        self._connects.take(1)
        return True

    def may_come(self, user: str, client_id: bytes, now_ms: int) -> bool:
        """Return whether a client that proved to be `user` is let in once more at this moment."""
        per_s = self.settings.client_connects_rate
        if not per_s:
            return True
        name = blake2b(user.encode() + b"\0" + client_id, digest_size=KEY_BYTES).digest()
        return take_one(self._client_connects.find(name, per_s, partial(Rate, per_s, now_ms)), now_ms)

    def limit_expiry(self, expiry_s: int) -> int:
        """Return the session expiry that is granted for one that is asked for."""
        return min(expiry_s, self.attachments.expiry_max_s)

    def actor(self, transport: Transport, user: str) -> Actor:
        """Return by whose doing things happen on a connection."""
        return Actor(self.authenticator.events, "mqtt", transport.conn_id, transport.peer, user)

    def tell_filters(
        self, kind: Kind, session: Session, transport: Transport, filters: Iterable[bytes]
    ) -> Iterator[bytes]:
        """Give the filters, and tell of each that the session has it from now on, or no longer."""
        actor = self.actor(transport, (session.owner or b"").decode(errors="replace"))
        for one in filters:
            actor.tell(kind, client=said(session.client_id), topic=said(one))
            yield one

    def tell_session(self, kind: Kind, session: Session, transport: Transport | None) -> None:
        """Tell what happened to a session, on a connection where it has one."""
        events = self.authenticator.events
        if not events.is_heard:
            return
        user = (session.owner or b"").decode(errors="replace")
        actor = Actor(events, "mqtt", 0, "", user) if transport is None else self.actor(transport, user)
        actor.tell(kind, client=said(session.client_id), persistent=session.is_persistent)

    def note_open(self, connection: OpenConnection) -> None:
        """Count a new connection."""
        self.metrics.connections += 1
        self.metrics.connections_total += 1
        self.strangers.add(connection)
        self.sys_counts.note_connections()

    def forget(self, connection: OpenConnection) -> None:
        """Forget a connection that is closed."""
        self.strangers.discard(connection)
        self.held.forget(connection)
        self.metrics.connections -= 1
