"""Work of a door that grows with what a client made, such as the end of a session with ten thousand subscriptions.

It is done in steps, some in each of the broker's turns, between which everybody else is served.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator

from core.broker import Broker
from core.lmq.waiters import Reader

AT_ONCE = 128  # steps of one turn that are done as soon as they are asked for: most work has fewer
TURN_NS = 1_000_000  # of each further turn: a fifth of the 5 ms that no turn of the loop is to pass
ROUND = 16  # steps of one piece of work before the next one has its turn
_END = object()


class Chores(Reader):
    """Pieces of work under way, each an iterator that does a step whenever it is asked for the next item.

    Args:
        broker: Gives the turns.
        now_ns: A clock that nobody sets.
    """

    def __init__(self, broker: Broker, now_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._broker = broker
        self._now_ns = now_ns
        self._waiting: deque[Iterator[object]] = deque()
        self._done = 0  # steps of this turn, of what was begun in it

    def start(self, work: Iterator[object], *, is_long: bool = False) -> None:
        """Do a piece of work, at once where it is small; else some of it in each of the next turns.

        Args:
            work: It.
            is_long: Whether it is known to have more steps than are done at once, or dear ones: then it begins in the
                next turn, which looks at the clock.
        """
        if not self._waiting and self._done < AT_ONCE and not is_long:
            if not self._done:
                self._broker.request_run(self)  # which begins to count anew
            for _ in range(AT_ONCE - self._done):
                if next(work, _END) is _END:
                    return
                self._done += 1
        self._waiting.append(work)
        self._broker.request_run(self)

    def finish(self) -> None:
        """Do all that is left, at the end of the process: in turns, as one piece of work may wait for another."""
        while self._waiting:
            work = self._waiting.popleft()
            if next(work, _END) is not _END:
                self._waiting.append(work)

    def on_ready(self, now_ms: int) -> bool:
        """Do some of each piece of work that waits; called by the broker."""
        del now_ms
        self._done = 0
        try:
            self._work_until(self._now_ns() + TURN_NS)
        finally:
            if self._waiting:
                self._broker.request_run(self)
        return False

    def _work_until(self, until_ns: int) -> None:
        while self._waiting:
            work = self._waiting.popleft()
            for _ in range(ROUND):
                if next(work, _END) is _END:
                    break
                if self._now_ns() >= until_ns:
                    self._waiting.append(work)
                    return
            else:
                self._waiting.append(work)
