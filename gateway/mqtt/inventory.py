"""What the MQTT door has, for operators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

from core.lmq.queue_name import LIGHT_PREFIX, MQTT, parse_queue_name
from gateway.inventory import ConnectionEntry, Inventory, QueueEntry, SessionEntry, describe_connection, text_of
from gateway.mqtt.services import MqttServices, OpenConnection
from gateway.mqtt.session import Session

PREFIX = LIGHT_PREFIX + MQTT + b"%"
LOOKS_A_STEP = 256  # queues of other doors that are passed over at once, about 0.2 us each


class MqttInventory(Inventory):
    """Connections, sessions, and the light queues of filters."""

    def __init__(self, services: MqttServices) -> None:
        self._services = services

    def connections(self) -> Iterator[ConnectionEntry]:
        """Give the open connections: first those with a session, then those that were not let in yet."""
        services = self._services
        attached = cast("Iterable[OpenConnection]", services.attachments)
        for connection in [*attached, *services.strangers]:
            session = connection.session
            if session is not None or connection in services.strangers:
                client = b"" if session is None else session.client_id
                yield describe_connection(connection.transport, connection.identity, text_of(client))

    def turn_out(self, conn_id: int, reason: str, now_ms: int) -> bool:
        """Close a connection; return whether it was there."""
        found = [
            one
            for one in [*cast("Iterable[OpenConnection]", self._services.attachments), *self._services.strangers]
            if one.transport.conn_id == conn_id
        ]
        for one in found:
            one.turn_out(now_ms, reason)
        return bool(found)

    def sessions(self) -> Iterator[SessionEntry | None]:
        """Give all sessions."""
        sessions = self._services.sessions
        for session in list(sessions):
            yield _describe(session) if sessions.find(session.client_id) is session else None

    def queues(self) -> Iterator[QueueEntry | None]:
        """Give the light queues of filters, those too whose subscriptions are gone and whose messages are kept."""
        broker = self._services.broker
        for queue_ref in range(broker.queue_count()):
            key = broker.queue_key(queue_ref)
            if key.startswith(PREFIX):
                parsed = parse_queue_name(key)
                yield QueueEntry(
                    name=text_of(key if parsed is None else parsed[1][0]),  # of a long one only the digits are known
                    light_queue=text_of(key),
                    min_offset=broker.min_offset(queue_ref),
                    max_offset=broker.max_offset(queue_ref),
                    readers=broker.reader_count(queue_ref),
                )
            elif queue_ref % LOOKS_A_STEP == 0:
                yield None


def _describe(session: Session) -> SessionEntry:
    window = session.window
    return SessionEntry(
        client=text_of(session.client_id),
        user=None if session.owner is None else text_of(session.owner),
        conn_id=0 if session.outlet is None else session.outlet.conn_id,
        is_persistent=session.is_persistent,
        subscriptions=len(session.subscriptions),
        inflight=0 if window is None else window.head - window.tail,
    )
