"""The state of one pop queue, against a model of one entry a message."""

from __future__ import annotations

import random
import struct
from array import array

import pytest

from core.message import StoredBatch
from core.pop.changes import CHANGE_BYTES, ChangeLog
from core.pop.inflight import InFlight
from core.pop.snapshot import snapshot_parts


def read_new(batch, first, count, gaps=()):
    """Fill a batch as the store does."""
    offsets = [offset for offset in range(first, first + count) if offset not in gaps]
    for i, offset in enumerate(offsets):
        batch.queue_offset[i] = offset
        batch.record_start[i], batch.record_end[i] = 0, 10
    batch.count = len(offsets)
    batch.next_offset = first + count
    return batch


def take_ready(state, batch, count_max, lost=()):
    """Take again what is shown, lowest first."""
    into = array("q", bytes(8 * 4096))
    found = state.window.find_shown(into, count_max)
    offsets = [offset for offset in into[:found] if offset not in lost]
    for i, offset in enumerate(offsets):
        batch.queue_offset[i] = offset
        batch.record_start[i], batch.record_end[i] = 0, 10
    batch.count = len(offsets)
    assert state.take_again(into, found, batch, 1 << 60, 0) == len(offsets)
    return list(batch.queue_offset[: batch.count])


def replayed(logs, new_log=None):
    """Return the state that the records of a log make."""
    state = InFlight(1, new_log or ChangeLog(), 0)
    for log in logs:
        for pos in range(0, log.used, CHANGE_BYTES):
            _, word, first, value = struct.unpack_from(">IIqq", log.buf, pos)
            state.apply(word >> 24, first, word & 0xFFFFFF, value)
    return state


def snapshot(state, log):
    assert sum(snapshot_parts(state, log)) >= state.window.next_offset - state.window.base


@pytest.fixture
def log():
    return ChangeLog()


@pytest.fixture
def state(log):
    return InFlight(1, log, 0)


def offsets(*values):
    return array("q", values)


def test_floor_follows_the_lowest_unacknowledged_message(state):
    state.take_new(read_new(StoredBatch(10), 0, 10), 0)
    assert state.ack_many(offsets(1, 2, 5), 3) == -1
    assert state.window.floor() == 0
    state.ack_many(offsets(0), 1)
    assert state.window.floor() == 3
    assert state.window.hidden_count == 6


def test_acknowledging_twice_names_the_offset_and_does_the_others(state):
    state.take_new(read_new(StoredBatch(10), 0, 4), 0)
    assert state.ack_many(offsets(1, 1, 9, 0), 4) == 1
    assert state.ack_many(offsets(-3), 1) == -3
    assert state.window.floor() == 2
    assert state.hide_many(offsets(0, 2), 2, 0) == 0
    assert state.ack_many(offsets(2), 1) == 2


def test_messages_shown_again_come_lowest_first_with_their_attempts(state):
    batch = read_new(StoredBatch(10), 0, 6)
    state.take_new(batch, 0)
    state.hide_many(offsets(4, 1, 3), 3, 0)
    assert take_ready(state, batch, 2) == [1, 3]
    assert list(batch.attempt[:2]) == [2, 2]
    assert take_ready(state, batch, 10) == [4]
    state.hide_many(offsets(1), 1, 0)
    assert take_ready(state, batch, 10) == [1]
    assert batch.attempt[0] == 3


def test_attempts_are_counted_past_what_a_byte_holds(state, log):
    batch = read_new(StoredBatch(10), 0, 1)
    state.take_new(batch, 0)
    for attempt in range(2, 400):
        state.hide_many(offsets(0), 1, 0)
        take_ready(state, batch, 1)
        assert batch.attempt[0] == attempt
    assert replayed([log]).attempt(0) == 399
    log.clear()
    snapshot(state, log)
    assert replayed([log]).attempt(0) == 399
    state.ack_many(offsets(0), 1)
    assert state.attempt(0) == 0


def test_lost_messages_are_done_and_counted(state, log):
    batch = read_new(StoredBatch(10), 0, 6, gaps={2})
    state.take_new(batch, 0)
    assert state.skipped_count == 1
    state.hide_many(offsets(0, 1, 3), 3, 0)
    assert take_ready(state, batch, 10, lost={1}) == [0, 3]
    assert state.skipped_count == 2
    assert state.ack_many(offsets(1), 1) == 1
    assert replayed([log]).window.floor() == 0
    assert replayed([log]).attempt(1) == 0


@pytest.mark.slow
def test_one_old_message_does_not_keep_the_ring_large(state, log):
    batch = StoredBatch(1000)
    for first in range(0, 500_000, 1000):
        state.take_new(read_new(batch, first, 1000), 0)
        start = 1 if first == 0 else 0
        state.ack_many(batch.queue_offset[start:], 1000 - start)
    assert state.window.base > 400_000
    assert state.window.floor() == 0
    assert state.window.hidden_count == 1
    state.hide_many(offsets(0), 1, 0)
    assert take_ready(state, batch, 10) == [0]
    again = replayed([log])
    assert (again.window.floor(), again.window.next_offset, again.window.shown_count) == (0, 500_000, 1)
    state.ack_many(offsets(0), 1)
    assert state.window.floor() == state.window.base == 500_000


