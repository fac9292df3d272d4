"""A client between its login and its CONNACK: its session is claimed of the engine first, and written down."""

from __future__ import annotations

from collections.abc import Callable

from core.errors import LmqError
from gateway.auth.credentials import Identity
from gateway.mqtt.attachments import Attachment
from gateway.mqtt.packets import Connect
from gateway.mqtt.terms import Terms


def _nothing() -> None:
    return


class Entering:
    """A client that was let in and has no CONNACK yet.

    The engine is asked first whether its session is ours to give. Then it has one, `found`; where that, a will or the
    end of another session is to be written down, `on_over` is called when it is.
    """

    __slots__ = (
        "claim_error",
        "client_id",
        "connect",
        "found",
        "had_durable",
        "identity",
        "is_asked",
        "is_claimed",
        "is_judged",
        "is_over",
        "kept_error",
        "on_over",
        "terms",
    )

    def __init__(self, connect: Connect, client_id: bytes, identity: Identity) -> None:
        self.connect = connect
        self.client_id = client_id
        self.identity = identity
        self.is_asked = False
        self.is_claimed = False
        self.is_judged = False  # a back end was asked about the topics that the session is to have
        self.claim_error: LmqError | None = None
        self.had_durable = False  # a durable session: it goes on, or its end is to be written down
        self.terms: Terms | None = None
        self.found: Attachment | None = None
        self.is_over = False  # there is nothing more to wait for
        self.kept_error: LmqError | None = None
        self.on_over: Callable[[], None] = _nothing

    def note_claim(self, error: LmqError | None) -> None:
        """Take note of what the engine said."""
        self.is_claimed = error is None
        self.claim_error = error

    def note_kept(self, error: LmqError | None) -> None:
        """Take note that what is durable is written down, or cannot be."""
        self.kept_error = error
        self.is_over = True
        on_over, self.on_over = self.on_over, _nothing  # which refers back here: the collector is not to be waited for
        on_over()
