"""Enhanced authentication on one connection, at its CONNECT and again later: what is asked, by which method.

Source: section 4.12 of MQTT 5. The one method is SCRAM-SHA-256.
"""

from __future__ import annotations

from gateway.auth.authenticator import Authenticator
from gateway.auth.credentials import Credentials, Then
from gateway.auth.password_checks import Attempt
from gateway.auth.scram import METHOD, ScramExchange
from gateway.mqtt.errors import ProtocolViolationError
from gateway.mqtt.packets import Auth, Connect
from gateway.mqtt.properties import Property, Value
from gateway.mqtt.reason_codes import ReasonCode

METHOD_BYTES = METHOD.encode()


class Proving:
    """The proofs of one connection, one at a time.

    Args:
        authenticator: Knows how they are checked.
        connect: What the client began with.
        client_id: As the client gave it, or was given it.
        peer: Where the client is: an address that is often wrong waits.
    """

    __slots__ = ("_authenticator", "_exchange", "_is_first_taken", "_peer", "client_id", "connect", "is_checked")

    def __init__(self, authenticator: Authenticator, connect: Connect, client_id: bytes, peer: str) -> None:
        self.connect = connect
        self.client_id = client_id
        self.is_checked = False  # the proof was given to the authenticator
        self._authenticator = authenticator
        self._peer = peer
        self._exchange: ScramExchange | None = authenticator.begin_scram()
        self._is_first_taken = False

    @property
    def is_under_way(self) -> bool:
        """Whether a proof was begun and is not done."""
        return self._exchange is not None

    def begin(self, packet: Connect | Auth) -> bytes:
        """Return what the client is asked for, by what it began with: a CONNECT, or an AUTH that begins anew.

        Raises:
            ScramError: It began with what is no message of the method.
        """
        first = packet.properties.texts.get(Property.AUTH_DATA)
        if first is None:
            return b""  # it is asked for its first message
        return self._answer_first(first)

    def take(self, packet: Auth) -> bytes | None:
        """Take what the client goes on with; return what it is asked for next, None where its proof is complete.

        Raises:
            ScramError: It is no message of the method, or not of this exchange.
            ProtocolViolationError: The packet may not come now, or has another method.
        """
        check_method(packet)
        if self._exchange is None and packet.code == ReasonCode.REAUTHENTICATE:
            self._exchange = self._authenticator.begin_scram()
            self._is_first_taken = self.is_checked = False
            return self.begin(packet)
        if self._exchange is None or self.is_checked or packet.code != ReasonCode.CONTINUE_AUTHENTICATION:
            raise ProtocolViolationError(
                "MQTT-4.12.0-3", f"an AUTH for reason {packet.code:#04x} that nobody asked for"
            )
        data = packet.properties.texts.get(Property.AUTH_DATA, b"")
        if not self._is_first_taken:
            return self._answer_first(data)
        self._exchange.take_final(data)
        return None

    def check(self, then: Then) -> Attempt:
        """Have the proof checked, once it is complete."""
        assert self._exchange is not None
        self.is_checked = True
        who = Credentials("mqtt", None, None, self._peer, client=self.client_id.decode())
        return self._authenticator.check_scram(self._exchange, who, then)

    def end(self) -> list[tuple[Property, Value]]:
        """Return what the client is told, whose proof was found right; it may begin another then."""
        assert self._exchange is not None
        final = self._exchange.final
        self._exchange = None
        return items_of(final)

    def _answer_first(self, data: bytes) -> bytes:
        assert self._exchange is not None
        self._is_first_taken = True
        return self._exchange.answer_first(data)


def items_of(data: bytes) -> list[tuple[Property, Value]]:
    """Return properties that say the method and what comes next of it."""
    return [(Property.AUTH_METHOD, METHOD_BYTES), (Property.AUTH_DATA, data)]


def check_method(packet: Auth) -> None:
    """Check that an AUTH is of the method of its connection's CONNECT.

    Raises:
        ProtocolViolationError: It is of another.
    """
    if packet.properties.texts.get(Property.AUTH_METHOD) != METHOD_BYTES:
        raise ProtocolViolationError("MQTT-4.12.0-5", "an AUTH of another method than its CONNECT")
