"""How much of a turn of the loop each connection gets, so that no client's flood stops the others.

The loop serves whatever is readable in order, and a read may hold a hundred thousand packets. So a handler works for
one share of a turn and leaves the rest of what it was given; its connection waits here, is not read meanwhile, and goes
on when the others had their turn. A turn is what the loop does between two looks at its sockets.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from core.metrics import LoopMetrics

SHARE_NS = 1_000_000  # of one connection: some 2,500 messages, or 50 subscriptions
READS_NS = 4_000_000  # of all connections that are read in one turn; with more than that the rest waits
WAITING_NS = 2_000_000  # of all work that waits; it comes before reads, which have a share of their own
DEAR_NS = 100_000  # work that takes less is counted together: most reads are of a few messages
CHEAP_NS = 500_000  # of it together, before that counts: to begin a turn anew costs as much as a small message
_SHARE_NS = SHARE_NS
_READS_NS = READS_NS
_WAITING_NS = WAITING_NS
_DEAR_NS = DEAR_NS
_CHEAP_NS = CHEAP_NS


class Sharer(Protocol):
    """A connection, which may have more to do than fits a share."""

    def go_on(self) -> None:
        """Work for a share, after `Shares.wait`."""


class Shares:
    """The shares of one loop's turns.

    Args:
        call_soon: Calls back in the next turn of the loop.
        metrics: Where the longest share is noted.
        now_ns: A clock that nobody sets.
    """

    def __init__(
        self,
        call_soon: Callable[[Callable[[], None]], object],
        metrics: LoopMetrics,
        now_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._metrics = metrics
        self._call_soon = call_soon
        self._now_ns = now_ns
        self._waiting: deque[Sharer] = deque()
        self._spent_ns: dict[Sharer, int] = {}  # in this turn, by those whose reads were dear
        self._is_called = False  # the loop will call `_next_turn`
        self._used_ns = 0  # of this turn
        self._cheap_ns = 0  # that nobody had counted yet
        self._began_ns = 0
        self._until_ns = 0  # end of the share under way

    def may_read(self) -> bool:
        """Return whether what was read now is handled in this turn; else it has to `wait`."""
        return self._used_ns < _READS_NS

    def begin(self, sharer: Sharer) -> None:
        """Begin the share of one; what it had of this turn counts."""
        spent_ns = self._spent_ns.get(sharer, 0) if self._spent_ns else 0
        self._began_ns = self._now_ns()
        self._until_ns = self._began_ns + _SHARE_NS - spent_ns

    def is_over(self) -> bool:
        """Return whether the share under way is used up."""
        return self._now_ns() >= self._until_ns

    def end(self, sharer: Sharer) -> bool:
        """End the share under way; return whether nothing of it is left in this turn."""
        took_ns = self._now_ns() - self._began_ns
        self._count(took_ns)
        if took_ns < _DEAR_NS:
            return False
        self._metrics.share_ns_max = max(self._metrics.share_ns_max, took_ns)
        spent_ns = self._spent_ns.get(sharer, 0) + took_ns
        self._spent_ns[sharer] = spent_ns
        return spent_ns >= _SHARE_NS

    def begin_aside(self) -> int:
        """Return the moment at which small work begins that is no connection's share, such as its end."""
        return self._now_ns()

    def end_aside(self, began_ns: int) -> None:
        """Count that work as what is read is counted."""
        self._count(self._now_ns() - began_ns)

    def _count(self, took_ns: int) -> None:
        """Count work of this turn."""
        if took_ns < _DEAR_NS:
            self._cheap_ns += took_ns
            if self._cheap_ns < _CHEAP_NS:
                return
            took_ns, self._cheap_ns = self._cheap_ns, 0
        self._used_ns += took_ns
        self._call_next()

    def wait(self, sharer: Sharer) -> None:
        """Have `go_on` called in a later turn, once, after all that wait already."""
        self._waiting.append(sharer)
        self._call_next()

    def _call_next(self) -> None:
        if not self._is_called:
            self._is_called = True
            self._call_soon(self._next_turn)

    def _next_turn(self) -> None:
        """Let those that wait go on, as many as fit; what is read after them has a part of its own."""
        self._is_called = False
        self._used_ns = self._cheap_ns = 0
        self._spent_ns.clear()
        for _ in range(len(self._waiting)):
            self._waiting.popleft().go_on()
            if self._used_ns >= _WAITING_NS:
                break
        self._used_ns = 0
        if self._waiting:
            self._call_next()
