"""How fast a connection is sent messages: what is more waits in its queues, where others may take it."""

from __future__ import annotations

from collections.abc import Callable

from gateway.net.protocol import Transport
from gateway.pacing import Pacing


class OutPace:
    """The pace of one connection; while it pauses, its consumers have no room, and a basic.get waits.

    Args:
        pacing: Its rates.
        transport: Its own, whose timer ends pauses.
        read_ms: Returns the time.
    """

    __slots__ = ("_is_waited_for", "_pacing", "_read_ms", "_transport")

    def __init__(self, pacing: Pacing, transport: Transport, read_ms: Callable[[], int]) -> None:
        self._pacing = pacing
        self._transport = transport
        self._read_ms = read_ms
        self._is_waited_for = False  # there was a pause, and the consumers that it held back do not go on yet

    @property
    def until_ms(self) -> int:
        """When what a pause held back may go on, 0 where there was none since `end_pause`."""
        return self._pacing.until_ms if self._is_waited_for else 0

    def room(self) -> int:
        """Return how many messages may be sent now."""
        if not self._pacing.is_paused:
            self.note(0, 0)  # others that share a rate may have taken what there was
        return 0 if self._pacing.is_paused else self._pacing.allow(self._read_ms())

    def room_bytes(self) -> int:
        """Return how many bytes of bodies may be sent now, at least one: a message that is larger is sent whole."""
        return self._pacing.allow_bytes(self._read_ms())

    def note(self, count: int, size: int) -> None:
        """Take note of messages that are sent, and how many bytes their bodies have."""
        if self._pacing.note(count, size, self._read_ms()):
            self._is_waited_for = True
            self._transport.deadline_changed()

    def end_pause(self, now_ms: int) -> bool:
        """Return whether a pause was over at this moment, and is no more; the caller feeds what it held back."""
        if not self._is_waited_for or now_ms < self._pacing.until_ms:
            return False
        self._pacing.is_paused = self._is_waited_for = False
        return True
