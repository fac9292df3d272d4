"""The bytes of what is ready are those of its bodies, whatever becomes of messages."""

from __future__ import annotations

from array import array
from random import Random

import pytest

from core.message import AWAY, StoredBatch
from core.pop.pop_service import PopService
from tests.support.stores import MemoryJournal, Rows

QUEUE, GROUP = b"%LMQ%q", b"g"


class Sized:
    """A store of one queue whose messages are sizes."""

    def __init__(self):
        self.sizes = []
        self.is_away = False
        self.gone_until = 0

    def intern_queue(self, key):
        return 0

    def min_offset(self, queue_ref):
        return 0

    def max_offset(self, queue_ref):
        return len(self.sizes)

    def _put(self, into, offset):
        i = into.count
        into.queue_offset[i] = offset
        into.body_start[i], into.body_end[i] = 0, self.sizes[offset]
        into.record_start[i], into.record_end[i] = 0, self.sizes[offset] + 1
        into.count = i + 1

    def read(self, queue_ref, offset, into, count_max, bytes_max):
        into.clear()
        into.next_offset = offset
        if self.is_away and offset < len(self.sizes):
            return AWAY
        first = max(offset, self.gone_until)
        for each in range(first, min(first + count_max, len(self.sizes))):
            self._put(into, each)
            into.next_offset = each + 1
        return into.count

    def read_offsets(self, queue_ref, offsets, count, into):
        into.clear()
        if self.is_away and count:
            return AWAY
        for offset in offsets[: min(count, 2)]:
            self._put(into, offset)
        return min(count, 2)


@pytest.fixture(autouse=True)
def small_marks(monkeypatch):
    monkeypatch.setattr("core.pop.byte_sums.MARK_MESSAGES", 3)
    monkeypatch.setattr("core.pop.counted_queue.PIECE_MESSAGES", 2)


def open_counted(store, journal, rows, start=None):
    return PopService(store, journal).open_counted(QUEUE, GROUP, start, StoredBatch(8), rows)


@pytest.mark.parametrize("seed", range(60))
def test_bytes_follow_whatever_happens(seed):
    chance, store, journal, rows = Random(seed), Sized(), MemoryJournal(), Rows()
    queue = open_counted(store, journal, rows, 0)
    ready, hidden, into = [], [], StoredBatch(8)
    for _ in range(80):
        what = chance.choice(
            ["come", "take", "give back", "finish", "reopen", "purge"] if chance.random() < 0.9 else ["come"]
        )
        if what == "come":
            more = range(len(store.sizes), len(store.sizes) + chance.randrange(6))
            store.sizes += [chance.randrange(9) for _ in more]
            ready += more
        elif what == "take":
            count = max(queue.take(into, chance.randrange(1, 5), 1 << 40, 0, 0), 0)
            taken = list(into.queue_offset[:count])
            hidden += taken
            ready = [one for one in ready if one not in taken]
        elif what == "purge" and chance.random() < 0.2:
            queue.purge()
            ready = []
        elif what in ("give back", "finish") and hidden:
            some = chance.sample(hidden, chance.randrange(1, len(hidden) + 1))
            hidden = [one for one in hidden if one not in some]
            if what == "finish":
                queue.ack_many(array("q", some), len(some))
            else:
                queue.nack_many(array("q", some), len(some))
                ready += some
        elif what == "reopen":
            store.gone_until = min(ready + hidden, default=len(store.sizes))
            queue = open_counted(store, journal, rows)
            ready, hidden = ready + hidden, []
        assert queue.count_on()
        assert queue.ready_bytes == sum(store.sizes[one] for one in ready)


def test_what_is_on_its_way_is_counted_when_it_is_here():
    store = Sized()
    queue = open_counted(store, MemoryJournal(), Rows(), 0)
    store.sizes += [3, 4]
    queue.count_on()
    into = StoredBatch(8)
    queue.take(into, 1, 1, 0, 0)
    store.is_away = True
    store.sizes.append(5)
    queue.nack_many(array("q", (0,)), 1)
    assert not queue.count_on()
    assert queue.ready_bytes == 4
    store.is_away = False
    assert queue.count_on()
    assert queue.ready_bytes == 12
    assert (queue.take(into, 1, 1, 0, 0), queue.again_count) == (1, 1)


def test_many_messages_are_counted_in_steps(monkeypatch):
    monkeypatch.setattr("core.pop.counted_queue.STEP_MESSAGES", 4)
    store = Sized()
    store.sizes = [1] * 10
    queue = open_counted(store, MemoryJournal(), Rows(), 0)
    assert [queue.count_on() for _ in range(4)] == [False, False, True, True]
    assert queue.ready_bytes == 10


def test_what_is_taken_and_given_back_before_anything_was_counted_counts():
    store, journal, rows = Sized(), MemoryJournal(), Rows()
    open_counted(store, journal, rows, 0)
    store.sizes += [3, 4]
    queue = open_counted(store, journal, rows)
    queue.take(StoredBatch(8), 1, 1, 0, 0)
    queue.nack_many(array("q", (0,)), 1)
    assert (queue.count_on(), queue.ready_bytes) == (True, 7)
