"""A client between its login and its session: the session is claimed of the engine first."""

from __future__ import annotations

from core.errors import LmqError
from gateway.auth.authenticator import Identity
from gateway.mqtt.packets import Connect


class Entering:
    """A client that was let in and has no session yet: the engine is asked first whether that is ours to give."""

    __slots__ = ("claim_error", "client_id", "connect", "identity", "is_asked", "is_claimed")

    def __init__(self, connect: Connect, client_id: bytes, identity: Identity) -> None:
        self.connect = connect
        self.client_id = client_id
        self.identity = identity
        self.is_asked = False
        self.is_claimed = False
        self.claim_error: LmqError | None = None

    def note_claim(self, error: LmqError | None) -> None:
        """Take note of what the engine said."""
        self.is_claimed = error is None
        self.claim_error = error
