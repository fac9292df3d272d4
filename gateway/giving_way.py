"""Whom a message woke runs before what is still to be done for it."""

from __future__ import annotations

from gateway import clocks, yield_calls

LONG_NS = 500_000  # a client's turn is shorter, a slice of somebody who computes longer
PAUSE_NS_MIN = 100_000_000
PAUSE_NS_MAX = 3_200_000_000
_LONG_NS = LONG_NS
_PAUSE_NS_MIN = PAUSE_NS_MIN
_PAUSE_NS_MAX = PAUSE_NS_MAX


class GivingWay:
    """Gives up the processor's core when a lone message was sent, before it is stored.

    A client on the same machine may have been put behind us, on our core: to give it up lets it go on at once. Where
    nobody is there that is nothing but a system call. Who computes there would take it for a slice, some milliseconds:
    after such a time it is not given up for a pause, twice as long each time that another follows soon.
    """

    __slots__ = ("_calm_at_ns", "_not_before_ns", "_pause_ns")

    def __init__(self) -> None:
        self._not_before_ns = 0
        self._calm_at_ns = 0  # a long time that comes later is another matter
        self._pause_ns = PAUSE_NS_MIN

    def read_ns(self) -> int:
        """Return the present moment, in nanoseconds by a clock that nobody sets."""
        return clocks.monotonic_ns()

    def give_up_core(self) -> None:
        """Let other threads that wait for this one's core run first."""
        yield_calls.give_up_core()

    def give_way(self) -> None:
        """Let others run, unless that took long a short while ago."""
        began_ns = self.read_ns()
        if began_ns < self._not_before_ns:
            return
        self.give_up_core()
        ended_ns = self.read_ns()
        if ended_ns - began_ns > _LONG_NS:
            is_soon = began_ns < self._calm_at_ns
            self._pause_ns = min(2 * self._pause_ns, _PAUSE_NS_MAX) if is_soon else _PAUSE_NS_MIN
            self._not_before_ns = ended_ns + self._pause_ns
            self._calm_at_ns = self._not_before_ns + self._pause_ns
