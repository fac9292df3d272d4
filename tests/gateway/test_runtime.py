from __future__ import annotations

import asyncio
import logging
import time

import pytest

from gateway.runtime import LONE_NS, TICK_MS, TURN_BYTES, Clock, CoarseTimer, TurnRunner


def test_clock_never_goes_back(monkeypatch):
    moments = iter([5_000_000, 3_000_000, 7_000_000])
    monkeypatch.setattr(time, "time_ns", lambda: next(moments))
    clock = Clock()
    assert [clock.now_ms() for _ in range(3)] == [5, 5, 7]


class Timed:
    def __init__(self, deadline_ms, then=()):
        self.timer_slot = -1
        self.deadline_ms = deadline_ms
        self.then = list(then)
        self.met_at = []

    def next_deadline_ms(self):
        return self.deadline_ms

    def on_deadline(self, now_ms):
        self.met_at.append(now_ms)
        self.deadline_ms = self.then.pop(0) if self.then else None


@pytest.fixture
def clock():
    return Clock()


def test_deadline_is_met_late_by_less_than_two_ticks_and_never_early(clock):
    timer = CoarseTimer(clock)
    at_ms = clock.now_ms() + 1_000
    timed = Timed(at_ms)
    timer.watch(timed)
    for now_ms in range(at_ms - 1_000, at_ms + 2 * TICK_MS, 10):
        timer.run_due(now_ms)
        if now_ms < at_ms:
            assert not timed.met_at
    assert len(timed.met_at) == 1
    assert at_ms <= timed.met_at[0] < at_ms + 2 * TICK_MS


def test_deadline_that_moved_later_is_met_at_its_new_time(clock):
    timer = CoarseTimer(clock)
    start_ms = clock.now_ms()
    timed = Timed(start_ms + 500)
    timer.watch(timed)
    timed.deadline_ms = start_ms + 5_000
    timer.watch(timed)
    timer.run_due(start_ms + 3_000)
    assert not timed.met_at
    timer.run_due(start_ms + 6_000)
    assert len(timed.met_at) == 1


def test_deadline_that_moved_nearer_is_met_once(clock):
    timer = CoarseTimer(clock)
    start_ms = clock.now_ms()
    timed = Timed(start_ms + 5_000)
    timer.watch(timed)
    timed.deadline_ms = start_ms + 500
    timer.watch(timed)
    timer.run_due(start_ms + 1_000)
    timer.run_due(start_ms + 9_000)
    assert timed.met_at == [start_ms + 1_000]


def test_deadline_that_is_told_of_later_is_met_as_soon(clock):
    timer = CoarseTimer(clock)
    start_ms = clock.now_ms()
    timed = Timed(start_ms + 5_000)
    timer.watch(timed)
    tick = timer.tick
    timed.deadline_ms = start_ms + 100
    timer.watch_soon(timed)
    timer.run_due(start_ms + 2 * TICK_MS)
    assert timed.met_at == [start_ms + 2 * TICK_MS]
    assert timer.tick == tick + 1


def test_work_that_fails_stops_no_other(clock, caplog):
    caplog.set_level(logging.CRITICAL, "gateway.runtime")
    timer = CoarseTimer(clock)
    start_ms = clock.now_ms()
    failing, working = Timed(start_ms + 100), Timed(start_ms + 100)
    failing.on_deadline = lambda now_ms: 1 // 0
    timer.watch(failing)
    timer.watch(working)
    timer.run_due(start_ms + 1_000)
    assert len(working.met_at) == 1


def test_clock_that_jumps_by_years_costs_no_walk_over_empty_slots(clock):
    timer = CoarseTimer(clock)
    timed = Timed(clock.now_ms() + 100)
    timer.watch(timed)
    began = time.perf_counter()
    timer.run_due(clock.now_ms() + 10**11)
    assert time.perf_counter() - began < 1
    assert len(timed.met_at) == 1


@pytest.mark.asyncio
async def test_turn_runs_once_for_each_schedule():
    turns = []
    runner = TurnRunner(asyncio.get_running_loop(), Clock(), turns.append)
    runner.schedule()
    assert turns == []
    await asyncio.sleep(0)
    assert len(turns) == 1


class Ticking(Clock):
    """A clock on which `idle_ns` is what the test says."""

    def __init__(self):
        super().__init__()
        self.gap_ns = 0

    def now_ms(self):
        self.idle_ns = self.gap_ns
        return 5_000


def read(runner, size=1, *, makes_work=True):
    now_ms = runner.begin_read(size)
    if makes_work:
        runner.schedule()
    runner.end_read(now_ms)


@pytest.mark.asyncio
async def test_readers_run_between_two_reads_when_a_lot_came_in():
    turns = []
    runner = TurnRunner(asyncio.get_running_loop(), Ticking(), turns.append)
    read(runner, TURN_BYTES, makes_work=False)
    read(runner)
    assert turns == []
    read(runner)
    assert len(turns) == 1
    read(runner)
    assert len(turns) == 1
    await asyncio.sleep(0)
    assert len(turns) == 2


@pytest.mark.asyncio
async def test_reads_that_follow_each_other_share_a_turn():
    turns = []
    runner = TurnRunner(asyncio.get_running_loop(), Ticking(), turns.append)
    for _ in range(3):
        read(runner)
    assert turns == []
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert len(turns) == 1


@pytest.mark.asyncio
async def test_a_read_alone_is_followed_by_its_turn_at_once():
    turns = []
    clock = Ticking()
    runner = TurnRunner(asyncio.get_running_loop(), clock, turns.append)
    clock.gap_ns = LONE_NS + 1
    now_ms = runner.begin_read(1)
    runner.schedule()
    assert turns == []  # not in the midst of it
    runner.end_read(now_ms)
    assert turns == [now_ms]
    read(runner, makes_work=False)
    await asyncio.sleep(0)
    assert len(turns) == 1


def test_clock_says_how_long_nobody_asked(monkeypatch):
    moments = iter([5_000_000, 5_700_000, 9_000_000])
    monkeypatch.setattr(time, "time_ns", lambda: next(moments))
    clock = Clock()
    gaps = []
    for _ in range(3):
        clock.now_ms()
        gaps.append(clock.idle_ns)
    assert gaps[1:] == [700_000, 3_300_000]
