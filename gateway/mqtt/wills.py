"""The wills of a door's clients: written down while they are connected, published when they are lost."""

from __future__ import annotations

import logging

from core.errors import LmqError
from core.metrics import DoorMetrics
from gateway.auth.authenticator import Authenticator
from gateway.auth.permissions import Permissions
from gateway.logs import said
from gateway.mqtt.login import PROTOCOL
from gateway.mqtt.publishing import Publishing
from gateway.mqtt.session_table import SessionTable, StoredWill

LOGGER = logging.getLogger(__name__)


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

    def publish_left(self, now_ms: int) -> None:
        """Publish the wills of connections that a killed process left, as far as their users may do so now."""
        for stored in self._sessions.wills():
            self.forget(stored)
            self.publish(stored, self._authenticator.find_rights(PROTOCOL, stored.user.decode()), now_ms)

    def keep(self, stored: StoredWill) -> None:
        """Write a will down, so that it is published also when the process is killed."""
        self._sessions.keep_will(stored)

    def forget(self, stored: StoredWill) -> None:
        """Forget a will."""
        self._sessions.forget_will(stored.client_id)

    def publish(self, stored: StoredWill, may: Permissions | None, now_ms: int) -> None:
        """Publish a will; one that cannot be published is logged, its client is gone.

        Args:
            stored: What, and whose it is.
            may: What the client may do, None where it may not come in any more.
            now_ms: When this is.
        """
        topic = stored.will.topic
        if may is None or not may.may_publish(topic):
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
