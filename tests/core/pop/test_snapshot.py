"""A snapshot in parts, with consumers at work between them, makes the state that there is at its end."""

from __future__ import annotations

import random
import struct
from array import array

import pytest

from core.message import StoredBatch
from core.pop.changes import CHANGE_BYTES, ChangeLog
from core.pop.inflight import InFlight
from core.pop.snapshot import PART_MESSAGES, snapshot_parts

PART = 64


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr("core.pop.snapshot.PART_MESSAGES", PART)


class Consumers:
    """A state, what was noted of it since the snapshot began, and random work."""

    def __init__(self, seed, count):
        self.chance = random.Random(seed)
        self.log = ChangeLog()
        self.copy = ChangeLog()
        self.state = InFlight(1, self.log, 100)
        self.batch = StoredBatch(1_000)
        while count > 0:
            self.take(min(count, 1_000))
            count -= 1_000

    def take(self, count, until_ms=0):
        first = self.state.window.next_offset
        for i in range(count):
            self.batch.queue_offset[i] = first + i
        self.batch.count, self.batch.next_offset = count, first + count
        self.state.take_new(self.batch, until_ms)

    def hidden(self, share):
        window = self.state.window
        return array("q", [one for one in window.offsets() if window.code(one) & 1 and self.chance.random() < share])

    def work(self):
        """Do something, and note it behind what was copied so far."""
        self.log.clear()
        chosen = self.hidden(self.chance.choice([0.01, 0.3]))
        choice = self.chance.random()
        if choice < 0.4:
            self.state.ack_many(chosen, len(chosen))
        elif choice < 0.7:
            self.state.hide_many(chosen, len(chosen), self.chance.choice([0, 0, 5_000]))
        elif choice < 0.8:
            self.take(self.chance.randrange(1, 200), self.chance.choice([0, 7_000]))
        elif choice < 0.95:
            into = array("q", bytes(8 * 64))
            found = self.state.window.find_shown(into, 64)
            for i in range(found):
                self.batch.queue_offset[i] = into[i]
            self.batch.count = found
            self.state.take_again(into, found, self.batch, 1 << 60, 0)
        elif choice < 0.98:
            self.state.purge(self.state.window.next_offset + self.chance.randrange(3))
        else:
            self.state.seek(max(self.state.window.next_offset - 50, 0))
        for pos in range(0, self.log.used, CHANGE_BYTES):
            self.copy.put(*unpack(self.log, pos))


def unpack(log, pos):
    number, word, first, value = struct.unpack_from(">IIqq", log.buf, pos)
    return number, word >> 24, first, word & 0xFFFFFF, value


def replayed(log):
    state = InFlight(1, ChangeLog(), 0)
    for pos in range(0, log.used, CHANGE_BYTES):
        _, kind, first, count, value = unpack(log, pos)
        state.apply(kind, first, count, value)
    return state


def known(state):
    return {offset: state.attempt(offset) for offset in state.window.offsets() if state.attempt(offset)}


@pytest.mark.parametrize("seed", range(20))
def test_what_happens_between_parts_is_in_the_state_that_they_make(seed):
    consumers = Consumers(seed, 3_000)
    for _ in range(5):
        consumers.work()
    consumers.copy.clear()
    for _ in snapshot_parts(consumers.state, consumers.copy):
        consumers.work()
    made = replayed(consumers.copy)
    assert known(made) == known(consumers.state)
    assert made.deadlines() == consumers.state.deadlines()
    assert made.window.next_offset == consumers.state.window.next_offset
    assert made.window.floor() == consumers.state.window.floor()


def test_parts_are_small_and_nothing_is_left_out():
    consumers = Consumers(0, 1_000)
    sizes = list(snapshot_parts(consumers.state, consumers.copy))
    assert sum(sizes) == 1_000
    assert max(sizes) == PART
    assert known(replayed(consumers.copy)) == dict.fromkeys(range(100, 1_100), 1)
    assert PART_MESSAGES > PART


def test_old_messages_below_the_window_are_copied_in_parts_too():
    consumers = Consumers(0, 1_000)
    state = consumers.state
    state.ack_many(array("q", [one for one in range(100, 1_100) if one % 200]), 1_000 - 5)
    while not state.window.straggler_offsets():
        consumers.take(1_000)
        offsets = array("q", range(state.window.next_offset - 1_000, state.window.next_offset))
        state.ack_many(offsets, 1_000)
    consumers.take(3)
    for _ in snapshot_parts(state, consumers.copy):
        pass
    assert known(replayed(consumers.copy)) == known(state)
    assert len(known(state)) == 8


def test_acknowledging_the_oldest_between_parts_keeps_the_window_dense():
    consumers = Consumers(0, 1_000)
    state = consumers.state
    parts = snapshot_parts(state, consumers.copy)
    next(parts)
    consumers.log.clear()
    state.ack_many(array("q", range(100, 110)), 10)
    consumers.copy.put(*unpack(consumers.log, 0))
    list(parts)
    made = replayed(consumers.copy)
    assert made.window.straggler_offsets() == []
    assert made.window.base == 110
