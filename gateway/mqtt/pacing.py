"""How fast one client may publish: what comes faster is not read for a while, and nobody else is disturbed."""

from __future__ import annotations

from gateway.door import ClientLimits
from gateway.net.rates import Rate
from gateway.settings import MqttSettings

_ANY = 1 << 30


class Pacing:
    """The pace of one connection.

    Args:
        messages_rate: Messages a second, 0 for any number.
        bytes_rate: Bytes of bodies a second, 0 for any number.
        now_ms: The time.
    """

    __slots__ = ("_bytes", "_messages", "is_paused", "until_ms")

    def __init__(self, messages_rate: int, bytes_rate: int, now_ms: int) -> None:
        self._messages = Rate(messages_rate, now_ms) if messages_rate else None
        self._bytes = Rate(bytes_rate, now_ms) if bytes_rate else None
        self.is_paused = False
        self.until_ms = 0

    def allow(self, now_ms: int) -> int:
        """Return how many messages may be taken now, at least one."""
        return _ANY if self._messages is None else max(self._messages.left(now_ms), 1)

    def note(self, count: int, size: int, now_ms: int) -> bool:
        """Take note of messages that were taken; return whether a pause begins."""
        wait_ms = 0
        for rate, taken in ((self._messages, count), (self._bytes, size)):
            if rate is not None:
                rate.left(now_ms)
                rate.take(taken)
                wait_ms = max(wait_ms, rate.wait_ms())
        self.is_paused = wait_ms > 0
        self.until_ms = now_ms + wait_ms
        return self.is_paused


def make_pacing(settings: MqttSettings, own: ClientLimits, now_ms: int) -> Pacing | None:
    """Return the pace of a new connection, None where there is no limit; its address may have rates of its own."""
    messages_rate = own.messages_rate or settings.messages_rate
    bytes_rate = own.bytes_rate or settings.bytes_rate
    if messages_rate or bytes_rate:
        return Pacing(messages_rate, bytes_rate, now_ms)
    return None
