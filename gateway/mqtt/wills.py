"""The wills of a door's clients: written down while they are connected, published when they are lost."""

from __future__ import annotations

import logging
from typing import NamedTuple

from core.errors import LmqError
from core.metrics import DoorMetrics
from gateway.auth.authenticator import Authenticator
from gateway.auth.credentials import Identity, Refusal
from gateway.auth.permissions import Permissions
from gateway.logs import said
from gateway.mqtt.errors import MalformedPacketError
from gateway.mqtt.left_wills import LeftWills, find_login
from gateway.mqtt.packets import Will
from gateway.mqtt.properties import Property
from gateway.mqtt.publishing import Publishing
from gateway.mqtt.session_rows import StoredWill
from gateway.mqtt.session_table import SessionTable
from gateway.mqtt.topics import DELAYED_PREFIX, is_for_clients, split_delayed

LOGGER = logging.getLogger(__name__)


class Delayed(NamedTuple):
    """A will that waits until its delay is over; `is_left`: what its client may do is to be found out then."""

    due_ms: int
    stored: StoredWill
    may: Permissions | None
    is_left: bool = False


class Wills:
    """All wills.

    Args:
        sessions: Where they are written down.
        publishing: The way into the broker.
        authenticator: Knows what the client of a process before may do now.
        metrics: The door's.
    """

    def __init__(
        self, sessions: SessionTable, publishing: Publishing, authenticator: Authenticator, metrics: DoorMetrics
    ) -> None:
        self._sessions = sessions
        self._publishing = publishing
        self._authenticator = authenticator
        self._metrics = metrics
        self._delayed: dict[bytes, Delayed] = {}  # by client
        self._left = LeftWills(authenticator, self.publish, self.forget, authenticator.clock.now_ms)

    def find_fault(self, will: Will | None) -> str:
        """Return why a will cannot be taken, empty where it can: a delay of its topic that is none, or too long."""
        if will is not None and will.topic.startswith(DELAYED_PREFIX):
            try:
                self._publishing.delayed.split(will.topic)
            except MalformedPacketError as error:
                return f"will: {error}"
        return ""

    def publish_left(self, now_ms: int) -> None:
        """Publish the wills of connections that a killed process left, as far as their users may do so now."""
        for stored in self._sessions.wills.read():
            is_left = bool(stored.login)  # of a client that a back end or a token let in
            found = Refusal.WRONG if is_left else find_login(self._authenticator, stored)
            may = found.may if isinstance(found, Identity) else None
            if stored.due_ms > now_ms:
                self._delayed[stored.client_id] = Delayed(stored.due_ms, stored, may, is_left)
            else:
                session = self._sessions.outline(stored.client_id)
                expiry_s = 0 if session is None else session.expiry_s
                self.leave(stored, may, expiry_s, now_ms, is_left=is_left)
        self._left.look(now_ms)

    def leave(
        self, stored: StoredWill, may: Permissions | None, expiry_s: int, now_ms: int, *, is_left: bool = False
    ) -> None:
        """Publish the will of a client that is gone, at once or after its delay; its session lives for `expiry_s`."""
        delay_s = min(stored.will.properties.number(Property.WILL_DELAY, 0), expiry_s)
        delayed = Delayed(stored.due_ms, stored, may, is_left)
        if delay_s and not stored.due_ms:
            stored.due_ms = now_ms + 1000 * delay_s
            self.keep(stored)  # again, with its moment: a restart does not put it off
            self._delayed[stored.client_id] = delayed._replace(due_ms=stored.due_ms)
        else:
            self._let_go(delayed, now_ms)

    def come_back(self, client_id: bytes, user: bytes) -> None:
        """Forget the will that was delayed for a client that has come back, MQTT-3.1.3-9."""
        self.note_client(client_id, user)
        delayed = self._delayed.pop(client_id, None)
        if delayed is not None:
            self.forget(delayed.stored)

    def note_client(self, client_id: bytes, user: bytes) -> None:
        """Forget the will that a killed process left of a client that is back before a back end answered for it."""
        self._left.come_back(client_id, user)

    def publish_due(self, now_ms: int) -> None:
        """Publish the wills whose delay is over, ask again about those that were not answered for, and tidy up."""
        for client_id in [key for key, delayed in self._delayed.items() if delayed.due_ms <= now_ms]:
            self._let_go(self._delayed.pop(client_id), now_ms)
        self._left.look(now_ms)
        self._sessions.wills.give_back()

    def _let_go(self, delayed: Delayed, now_ms: int) -> None:
        if delayed.is_left:
            self._left.add(delayed.stored)
        else:
            self.publish(delayed.stored, delayed.may, now_ms)
            self.forget(delayed.stored)

    def stop(self) -> None:
        """Ask about no will any more."""
        self._left.stop()

    def publish_delayed(self, client_id: bytes, now_ms: int) -> None:
        """Publish the will that was delayed for a client at once: its session ends."""
        if client_id in self._delayed:
            self._delayed[client_id] = self._delayed[client_id]._replace(due_ms=now_ms)
            self.publish_due(now_ms)

    def keep(self, stored: StoredWill) -> None:
        """Write a will down, so that it is published also when the process is killed."""
        self._sessions.wills.keep(stored)
        before = self._left.lose_row(stored.client_id)
        if before is not None:
            self._sessions.wills.note_replaced(before)

    def forget(self, stored: StoredWill) -> None:
        """Forget a will."""
        self._sessions.wills.forget(stored)

    def publish(self, stored: StoredWill, may: Permissions | None, now_ms: int) -> None:
        """Publish a will; one that cannot be published is logged, its client is gone.

        Args:
            stored: What, and whose it is.
            may: What the client may do, None where it may not come in any more.
            now_ms: When this is.
        """
        _, topic = split_delayed(stored.will.topic)
        if may is None or not may.may_publish(topic) or not is_for_clients(topic):
            LOGGER.warning(
                "denied will client=%s user=%s name=%s", said(stored.client_id), said(stored.user), said(topic)
            )
            self._metrics.refuse("will_not_authorized")
            return
        try:
            self._publishing.publish_will(stored, now_ms)
        except LmqError as error:
            LOGGER.warning("will not published client=%s cause=%s", said(stored.client_id), error)
            self._metrics.drop("will")
