from __future__ import annotations

import asyncio
import logging
import time

import pytest

from core.broker import Broker
from core.lmq.waiters import Reader
from core.metrics import Metrics
from core.store.embedded import EmbeddedEngine
from gateway.runtime import loop
from gateway.runtime.loop import (
    AHEAD_MAX_MS,
    DUE_A_STEP,
    TICK_MS,
    TURN_BYTES,
    Alarm,
    Clock,
    CoarseTimer,
    TurnRunner,
)
from tests.support.connections import StillClock
from tests.support.store import open_store


class ToldClock(Clock):
    """A clock on a machine whose own says what the test says."""

    def __init__(self, *moments):
        super().__init__()
        self.moments = list(moments)

    def read_ns(self):
        return self.moments.pop(0)


def test_clock_says_what_the_machine_does():
    before = time.time_ns() // 1_000_000
    now_ms = Clock().now_ms()
    assert before <= now_ms <= time.time_ns() // 1_000_000


def test_clock_never_goes_back():
    clock = ToldClock(5_000_000, 3_000_000, 7_000_000)
    assert [clock.now_ms() for _ in range(3)] == [5, 5, 7]


class SetClock(Clock):
    """A clock on a machine whose own is set; both in milliseconds."""

    def __init__(self, set_ms):
        super().__init__()
        self.set_ms = set_ms
        self.steady_ms = 5

    def read_ns(self):
        return self.set_ms * 1_000_000

    def read_steady_ns(self):
        return self.steady_ms * 1_000_000

    def pass_ms(self, count):
        self.set_ms += count
        self.steady_ms += count
        return self.now_ms()


def test_clock_goes_on_where_the_machines_was_set_back_and_is_as_that_when_it_has_caught_up(caplog):
    clock = SetClock(1_000_000)
    assert clock.pass_ms(0) == 1_000_000
    clock.set_ms -= 80_000
    assert [clock.pass_ms(count) for count in (0, 8_000, 80_000, 7)] == [1_000_000, 1_007_000, 1_077_000, 1_077_007]
    clock.set_ms -= 1_000  # once more, while it is behind
    assert clock.pass_ms(93) == 1_077_088
    assert clock.pass_ms(640_000) == clock.set_ms
    assert clock.pass_ms(1_000) == clock.set_ms
    (record,) = caplog.records
    assert record.getMessage().endswith(" by_ms=80000")


def test_clock_goes_on_from_the_newest_message_where_the_machines_was_set_back_between_two_runs(caplog):
    clock = SetClock(1_000_000)
    clock.go_on_from(1_080_000)
    assert [clock.pass_ms(count) for count in (0, 8_000)] == [1_080_000, 1_087_000]
    assert "by_ms=80000" in caplog.text
    clock.go_on_from(1_000)
    assert clock.pass_ms(8) == 1_087_007


def test_moment_of_the_machines_clock_is_found_while_that_is_behind():
    clock = SetClock(1_000_000)
    clock.pass_ms(0)
    assert clock.find_moment(1_234_000) == 1_234_000
    clock.set_ms -= 80_000
    assert clock.pass_ms(0) == 1_000_000
    assert clock.machine_ms() == 920_000
    moment = clock.find_moment(936_000)
    assert clock.pass_ms(15_990) < moment
    assert clock.pass_ms(10) == moment
    assert clock.find_moment(935_000) < moment


def test_clock_does_not_follow_messages_of_another_time(caplog):
    clock = SetClock(1_000_000)
    clock.go_on_from(1_000_001 + AHEAD_MAX_MS)
    assert clock.pass_ms(5) == 1_000_005
    assert f"from the future: times to live wait for their clock by_ms={AHEAD_MAX_MS + 1}" in caplog.text


def test_clock_that_is_kept_right_by_small_steps_says_nothing(caplog):
    clock = SetClock(1_000_000)
    clock.pass_ms(0)
    clock.set_ms -= 20
    assert [clock.pass_ms(8), clock.pass_ms(16)] == [1_000_000, 1_000_014]
    assert clock.pass_ms(100) == 1_000_104 == clock.set_ms
    assert not caplog.records


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


def come_due(monkeypatch, count):
    """Return a clock, turns, a timer that has met some of very many deadlines of one moment, and all of those."""
    monkeypatch.setattr(loop, "TIMER_TURN_NS", 0)
    clock, turns = SetClock(1_000_000), Turns()
    timer = CoarseTimer(clock)
    every = [Timed(1_000_100) for _ in range(count)]
    for timed in every:
        timer.watch(timed)
    timer.start(turns)
    clock.pass_ms(2 * TICK_MS)
    turns.tick()
    return clock, turns, timer, every


