"""What the settings offer to a connection, as its handshake says it."""

from __future__ import annotations

from gateway.amqp.handshake import AMQPLAIN, EXTERNAL, PLAIN, ConnectionLimits
from gateway.settings.models import AmqpSettings


def limits_of(
    settings: AmqpSettings, message_bytes_max: int, *, is_certified: bool = False, proofs: tuple[str, ...] = ()
) -> ConnectionLimits:
    """Return what the settings offer to new connections; no message is larger than the store takes.

    `is_certified`: a certificate names the client's user; `proofs` are mechanisms that go in steps.
    """
    return ConnectionLimits(
        frame_max=settings.frame_bytes_max,
        channel_max=settings.channels_max,
        heartbeat_s=settings.heartbeat_s,
        body_bytes_max=settings.body_bytes_max or message_bytes_max,
        handshake_ms=settings.handshake_timeout_ms,
        product=settings.product,
        mechanisms=(*((EXTERNAL,) if is_certified else ()), PLAIN, AMQPLAIN, *proofs),
    )
