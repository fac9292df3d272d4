"""One connection of the MQTT door: its socket, state machine and session, and how it ends."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from core.errors import LmqError
from gateway.auth.credentials import Identity
from gateway.auth.denials import Denials
from gateway.auth.password_checks import Attempt
from gateway.auth.permissions import Permissions
from gateway.auth.recheck import find_reason
from gateway.events import Kind
from gateway.mqtt.connection import MqttConnection
from gateway.mqtt.entering import Entering
from gateway.mqtt.reason_codes import ReasonCode
from gateway.mqtt.services import MqttServices
from gateway.mqtt.session import Session
from gateway.mqtt.session_rows import StoredWill
from gateway.mqtt.sieve import find_decider
from gateway.mqtt.subscribing import Steps
from gateway.net.protocol import ConnectionHandler, Transport

LOGGER = logging.getLogger(__name__)


class Leaving(ConnectionHandler):
    """One connection of the door, without what is said on it."""

    __slots__ = (
        "_attempt",
        "_connection",
        "_denials",
        "_door",
        "_entering",
        "_may",
        "_steps",
        "_unkept",
        "_will",
        "identity",
        "session",
        "transport",
    )

    def __init__(self, door: MqttServices, transport: Transport, connection: MqttConnection) -> None:
        self.transport = transport
        self.session: Session | None = None
        self._door = door
        self._connection = connection
        self._may: Permissions | None = None  # of the client that is connected
        self.identity: Identity | None = None
        self._attempt: Attempt | None = None  # a login under way
        self._denials: Denials | None = None  # made when something is denied
        self._will: StoredWill | None = None
        self._entering: Entering | None = None  # a client that waits until its last session is let go of
        self._steps: Steps | Iterator[None] | None = None  # what is left of a packet that goes on in further turns
        self._unkept = 0  # calls that wait until a change is written down

    def take_over(self, now_ms: int) -> None:
        """Give way to a newer connection of the same client."""
        if self.session is not None:
            self._door.tell_session(Kind.SESSION_TAKEN_OVER, self.session, self.transport)
        self._end("taken over by a new connection", ReasonCode.SESSION_TAKEN_OVER, now_ms)

    def shut_down(self, now_ms: int) -> None:
        """Close because the gateway stops: at once, where the client is not in the middle of sending."""
        self._say_last(ReasonCode.SERVER_SHUTTING_DOWN, now_ms)
        self.transport.end_reason = self.transport.end_reason or "the gateway stops"
        self.transport.part()

    def turn_out(self, now_ms: int, reason: str = "") -> None:
        """Close because the user may not come in any more, or for the reason that an operator gives."""
        self._door.metrics.refuse("turned_out")
        code = ReasonCode.ADMINISTRATIVE_ACTION if reason else ReasonCode.NOT_AUTHORIZED
        self._end(reason or find_reason(self.identity, self._door.authenticator.clock.machine_ms()), code, now_ms)

    def _end(self, why: str, code: ReasonCode, now_ms: int) -> None:
        self._say_last(code, now_ms)
        self._hang_up(why)

    def _say_last(self, code: ReasonCode, now_ms: int, text: str = "") -> None:
        self._connection.say_why(code, text)
        self._connection.stop()
        self.transport.write(self._connection.data_to_send())
        self._leave(now_ms)

    def _close_for(self, kind: str, text: str, code: ReasonCode, now_ms: int) -> None:
        conn_id, peer = self.transport.conn_id, self.transport.peer
        LOGGER.warning("closing connection: %s conn=%d peer=%s reason=%s", text, conn_id, peer, kind)
        self._door.metrics.refuse(kind)
        self._say_last(code, now_ms, text)
        self._hang_up(kind)

    def _give_up(self, error: LmqError) -> None:
        """End the connection: something that the client is to be answered for is lost."""
        LOGGER.warning("closing connection: not stored conn=%d cause=%s", self.transport.conn_id, error)
        self._door.metrics.refuse("not_stored")
        self._connection.say_why(ReasonCode.UNSPECIFIED_ERROR, "not stored")
        self._connection.stop()
        self.transport.write(self._connection.data_to_send())
        self._hang_up("not stored")

    def _close_later(self) -> None:
        """Close when all that came is answered."""
        if self._unkept:
            self._door.broker.when_kept(self._close_answered)
        else:
            self._door.broker.when_durable(self._close_answered)

    def _close_answered(self, error: LmqError | None) -> None:
        del error  # the peer is told of each by what it is not answered
        self.transport.close()

    def _hang_up(self, why: str) -> None:
        self.transport.end_reason = self.transport.end_reason or why
        self.transport.finish()

    def _leave(self, now_ms: int) -> None:
        """Publish the will, if it is still wanted, and let go of the session; harmless when done before."""
        attempt, self._attempt = self._attempt, None
        if attempt is not None:
            self._door.authenticator.cancel(attempt)
        self._entering = self._steps = None
        if self.identity is not None:
            self._door.authenticator.quotas.leave(self.identity.user, self)
        session, self.session = self.session, None
        will, self._will = self._will, None
        if session is not None:
            self._door.attachments.detach(session, now_ms)
        if will is not None:
            self._door.wills.leave(will, self._may, session.expiry_s if session is not None else 0, now_ms)

    def _forget_will(self) -> None:
        if self._will is not None:
            self._door.wills.forget(self._will)
            self._will = None

    def _note_denied(self, action: str, names: list[bytes]) -> None:
        user = "" if self.identity is None else self.identity.user
        self._denials = denials = self._denials or Denials(self._door.actor(self.transport, user))
        for name in names:
            denials.note(action, name, find_decider(self._may, action, name))
