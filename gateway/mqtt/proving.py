"""Enhanced authentication on one connection, at its CONNECT and again later: what is asked, by which method.

Source: section 4.12 of MQTT 5. The methods are SCRAM-SHA-256, and OAUTHBEARER where tokens are taken.
"""

from __future__ import annotations

from gateway.auth.authenticator import Authenticator
from gateway.auth.bearer import BearerError
from gateway.auth.credentials import Credentials, LoginAnswer, Refusal, Then
from gateway.auth.mechanisms import Proof, find_proof
from gateway.auth.password_checks import Attempt
from gateway.mqtt.errors import ProtocolViolationError
from gateway.mqtt.packets import Auth, Connect
from gateway.mqtt.properties import Property, Value
from gateway.mqtt.reason_codes import ReasonCode
from gateway.settings.way_names import Ways


class Proving:
    """The proofs of one connection, one at a time, all by the method of its CONNECT.

    Args:
        authenticator: Knows how they are checked.
        connect: What the client began with; it has a method.
        client_id: As the client gave it, or was given it.
        peer: Where the client is: an address that is often wrong waits.
        ways: The authenticators that count there.
    """

    __slots__ = (
        "_authenticator",
        "_method",
        "_peer",
        "_proof",
        "_ways",
        "client_id",
        "connect",
        "is_checked",
        "refused",
    )

    def __init__(
        self, authenticator: Authenticator, connect: Connect, client_id: bytes, peer: str, ways: Ways = None
    ) -> None:
        self.connect = connect
        self.client_id = client_id
        self.is_checked = False  # the proof was given to the authenticator
        self.refused: Refusal | None = None  # the reason; told once the client has answered its method's last step
        self._authenticator = authenticator
        self._peer = peer
        self._ways = ways
        self._method = connect.properties.texts[Property.AUTH_METHOD]
        self._proof = self._find_proof()

    def _find_proof(self) -> Proof | None:
        return find_proof(self._method.decode(errors="replace"), self._authenticator, self._ways)

    @property
    def is_under_way(self) -> bool:
        """Whether a proof was begun and is not done; at first: whether there is such a method here."""
        return self._proof is not None

    @property
    def user(self) -> str:
        """The user whose secret is to be proved; empty: none was named, or it is a token."""
        return "" if self._proof is None else self._proof.user

    @property
    def token(self) -> bytes | None:
        """The token that the client gave; None where it gave none."""
        return None if self._proof is None else self._proof.token

    def begin(self, packet: Connect | Auth) -> bytes | None:
        """Return what the client is asked for, by what it began with: a CONNECT, or an AUTH that begins anew.

        None where that was its whole proof.

        Raises:
            ScramError, BearerError: It began with what is no message of the method.
        """
        first = packet.properties.texts.get(Property.AUTH_DATA)
        if first is None:
            return b""  # it is asked for its first message
        if self._proof is None:
            raise BearerError("tokens are taken no more")
        return self._proof.take(first)

    def take(self, packet: Auth) -> bytes | None:
        """Take what the client goes on with; return what it is asked for next, None where its proof is complete.

        Raises:
            ScramError, BearerError: It is no message of the method, or not of this exchange.
            ProtocolViolationError: The packet may not come now, or has another method.
        """
        if packet.properties.texts.get(Property.AUTH_METHOD) != self._method:
            raise ProtocolViolationError("MQTT-4.12.0-5", "an AUTH of another method than its CONNECT")
        if self._proof is None and packet.code == ReasonCode.REAUTHENTICATE:
            self._proof = self._find_proof()
            self.is_checked = False
            return self.begin(packet)
        if self.refused is not None and packet.code == ReasonCode.CONTINUE_AUTHENTICATION:
            return None
        if self._proof is None or self.is_checked or packet.code != ReasonCode.CONTINUE_AUTHENTICATION:
            raise ProtocolViolationError("MQTT-4.12.0-3", f"an unexpected AUTH with reason {packet.code:#04x}")
        return self._proof.take(packet.properties.texts.get(Property.AUTH_DATA, b""))

    def check(self, then: Then) -> Attempt | None:
        """Have the proof checked, once it is complete."""
        assert self._proof is not None
        self.is_checked = True
        who = Credentials("mqtt", None, None, self._peer, client=self.client_id.decode(), ways=self._ways)
        return self._proof.check(who, then)

    def complain(self, answer: LoginAnswer) -> bytes:
        """Return what a client is asked whose proof was found wrong, before it is refused; empty: nothing."""
        if self._proof is None or answer is not Refusal.WRONG:
            return b""
        self.refused = answer if self._proof.complaint else None
        return self._proof.complaint

    def end(self) -> list[tuple[Property, Value]]:
        """Return what the client is told, whose proof was found right; it may begin another then."""
        assert self._proof is not None
        final = self._proof.final
        self._proof = None
        return self.items_of(final)

    def items_of(self, data: bytes) -> list[tuple[Property, Value]]:
        """Return properties that say the method, and what comes next of it."""
        items: list[tuple[Property, Value]] = [(Property.AUTH_METHOD, self._method)]
        return [*items, (Property.AUTH_DATA, data)] if data or self.is_under_way else items
