"""Work that grows is done in steps, between which others have their turns."""

from __future__ import annotations

import pytest

from core.lmq.waiters import Reader
from gateway.runtime.chores import AT_ONCE, ROUND, TURN_NS, Chores
from tests.support.broker import make_broker
from tests.support.store import NOW_MS, open_store


class Yard:
    """Chores of a broker, whose clock moves by a step's time with each step."""

    def __init__(self, store):
        self.broker, _ = make_broker(store)
        self.now_ns = 10**15
        self.step_ns = TURN_NS // (4 * ROUND)
        self.done = []
        self.chores = Chores(self.broker, lambda: self.now_ns)

    def work(self, name, steps):
        for _ in range(steps):
            self.now_ns += self.step_ns
            self.done.append(name)
            yield
        self.done.append(f"{name}!")

    def turn(self):
        """Run a turn; return what was done in it."""
        del self.done[:]
        self.broker.run_turn(NOW_MS)
        return self.done


@pytest.fixture
def yard(tmp_path):
    store = open_store(tmp_path)
    yield Yard(store)
    store.close()


def test_small_work_is_done_at_once(yard):
    yard.chores.start(yard.work("a", 3))
    yard.chores.start(yard.work("b", 2))
    assert yard.done == ["a"] * 3 + ["a!"] + ["b"] * 2 + ["b!"]


def test_dear_steps_are_a_turn_each(yard):
    yard.step_ns = TURN_NS
    yard.chores.start(yard.work("a", 2), is_long=True)
    yard.chores.start(yard.work("b", 2), is_long=True)
    assert yard.done == []
    turns = [list(yard.turn()) for _ in range(5)]
    assert turns == [["a"], ["b"], ["a"], ["b"], ["a!", "b!"]]
    assert not yard.broker.has_work


def test_work_that_is_known_to_be_long_begins_in_the_next_turn(yard):
    yard.chores.start(yard.work("a", ROUND), is_long=True)
    assert yard.done == []
    assert yard.turn() == ["a"] * ROUND + ["a!"]


def test_large_work_goes_on_in_the_next_turns_and_others_have_theirs(yard):
    yard.chores.start(yard.work("a", AT_ONCE + 6 * ROUND))
    assert yard.done == ["a"] * AT_ONCE
    assert yard.turn() == ["a"] * 4 * ROUND
    assert yard.broker.has_work
    assert yard.turn() == ["a"] * 2 * ROUND + ["a!"]
    assert not yard.broker.has_work


def test_pieces_of_work_take_turns(yard):
    for name in "abc":
        yard.chores.start(yard.work(name, AT_ONCE + ROUND))
    assert yard.turn() == ["a"] * ROUND + ["b"] * ROUND + ["c"] * ROUND + ["a!"] + ["b"] * ROUND


def test_no_more_is_done_at_once_in_a_turn_however_much_small_work_comes(yard):
    for _ in range(AT_ONCE):
        yard.chores.start(yard.work("a", 2))
    assert yard.done.count("a") <= AT_ONCE
    while yard.broker.has_work:
        yard.turn()
    yard.chores.start(yard.work("b", 1))
    assert yard.done[-1] == "b!"


def test_work_that_fails_stops_no_other(yard):
    faults = []
    yard.broker.on_reader_error = lambda reader, error: faults.append((type(reader), str(error)))
    yard.chores.start(yard.work("a", AT_ONCE))
    yard.chores.start(failing())
    yard.chores.start(yard.work("b", 1))
    while yard.broker.has_work:
        yard.turn()
    assert faults == [(Chores, "broken")]
    assert yard.done[-1] == "b!"


def failing():
    yield
    raise RuntimeError("broken")


def test_all_is_done_at_the_end(yard):
    yard.chores.start(yard.work("a", 10 * AT_ONCE))
    yard.chores.finish()
    assert yard.done[-1] == "a!"
    assert isinstance(yard.chores, Reader)


def test_at_the_end_work_that_waits_for_other_work_lets_it_be_done(yard):
    yard.chores.start(waiting(yard, "a!"), is_long=True)
    yard.chores.start(yard.work("a", 2 * AT_ONCE), is_long=True)
    yard.chores.finish()
    assert yard.done[-2:] == ["a!", "it waited for a!"]


def waiting(yard, name):
    while name not in yard.done:
        yield
    yard.done.append(f"it waited for {name}")
