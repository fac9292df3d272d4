"""What one connection waits for, and how fast it is given messages: its pulls and POPs wait while it has had too many.

Source: docs/protocols/rocketmq.md, "Rates".
"""

from __future__ import annotations

from collections.abc import Callable

from gateway.net.protocol import Transport
from gateway.pacing import Pacing
from gateway.rocketmq.held import Held

ANY = 1 << 30
PAUSE_MS_MAX = 3_000  # what a request that does not wait for messages waits for its pace at most


class HeldTable(dict[int, Held]):
    """The requests of one connection that wait, by their ids.

    Args:
        transport: The connection's; told when the first deadline changes.
        request_run: Has a request looked at again in the next turn.
    """

    def __init__(self, transport: Transport, request_run: Callable[[Held], object]) -> None:
        super().__init__()
        self.pacing: Pacing | None = None  # where there is a limit to what it is given
        self._transport = transport
        self._request_run = request_run
        self._until_ms = 0  # the first deadline, or one before it

    @property
    def is_pausing(self) -> bool:
        """Whether it has had too many messages for now."""
        return self.pacing is not None and self.pacing.is_paused

    @property
    def may_answer(self) -> bool:
        """Whether an answer with messages may be written now."""
        return self._transport.is_writable and not self.is_pausing

    def room(self, now_ms: int) -> int:
        """Return how many messages it may be given now, where `may_answer` says so: at least one."""
        return ANY if self.pacing is None else self.pacing.allow(now_ms)

    def room_bytes(self, now_ms: int) -> int:
        """Return how many bytes of bodies it may be given now: at least one, a message that is larger comes alone."""
        return ANY if self.pacing is None else self.pacing.allow_bytes(now_ms)

    def note(self, count: int, size: int, now_ms: int) -> None:
        """Take note of messages that it is given, and how many bytes their bodies have."""
        if self.pacing is not None and self.pacing.note(count, size, now_ms):
            self._transport.deadline_changed()

    def pause_ms(self, now_ms: int) -> int:
        """Return for how long a request that does not wait for messages is to wait, 0 where there is no pause."""
        if self.pacing is None or not self.pacing.is_paused:
            return 0
        return max(min(self.pacing.until_ms - now_ms, PAUSE_MS_MAX), 1)

    def add(self, held: Held) -> None:
        """Keep a request that waits."""
        if not self or held.deadline_ms < self._until_ms:
            self._until_ms = held.deadline_ms
        self[id(held)] = held

    def next_deadline_ms(self) -> int | None:
        """Return when a request's time or the pause is over, None where nothing waits."""
        if not self:
            return None
        pacing = self.pacing
        return min(self._until_ms, pacing.until_ms) if pacing is not None and pacing.is_paused else self._until_ms

    def handle_timer(self, now_ms: int) -> None:
        """End the pause where it is over; look again at the requests whose time is."""
        pacing = self.pacing
        if pacing is not None and pacing.is_paused and pacing.until_ms <= now_ms:
            pacing.is_paused = False
            self.look_again()
        for held in [held for held in self.values() if held.deadline_ms <= now_ms]:
            held.resume(now_ms)
        self._until_ms = min((held.deadline_ms for held in self.values()), default=0)

    def look_again(self) -> None:
        """Have all looked at again."""
        for held in list(self.values()):
            self._request_run(held)

    def forget_all(self) -> None:
        """End all without an answer."""
        for held in list(self.values()):
            held.forget()
