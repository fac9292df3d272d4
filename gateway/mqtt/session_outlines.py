"""What is told of a session."""

from __future__ import annotations

from typing import NamedTuple

from gateway.mqtt.session import Session
from gateway.net.protocol import Transport


class Outline(NamedTuple):
    """What is told of a session without loading it."""

    client_id: bytes
    owner: bytes | None  # None where that was not written down
    outlet: Transport | None
    is_persistent: bool
    expiry_s: int
    subscription_count: int
    inflight_count: int
    redelivered: int = 0


def outline_of(session: Session) -> Outline:
    """Return what there is to tell of one that is loaded."""
    window = session.window
    return Outline(
        session.client_id,
        session.owner,
        session.outlet,
        session.is_persistent,
        session.expiry_s,
        len(session.subscriptions),
        0 if window is None else window.head - window.tail,
        session.redelivered,
    )
