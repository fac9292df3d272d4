"""Heartbeats of one connection: when to send one, and when the peer has been silent for too long."""

from __future__ import annotations

from gateway.amqp.errors import frame_error, unexpected_frame
from gateway.amqp.frames import FRAME_HEARTBEAT, encode_frame

HEARTBEAT_FRAME = encode_frame(FRAME_HEARTBEAT, 0, b"")
MISSED_MAX = 2  # intervals without a byte from the peer


class Heartbeat:
    """Counts what was sent and received; an interval of 0 means that neither side beats."""

    __slots__ = ("_beat_at_ms", "_has_sent", "_is_paused", "interval_ms", "received_ms")

    def __init__(self, now_ms: int) -> None:
        self.interval_ms = 0
        self.received_ms = now_ms
        self._beat_at_ms = 0
        self._has_sent = False
        self._is_paused = False

    def start(self, interval_ms: int) -> None:
        """Beat from the moment of the last byte received on."""
        self.interval_ms = interval_ms
        self._beat_at_ms = self.received_ms + interval_ms // 2

    def on_sent(self) -> None:
        """Something was sent: it counts as a heartbeat."""
        self._has_sent = True

    def pause(self) -> None:
        """Do not miss the peer's beats, which are not read; ours go on."""
        self._is_paused = True

    def resume(self, now_ms: int) -> None:
        """Wait for the peer's beats again, from now on."""
        self._is_paused = False
        self.received_ms = now_ms

    def next_deadline_ms(self) -> int | None:
        """Return the moment of the next beat or of the end, or None."""
        if not self.interval_ms:
            return None
        if self._is_paused:
            return self._beat_at_ms
        return min(self._beat_at_ms, self.received_ms + MISSED_MAX * self.interval_ms)

    def is_lost(self, now_ms: int) -> bool:
        """Return whether the peer has been silent for too long."""
        is_heard = bool(self.interval_ms) and not self._is_paused
        return is_heard and now_ms >= self.received_ms + MISSED_MAX * self.interval_ms

    def take_beat(self, now_ms: int) -> bool:
        """Return whether a heartbeat is to be sent now."""
        if not self.interval_ms or now_ms < self._beat_at_ms:
            return False
        self._beat_at_ms = now_ms + self.interval_ms // 2
        is_due, self._has_sent = not self._has_sent, False
        return is_due


def check_beat(channel: int, payload: bytes) -> None:
    """Check a heartbeat frame.

    Raises:
        AmqpError: FRAME_ERROR: it has a payload; UNEXPECTED_FRAME: it is on a channel.
    """
    if payload:
        raise frame_error(FRAME_HEARTBEAT, payload)
    if channel:
        raise unexpected_frame(FRAME_HEARTBEAT, payload)
