"""Levels are one queue to its consumers: an offset says which it is of."""

from __future__ import annotations

from array import array

import pytest

from core.errors import ReceiptError
from core.message import AWAY, StoredBatch
from core.queues.levelled_queue import LEVEL_SHIFT, LevelledQueue


class Level:
    """A level whose messages are numbers."""

    def __init__(self, number):
        self.queue_ref = 100 + number
        self.ready = []
        self.done = []
        self.is_away = self.is_refusing = False
        self.ready_bytes = number
        self.unacked_count = self.again_count = 1

    @property
    def ready_count(self):
        return len(self.ready)

    def _fill(self, into, offsets):
        into.clear()
        if self.is_away:
            return AWAY
        for offset in offsets:
            into.queue_offset[into.count] = offset
            into.count += 1
        return into.count

    def take(self, into, count_max, bytes_max, until_ms, now_ms):
        count = self._fill(into, self.ready[:count_max])
        del self.ready[: max(count, 0)]
        return count

    def peek(self, into, count_max):
        return self._fill(into, self.ready[:count_max])

    def read_offsets(self, offsets, count, into):
        return self._fill(into, offsets[:1])

    def ack_many(self, offsets, count):
        if self.is_refusing:
            raise ReceiptError("q", -1)
        self.done += list(offsets[:count])

    def nack_many(self, offsets, count, visible_at_ms=0):
        self.ready = sorted([*offsets[:count], *self.ready])

    def purge(self, now_ms=0):
        count, self.ready = len(self.ready), []
        return count

    def attempt(self, offset):
        return offset + 1

    def count_on(self):
        return not self.is_away


@pytest.fixture
def made():
    levels, told = {}, []

    def open_level(number):
        levels[number] = Level(number)
        return levels[number]

    queue = LevelledQueue(
        9, open_level, lambda level: b"%d" % level, used=[2], max_offset=lambda ref: ref, on_opened=told.append
    )
    return queue, levels, told


def at(level, offset):
    return level << LEVEL_SHIFT | offset


def test_a_level_is_opened_when_it_is_first_used(made):
    queue, levels, told = made
    assert (sorted(levels), queue.queue_ref, queue.refs) == ([0, 2], 100, [102, 100])
    assert [queue.use_level(level) for level in (2, 7, 7, 200)] == [b"2", b"7", b"7", b"9"]
    assert (told, queue.refs) == ([107, 109], [109, 107, 102, 100])


def test_the_highest_is_taken_first_and_waited_for(made):
    queue, levels, _ = made
    levels[0].ready, levels[2].ready = [4, 5], [1]
    into = StoredBatch(8)
    assert (queue.peek(into, 5), list(into.queue_offset[:1])) == (1, [at(2, 1)])
    levels[2].is_away = True
    assert queue.take(into, 5, 1, 0, 0) == queue.peek(into, 5) == AWAY
    assert not queue.count_on()
    levels[2].is_away = False
    assert queue.ready_count == 3
    assert (queue.take(into, 5, 1, 0, 0), list(into.queue_offset[:1])) == (1, [at(2, 1)])
    assert (queue.take(into, 5, 1, 0, 0), list(into.queue_offset[:2])) == (2, [4, 5])
    assert queue.take(into, 5, 1, 0, 0) == queue.peek(into, 5) == 0


def test_what_is_settled_is_settled_in_its_level(made):
    queue, levels, _ = made
    queue.ack_many(array("q", [at(2, 3), 4, at(2, 5), 6]), 3)
    assert (levels[0].done, levels[2].done) == ([4], [3, 5])
    queue.nack_many(array("q", [at(2, 3), 4]), 2)
    assert (levels[0].ready, levels[2].ready) == ([4], [3])
    assert queue.attempt(at(2, 8)) == 9
    assert queue.attempt(at(5, 8)) == 0
    assert queue.purge() == 2


def test_all_others_are_settled_where_one_is_not_to_be(made):
    queue, levels, _ = made
    levels[0].is_refusing = True
    with pytest.raises(ReceiptError):
        queue.ack_many(array("q", [1, at(2, 3)]), 2)
    assert levels[2].done == [3]


def test_a_piece_of_one_level_is_read(made):
    queue, _, _ = made
    into = StoredBatch(8)
    offsets = array("q", [at(2, 3), at(2, 4), at(5, 1)])
    assert (queue.read_offsets(offsets, 3, into), list(into.queue_offset[:1])) == (1, [at(2, 3)])
    assert queue.read_offsets(offsets[2:], 1, into) == 1
    assert queue.read_offsets(offsets, 0, into) == into.count == 0


def test_what_came_in_just_now_is_told_by_level(made):
    queue, _, _ = made
    queue.note_seen()
    assert [queue.fresh_from(offset) for offset in (at(2, 9), 9, at(9, 9))] == [at(2, 102), 100, at(9, 0)]


def test_figures_are_of_all_levels(made):
    queue, _, _ = made
    assert (queue.ready_bytes, queue.unacked_count, queue.ready_count, queue.count_on()) == (2, 2, 0, True)
    assert queue.again_count == 2