def test_purge_finishes_what_nobody_has(state, log):
    state.take_new(read_new(StoredBatch(10), 0, 6), 0)
    state.hide_many(offsets(0, 1, 4), 3, 0)
    state.purge(1_000_000)
    assert (state.window.shown_count, state.window.hidden_count, state.window.next_offset) == (0, 3, 1_000_000)
    assert state.window.floor() == 2
    again = replayed([log])
    assert (again.window.shown_count, again.window.floor(), again.window.next_offset) == (3, 2, 1_000_000)


def test_seek_forgets_who_has_what(state, log):
    state.take_new(read_new(StoredBatch(10), 0, 6), 77)
    state.seek(3)
    assert (state.window.hidden_count, state.window.floor(), state.window.next_offset, state.deadline_count()) == (
        0,
        3,
        3,
        0,
    )
    assert replayed([log]).window.next_offset == 3


def test_trim_forgets_what_the_log_lost(state, log):
    state.take_new(read_new(StoredBatch(10), 0, 8), 0)
    state.ack_many(offsets(6), 1)
    state.trim(5)
    assert (state.window.hidden_count, state.window.next_offset) == (5, 5)
    batch = read_new(StoredBatch(10), 5, 3)
    state.take_new(batch, 0)
    assert list(batch.attempt[:3]) == [1, 1, 1]
    state.trim(0)
    assert (state.window.hidden_count, state.window.next_offset, state.window.floor()) == (0, 0, 0)
    assert replayed([log]).window.is_empty()


def test_hidden_messages_are_shown_at_their_own_moment_only(state):
    state.take_new(read_new(StoredBatch(10), 0, 4), 100)
    state.hide_many(offsets(2), 1, 200)
    assert state.deadlines() == [(100, 0, 2), (200, 2, 3), (100, 3, 4)]
    assert state.show_due(0, 4, 100) == 3
    assert state.ack_many(offsets(2), 1) == -1
    assert state.show_due(2, 3, 200) == 0
    assert state.window.shown_count == 3


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_state_follows_a_model_through_long_random_runs(seed):
    chance = random.Random(seed)
    logs = [ChangeLog()]
    state, batch, model, next_offset = InFlight(1, logs[0], 0), StoredBatch(2048), {}, 0  # model: [hidden, attempt]
    for _ in range(150):
        choice = chance.random()
        hidden = [offset for offset, entry in model.items() if entry[0]]
        if choice < 0.4:
            count, gap = chance.randrange(1, 2048), chance.choice([0, 0, 0, 3, 10_000])
            state.take_new(read_new(batch, next_offset + gap, count), 0)
            model |= {offset: [True, 1] for offset in range(next_offset + gap, next_offset + gap + count)}
            next_offset += gap + count
        elif choice < 0.7:
            chosen = chance.sample(hidden, int(len(hidden) * chance.choice([0.1, 0.9, 0.999])))
            assert state.ack_many(array("q", chosen), len(chosen)) == -1
            for offset in chosen:
                del model[offset]
        elif choice < 0.8:
            chosen = chance.sample(hidden, len(hidden) // 10)
            assert state.hide_many(array("q", chosen), len(chosen), 0) == -1
            for offset in chosen:
                model[offset][0] = False
        elif choice < 0.95:
            wanted = chance.randrange(1, 2048)
            expected = sorted(offset for offset, entry in model.items() if not entry[0])[:wanted]
            assert take_ready(state, batch, wanted) == expected
            for i, offset in enumerate(expected):
                model[offset] = [True, model[offset][1] + 1]
                assert batch.attempt[i] == model[offset][1]
        elif choice < 0.98:
            log = ChangeLog()
            state = replayed(logs, log)
            logs.append(log)
            if chance.random() < 0.5:
                snapshot(state, log)
                logs = [log]
            for entry in model.values():
                entry[0] = False
        assert state.window.hidden_count == sum(entry[0] for entry in model.values())
        assert state.window.shown_count == len(model) - state.window.hidden_count
        assert state.window.next_offset == next_offset
        assert state.window.floor() == min(model, default=next_offset)


def test_message_is_finished_in_whatever_state_and_what_was_passed_over_was_given_once():
    log, batch = ChangeLog(), StoredBatch(8)
    state = InFlight(1, log, 0)
    state.take_new(read_new(batch, 0, 2), 0)
    assert state.hide_many(array("q", [1]), 1, 0) == -1
    assert [state.finish(offset) for offset in (0, 1, 4, 4)] == [True, True, True, False]
    for one in (state, replayed([log], ChangeLog())):
        assert [one.attempt(offset) for offset in range(6)] == [0, 0, 1, 1, 0, 0]
        assert (one.window.next_offset, one.window.shown_count, one.window.floor()) == (5, 2, 2)
