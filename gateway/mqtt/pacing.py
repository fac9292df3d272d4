"""How fast one client may publish: as its address says, or the door, and its user and others that share besides."""

from __future__ import annotations

from gateway.door import ClientLimits
from gateway.pacing import Pacing, UserRates, make_pacing
from gateway.settings import MqttSettings


def make_client_pacing(
    settings: MqttSettings, own: ClientLimits, of_user: UserRates | None, now_ms: int, *others: UserRates
) -> Pacing | None:
    """Return the pace of a new connection, None where there is no limit; its address may have rates of its own."""
    messages_rate = own.messages_rate or settings.messages_rate
    return make_pacing(messages_rate, own.bytes_rate or settings.bytes_rate, of_user, now_ms, *others)
