"""Connections that have a lot to do share the turns of the loop with all others."""

from __future__ import annotations

from core.metrics import LoopMetrics
from gateway.net.shares import CHEAP_NS, DEAR_NS, READS_NS, SHARE_NS, WAITING_NS, Shares


class Loop:
    """A loop whose turn is a call, with a clock that work moves."""

    def __init__(self):
        self.now_ns = 10**15
        self.calls = []
        self.metrics = LoopMetrics()
        self.shares = Shares(self.calls.append, self.metrics, lambda: self.now_ns)
        self.worked = []

    def turn(self):
        due, self.calls[:] = self.calls[:], []
        for call in due:
            call()


class Worker:
    """Works in steps, each of which takes a while, until its share is over."""

    def __init__(self, loop, name, *steps_ns):
        self.loop = loop
        self.name = name
        self.steps_ns = list(steps_ns)

    def go_on(self):
        shares = self.loop.shares
        shares.begin(self)
        while self.steps_ns and not shares.is_over():
            self.loop.now_ns += self.steps_ns.pop(0)
            self.loop.worked.append(self.name)
        if shares.end(self) or self.steps_ns:
            shares.wait(self)


STEP = SHARE_NS // 4


def test_one_with_a_lot_to_do_works_for_a_share_and_then_waits_for_the_next_turn():
    loop = Loop()
    Worker(loop, "a", *[STEP] * 10).go_on()
    assert loop.worked == ["a"] * 4
    loop.turn()
    assert loop.worked == ["a"] * 8
    loop.turn()
    loop.turn()
    loop.turn()
    assert loop.worked == ["a"] * 10
    assert not loop.calls


def test_those_who_wait_take_turns():
    loop = Loop()
    for name in "abc":
        Worker(loop, name, *[SHARE_NS] * 3).go_on()
    assert loop.worked == ["a", "b", "c"]
    while loop.calls:
        loop.turn()
    assert loop.worked == ["a", "b", "c"] * 3


def test_those_who_wait_have_a_part_of_each_turn_and_what_is_read_another():
    loop = Loop()
    for name in range(10):
        loop.shares.wait(Worker(loop, name, SHARE_NS))
    for turn in range(1, 4):
        loop.turn()
        assert len(loop.worked) == turn * (WAITING_NS // SHARE_NS)
        assert loop.shares.may_read()


def test_no_more_is_read_in_a_turn_than_a_few_shares():
    loop = Loop()
    for read in range(READS_NS // SHARE_NS):
        assert loop.shares.may_read()
        Worker(loop, read, SHARE_NS).go_on()
    assert not loop.shares.may_read()
    loop.turn()
    assert loop.shares.may_read()


def test_shares_of_one_turn_add_up_where_one_is_read_again_and_again():
    loop = Loop()
    busy = Worker(loop, "a")
    for _ in range(3):
        busy.steps_ns = [STEP]
        busy.go_on()
    loop.turn()
    busy.steps_ns = [STEP]
    loop.turn()
    assert loop.worked == ["a"] * 3  # it did not wait, so nobody had it go on
    for _ in range(4):
        busy.steps_ns = [STEP]
        busy.go_on()
    busy.steps_ns = [STEP]
    loop.turn()
    assert loop.worked == ["a"] * 8


def test_a_few_cheap_reads_are_not_counted_and_call_nobody():
    loop = Loop()
    for _ in range(CHEAP_NS // DEAR_NS):
        Worker(loop, "a", DEAR_NS - 1).go_on()
    assert loop.shares.may_read()
    assert not loop.calls


def test_cheap_reads_by_the_hundred_fill_a_turn_and_the_next_one_has_room_again():
    loop = Loop()
    reads = 0
    while loop.shares.may_read():
        Worker(loop, "a", DEAR_NS // 2).go_on()
        reads += 1
    assert READS_NS <= reads * (DEAR_NS // 2) <= READS_NS + CHEAP_NS
    assert loop.metrics.share_ns_max == 0
    loop.turn()
    assert loop.shares.may_read()
    assert not loop.calls


def test_what_is_done_aside_counts_as_what_is_read():
    loop = Loop()
    while loop.shares.may_read():
        began_ns = loop.shares.begin_aside()
        loop.now_ns += DEAR_NS
        loop.shares.end_aside(began_ns)
    assert loop.now_ns == 10**15 + READS_NS
    loop.turn()
    assert loop.shares.may_read()


def test_the_longest_share_is_known():
    loop = Loop()
    Worker(loop, "a", STEP, 7 * SHARE_NS, STEP).go_on()
    assert loop.metrics.share_ns_max == STEP + 7 * SHARE_NS