def test_very_many_deadlines_of_one_moment_are_met_in_several_turns(monkeypatch):
    clock, turns, timer, every = come_due(monkeypatch, 10 * DUE_A_STEP)
    assert [bool(timed.met_at) for timed in every] == [number < DUE_A_STEP for number in range(len(every))]
    every[DUE_A_STEP + 1].deadline_ms = None  # it is wanted no more
    every[DUE_A_STEP + 2].deadline_ms += 10 * TICK_MS
    timer.watch(every[DUE_A_STEP + 3])
    for count in range(2, 11):
        turns.tick()  # which brings nothing forward
        assert len(turns.soon) == 1
        turns.soon.pop()()
        assert sum(bool(timed.met_at) for timed in every) == count * DUE_A_STEP - 2
    clock.pass_ms(20 * TICK_MS)
    turns.tick()
    assert not turns.soon
    assert [len(timed.met_at) for timed in every].count(1) == len(every) - 1


def test_nothing_is_met_after_the_stop(monkeypatch):
    _, turns, timer, every = come_due(monkeypatch, 2 * DUE_A_STEP)
    timer.stop()
    turns.soon.pop()()
    assert not turns.soon
    assert sum(bool(timed.met_at) for timed in every) == DUE_A_STEP


class Turns:
    """A loop whose turns and ticks are taken by hand."""

    def __init__(self):
        self.soon = []

    def call_soon(self, callback):
        self.soon.append(callback)

    def call_later(self, _delay_s, callback):
        self.tick = callback
        return self

    def cancel(self):
        del self.tick


def test_work_that_fails_stops_no_other(clock, caplog):
    caplog.set_level(logging.CRITICAL, "gateway.runtime.loop")
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


class Noting(Reader):
    """Notes the moments of the turns that it asked for."""

    def __init__(self):
        self.turns = []

    def on_ready(self, now_ms):
        self.turns.append(now_ms)
        return False


class Work:
    """A broker, the runner of its turns, and a reader that asks for them."""

    def __init__(self, store, clock):
        self.broker = Broker(EmbeddedEngine(store, is_sync=False), parent_topic=b"LMQ_PARENT", metrics=Metrics())
        self.runner = TurnRunner(asyncio.get_running_loop(), clock, self.broker)
        self.broker.schedule = self.runner.schedule
        self.reader = Noting()
        self.turns = self.reader.turns

    def ask(self):
        self.broker.request_run(self.reader)

    def read(self, size=1, *, asks=True):
        """Handle a read, during which the reader asks for a turn."""
        self.runner.begin_read(size)
        if asks:
            self.ask()


@pytest.fixture
def store(tmp_path):
    store = open_store(tmp_path)
    yield store
    store.close()


@pytest.mark.asyncio
async def test_alarm_rings_once_at_the_earliest_moment_that_it_was_set_to_and_not_when_stopped():
    loop = asyncio.get_running_loop()
    clock = Clock()
    rung = asyncio.Event()
    rings = []
    alarm = Alarm(loop, clock, lambda: (rings.append(clock.now_ms()), rung.set()))
    start_ms = clock.now_ms()
    for after_ms in (60_000, 20, 30_000):
        alarm.set(start_ms + after_ms)
    await asyncio.wait_for(rung.wait(), 20)
    alarm.set(start_ms)
    alarm.stop()
    await asyncio.sleep(0)
    assert len(rings) == 1
    assert rings[0] >= start_ms + 19  # a loop may be early by less than a millisecond


@pytest.mark.asyncio
async def test_turn_runs_once_for_each_time_that_it_was_asked_for(store):
    work = Work(store, Clock())
    work.ask()
    work.ask()
    assert work.turns == []
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert len(work.turns) == 1
    work.ask()
    await asyncio.sleep(0)
    assert len(work.turns) == 2


@pytest.mark.asyncio
async def test_readers_run_between_two_reads_when_a_lot_came_in(store):
    work = Work(store, StillClock())
    work.read(TURN_BYTES, asks=False)
    work.read()
    assert work.turns == []
    work.read()
    assert len(work.turns) == 1
    work.read()
    assert len(work.turns) == 1
    await asyncio.sleep(0)
    assert len(work.turns) == 2


@pytest.mark.asyncio
async def test_reads_that_follow_each_other_share_a_turn(store):
    work = Work(store, StillClock())
    for _ in range(3):
        work.read()
    assert work.turns == []
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert len(work.turns) == 1
