"""Which connection has which session: to resume, to take over, to leave; and which user a session belongs to.

Source: docs/protocols/mqtt.md, "Whose a session is".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from core.metrics import DoorMetrics
from gateway.auth.authenticator import Authenticator
from gateway.auth.credentials import Identity
from gateway.auth.recheck import Visitor
from gateway.mqtt.login import PROTOCOL
from gateway.mqtt.session import NEVER, Session
from gateway.mqtt.session_table import SessionTable
from gateway.mqtt.subscribing import Subscribing


class Attached(Visitor, Protocol):
    """A connection with a session."""

    def take_over(self, now_ms: int) -> None:
        """Give way to a newer connection of the same client."""

    def shut_down(self, now_ms: int) -> None:
        """Close because the gateway stops."""


class Attachment(NamedTuple):
    """What a connection got: a session, whether that was there before, and the filters that its user may not read."""

    session: Session
    is_present: bool
    denied: list[bytes]


class Attachments:
    """The sessions that have a connection.

    Args:
        sessions: All sessions.
        subscribing: Ends them, and their subscriptions.
        authenticator: Knows which users may come in now.
        metrics: The door's.
    """

    def __init__(
        self,
        sessions: SessionTable,
        subscribing: Subscribing,
        authenticator: Authenticator,
        metrics: DoorMetrics,
    ) -> None:
        self._sessions = sessions
        self._subscribing = subscribing
        self._authenticator = authenticator
        self._metrics = metrics
        self.expiry_max_s = NEVER  # no session lives longer without a connection
        self.changes = 0  # goes up when a connection gets a session or leaves it
        self.unkept: set[bytes] = set()  # clients with a new durable session that a killed process would lose
        self._connections: dict[bytes, Attached] = {}  # by client identifier

    def __iter__(self) -> Iterator[Attached]:
        """Give all connections that have a session."""
        return iter(list(self._connections.values()))

    def is_foreign(self, client_id: bytes, identity: Identity) -> bool:
        """Return whether the client's session belongs to another user, one that can come back to it."""
        session = self._sessions.outline(client_id)
        if session is None or session.owner is None or session.owner == identity.user.encode():
            return False
        return self._authenticator.may_come(PROTOCOL, session.owner.decode())

    def make_way(self, client_id: bytes, identity: Identity, *, is_clean: bool, now_ms: int) -> bool:
        """End the client's older connection, and its session where it may not have it or wants a clean one.

        Returns:
            Whether all of that is done; else ask again in a later turn.
        """
        older = self._connections.get(client_id)
        if older is not None:  # MQTT-3.1.4-2
            older.take_over(now_ms)
        if self._subscribing.is_leaving(client_id):
            return False
        session = self._sessions.find(client_id)
        if session is not None:
            is_over = is_clean or self._sessions.is_expired(session, now_ms, self.expiry_max_s)
            if is_over or session.owner not in {None, b"", identity.user.encode()}:
                self._subscribing.end_session(session)  # MQTT-3.1.2-6
        return not self._subscribing.is_leaving(client_id)

    def attach(self, connection: Attached, client_id: bytes, identity: Identity, expiry_s: int) -> Attachment:
        """Give a new connection the session of its client, after `make_way`; it lives on for `expiry_s` afterwards.

        A subscription that the user may not have any more is ended.
        """
        user = identity.user.encode()
        self.changes += 1
        self._connections[client_id] = connection
        session = self._sessions.find(client_id)
        is_present = session is not None
        denied: list[bytes] = []
        if session is None:
            session = self._sessions.create(client_id, user, expiry_s)
        else:
            self._sessions.note_online(session, user, expiry_s)
            denied = self._subscribing.end_denied(session, identity.may)
        self._metrics.sessions = len(self._sessions)
        return Attachment(session, is_present, denied)

    def detach(self, session: Session, now_ms: int) -> None:
        """Take a session from its connection: a clean one ends, a durable one waits."""
        self.changes += 1
        del self._connections[session.client_id]
        if session.is_persistent and session.expiry_s:
            self._sessions.note_idle(session, now_ms)
            self._subscribing.pause(session)
        else:
            self._subscribing.end_session(session)
