"""What a connection keeps for later: a request that waits for messages, and is answered once."""

from __future__ import annotations

from core.lmq.waiters import Reader

HELD_MAX = 10_000  # of one connection; more are answered at once


class Held(Reader):
    """A request that waits; its connection keeps it, and sees to its deadline."""

    __slots__ = ("deadline_ms",)

    deadline_ms: int

    def resume(self, now_ms: int) -> None:
        """Look again whether it can be answered; from the deadline on it is."""
        raise NotImplementedError

    def forget(self) -> None:
        """End it without an answer: its connection is gone."""
        raise NotImplementedError
