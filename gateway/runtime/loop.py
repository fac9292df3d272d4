"""What the loop runs the product by: the clock, one coarse timer for everything that has a deadline, the turns."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from core.broker import Broker

LOGGER = logging.getLogger(__name__)

TICK_MS = 250  # deadlines share slots of so much, so one is told up to that late
SET_BACK_MS = 1_000  # less is how clocks are kept right, and not worth a line
SLOWER_BY = 8  # by this part of the time that passes: an hour is made good in eight
LOOK_AGAIN_MS = 60_000  # so long a token may outlive its end where a clock that was set back is set right
AHEAD_MAX_MS = 48 * 3_600_000  # made good in 16 days; a log that is further ahead was written by a clock all wrong
TIMER_TURN_NS = 1_000_000  # of a turn, for what has a deadline: a fifth of the 5 ms that no turn of the loop is to pass
DUE_A_STEP = 16  # of them between two looks at the clock, of some microseconds each
TURN_BYTES = 128 * 1024  # half a full read: less would cost the batch, more lets readers fall behind
_TURN_BYTES = TURN_BYTES


class Clock:
    """Milliseconds since 1970, never going back and never standing still.

    When the machine's clock is set back, this one goes on from where it is, an eighth slower than time passes, until
    the machine's has caught up: else nothing that has a deadline, such as a heartbeat, would be due until then.
    """

    __slots__ = ("_behind_from_ms", "_behind_since_ns", "_last_ms")

    def __init__(self) -> None:
        self._last_ms = 0
        self._behind_from_ms = 0  # where it was when the machine's clock was set back
        self._behind_since_ns = -1  # and when that was, by a clock that is never set; -1: it is not behind

    def go_on_from(self, at_ms: int) -> int:
        """Be no earlier than the newest message, where the machine's clock was set back while no gateway ran.

        Messages keep the order of their times, so what comes next is no older: its time to live would begin when the
        machine's clock has caught up. Return the present moment.
        """
        ahead_ms = at_ms - self.now_ms()
        if ahead_ms > AHEAD_MAX_MS:
            LOGGER.warning("messages are from the future: times to live wait for their clock by_ms=%d", ahead_ms)
        elif ahead_ms > 0:
            self._last_ms = at_ms
        return self.now_ms()

    def read_ns(self) -> int:
        """Return what the machine's clock says, in nanoseconds since 1970."""
        return time.time_ns()

    def now_ms(self) -> int:
        """Return the present moment, at least as late as any returned before."""
        now_ms = self.read_ns() // 1_000_000
        if now_ms < self._last_ms or self._behind_since_ns >= 0:
            return self._go_on(now_ms)
        self._last_ms = now_ms
        return now_ms

    def machine_ms(self) -> int:
        """Return what the machine's clock says: what others set a moment by, such as the end of a token, is by that."""
        return self.read_ns() // 1_000_000

    def find_moment(self, machine_ms: int) -> int:
        """Return the moment here at which the machine's clock says `machine_ms`, if it is set no more until then.

        While that clock is behind it is likely to be set: then `LOOK_AGAIN_MS` from now at most, to be asked again.
        """
        now_ms = self.now_ms()
        if self._behind_since_ns < 0:
            return machine_ms
        left_ms = machine_ms - self.machine_ms()
        return now_ms + min(left_ms - left_ms // SLOWER_BY, LOOK_AGAIN_MS)

    def read_steady_ns(self) -> int:
        """Return nanoseconds of a clock that nobody sets."""
        return time.monotonic_ns()

    def _go_on(self, machine_ms: int) -> int:
        """Return the moment while the machine's clock is behind."""
        steady_ns = self.read_steady_ns()
        if self._behind_since_ns < 0:
            self._behind_since_ns, self._behind_from_ms = steady_ns, self._last_ms
            behind_ms = self._last_ms - machine_ms
            if behind_ms >= SET_BACK_MS:
                LOGGER.warning(
                    "the machine's clock was set back: the gateway's time runs slower until it catches up by_ms=%d",
                    behind_ms,
                )
        passed_ms = (steady_ns - self._behind_since_ns) // 1_000_000
        now_ms = self._behind_from_ms + passed_ms - passed_ms // SLOWER_BY
        if now_ms <= machine_ms:
            self._behind_since_ns = -1
            now_ms = machine_ms
        self._last_ms = max(self._last_ms, now_ms)
        return self._last_ms


class Timed(Protocol):
    """Something with a deadline. `timer_slot` is the timer's own; it starts as -1."""

    timer_slot: int

    def next_deadline_ms(self) -> int | None:
        """Return the moment that `on_deadline` is wanted at."""

    def on_deadline(self, now_ms: int) -> None:
        """The deadline has passed."""


class CoarseTimer:
    """Deadlines in slots of a quarter of a second: one timer of the loop for any number of connections.

    A deadline that moves later costs nothing: what is due is asked again and filed anew when its old slot comes.
    """

    def __init__(self, clock: Clock) -> None:
        self.tick = 0  # how often it has run
        self._clock = clock
        self._slots: dict[int, list[Timed]] = {}
        self._due: deque[tuple[int, deque[Timed]]] = deque()  # slots that are due, each with what is left of it
        self._is_going_on = False  # with that, in the next turn
        self._moved: list[Timed] = []
        self._next_slot = clock.now_ms() // TICK_MS
        self._handle: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def watch(self, timed: Timed) -> None:
        """File `timed` by its present deadline, unless it is filed under an earlier one."""
        deadline_ms = timed.next_deadline_ms()
        if deadline_ms is None:
            return
        slot = max(deadline_ms // TICK_MS + 1, self._next_slot)
        if 0 <= timed.timer_slot <= slot:
            return
        timed.timer_slot = slot
        self._slots.setdefault(slot, []).append(timed)

    def watch_soon(self, timed: Timed) -> None:
        """File `timed` at the next run, in time for it; enough once between two runs, which `tick` tells apart."""
        self._moved.append(timed)

    def run_due(self, now_ms: int) -> None:
        """Call `on_deadline` of everything whose deadline has passed."""
        self._take_due(now_ms)
        while self._run_some(now_ms):
            pass

    def _take_due(self, now_ms: int) -> None:
        self.tick += 1
        moved, self._moved = self._moved, []
        for timed in moved:
            self.watch(timed)
        until = now_ms // TICK_MS
        if until - self._next_slot > len(self._slots):
            due = sorted([slot for slot in self._slots if slot <= until])
        else:
            due = [slot for slot in range(self._next_slot, until + 1) if slot in self._slots]
        self._next_slot = until + 1
        for slot in due:
            self._due.append((slot, deque(self._slots.pop(slot))))

    def _run_some(self, now_ms: int) -> bool:
        """Call `on_deadline` of some of what was due; return whether there is more."""
        if self._due:
            slot, waiting = self._due[0]
            for _ in range(min(DUE_A_STEP, len(waiting))):
                timed = waiting.popleft()
                if timed.timer_slot == slot:  # else it was filed again, under an earlier slot
                    timed.timer_slot = -1
                    self._run(timed, now_ms)
            if not waiting:
                self._due.popleft()
        return bool(self._due)

    def _run(self, timed: Timed, now_ms: int) -> None:
        deadline_ms = timed.next_deadline_ms()
        if deadline_ms is not None and deadline_ms <= now_ms:
            try:
                timed.on_deadline(now_ms)
            except Exception:
                LOGGER.exception("a deadline's work failed")
        self.watch(timed)

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Run by `loop` from now on."""
        self._loop = loop
        self._handle = loop.call_later(TICK_MS / 1000, self._tick)

    def stop(self) -> None:
        """Run no more, also nothing of what is due already: its next turn may come after the log is closed."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _tick(self) -> None:
        self._take_due(self._clock.now_ms())
        if self._handle is not None and self._loop is not None:
            self._handle = self._loop.call_later(TICK_MS / 1000, self._tick)
        if not self._is_going_on:
            self._go_on()

    def _go_on(self) -> None:
        """Run what is due for about a millisecond, the rest in further turns: ten thousand share a slot at times."""
        self._is_going_on = False
        if self._handle is None:
            return
        until_ns = time.monotonic_ns() + TIMER_TURN_NS
        while self._run_some(self._clock.now_ms()):
            if time.monotonic_ns() >= until_ns and self._loop is not None:
                self._is_going_on = True
                self._loop.call_soon(self._go_on)
                return


class BrokerTimer:
    """Has the broker do what has a deadline, such as showing messages again that were hidden until a moment."""

    def __init__(self, broker: Broker, timer: CoarseTimer) -> None:
        self.timer_slot = -1
        self._broker = broker
        self._timer = timer
        self._asked_in = -1  # that tick
        broker.request_timer = self._request
        timer.watch(self)

    def _request(self) -> None:
        if self._asked_in != self._timer.tick:
            self._asked_in = self._timer.tick
            self._timer.watch_soon(self)

    def next_deadline_ms(self) -> int | None:
        """Return when the broker has something to do."""
        return self._broker.next_deadline_ms()

    def on_deadline(self, now_ms: int) -> None:
        """Let the broker do it."""
        self._broker.handle_timer(now_ms)


class Alarm:
    """Calls `ring` at a moment, to the millisecond: one timer of the loop, set to the earliest moment asked for."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock, ring: Callable[[], None]) -> None:
        self._loop = loop
        self._clock = clock
        self._ring = ring
        self._at_ms = 0
        self._handle: asyncio.TimerHandle | None = None

    def set(self, at_ms: int) -> None:
        """Ring at `at_ms`, or before, where that was asked for."""
        if self._handle is not None:
            if at_ms >= self._at_ms:
                return
            self._handle.cancel()
        self._at_ms = at_ms
        self._handle = self._loop.call_later(max(0, at_ms - self._clock.now_ms()) / 1000, self._called)

    def stop(self) -> None:
        """Ring no more, unless set again."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _called(self) -> None:
        self._handle = None
        self._ring()


class TurnRunner:
    """Runs the broker's turn once at the end of each loop turn that made work, and between reads where that is a lot.

    One turn of the loop can bring many reads of one busy connection (libuv reads a socket up to 32 times). Readers
    that ran only after all of them would fall behind the writer.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock, broker: Broker) -> None:
        self._loop = loop
        self._clock = clock
        self._broker = broker
        self._is_called = False  # the loop will call `_turn`
        self._arrived_bytes = 0

    def schedule(self) -> None:
        """Run a turn when the callbacks of this turn of the loop are through."""
        if not self._is_called:
            self._is_called = True
            self._loop.call_soon(self._called)

    def begin_read(self, size: int) -> int:
        """Note that `size` bytes are about to be handled; readers run first if they are due. Return the moment."""
        if self._arrived_bytes >= _TURN_BYTES and self._broker.has_work:
            self._turn(self._clock.now_ms())
        self._arrived_bytes += size
        return self._clock.now_ms()

    def _called(self) -> None:
        self._is_called = False
        if self._broker.has_work:
            self._turn(self._clock.now_ms())

    def _turn(self, now_ms: int) -> None:
        self._arrived_bytes = 0
        began_ns = time.monotonic_ns()
        self._broker.run_turn(now_ms)
        metrics = self._broker.metrics.loop
        took_ns = time.monotonic_ns() - began_ns
        metrics.turn_ns_max = max(metrics.turn_ns_max, took_ns)
