"""The head index against lists of positions."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from core.store.head_index import HOLE, HeadIndex

QUEUES = 5
refs = st.integers(0, QUEUES - 1)


def read_all(index: HeadIndex, ref: int, step: int = 7) -> list[int]:
    found: list[int] = []
    out = array("i", bytes(4 * step))
    offset = index.first_offset(ref)
    while count := index.lookup(ref, offset, step, out):
        found.extend(out[:count])
        offset += count
    return found


def test_entries_get_dense_offsets_from_zero():
    index = HeadIndex(2)
    assert [index.add(1, 10 * n) for n in range(5)] == [0, 1, 2, 3, 4]
    assert index.next_offset(0) == 0
    assert index.next_offset(1) == 5
    assert index.entry_count == 5


def test_a_set_adds_one_entry_to_each_of_its_first_queues():
    index = HeadIndex(4)
    index.add_set(array("i", [3, 0, 1]), 2, 77)
    assert [index.next_offset(ref) for ref in range(4)] == [1, 0, 0, 1]
    assert read_all(index, 3) == [77]


def test_large_sets_of_many_queues_keep_every_entry():
    index = HeadIndex(20_000)
    everyone = array("i", range(20_000))
    for position in range(7):
        index.add_set(everyone, 20_000, position)
    assert [read_all(index, ref) for ref in (0, 31, 32, 9_999, 19_999)] == [list(range(7))] * 5
    with pytest.raises(IndexError):
        index.add_set(array("i", [0, 20_000, 1]), 3, 9)
    assert index.entry_count == 140_001


def test_pages_made_ready_ahead_leave_entries_as_they_are():
    index, plain = HeadIndex(20), HeadIndex(20)
    for position in range(3_000):  # more queues come to the end of a page at once than are noted
        for ref in range(20):
            index.add(ref, position)
            plain.add(ref, position)
        if position % 700 == 0:  # some pages are long in use by then
            index.touch_ahead()
    assert [read_all(index, ref, 500) for ref in range(20)] == [list(range(3_000))] * 20
    frozen = index.detach()
    index.touch_ahead()  # what was noted lies in the memory of before
    assert [read_all(frozen, ref, 500) for ref in range(20)] == [read_all(plain, ref, 500) for ref in range(20)]
    assert [index.add(ref, 1) for ref in range(20)] == [3_000] * 20


def test_offsets_go_on_where_they_were_set():
    index = HeadIndex(1)
    index.set_next_offset(0, 1 << 40)
    assert index.add(0, 5) == 1 << 40
    assert index.first_offset(0) == 1 << 40
    assert read_all(index, 0) == [5]


def test_holes_take_the_offsets_of_lost_records():
    index = HeadIndex(1)
    index.add(0, 5)
    index.set_next_offset(0, 3)
    index.add(0, 9)
    assert read_all(index, 0) == [5, HOLE, HOLE, 9]


@pytest.mark.parametrize("offset", [0, 1, -5, 1 << 50])
def test_next_offset_never_goes_back_or_far_away(offset):
    index = HeadIndex(1)
    index.add_set(array("i", [0, 0]), 2, 1)
    with pytest.raises(ValueError, match="next offset"):
        index.set_next_offset(0, offset)
    assert index.next_offset(0) == 2


def test_a_negative_next_offset_is_refused_for_an_empty_queue():
    index = HeadIndex(1)
    with pytest.raises(ValueError, match="next offset"):
        index.set_next_offset(0, -1)


@pytest.mark.parametrize("ref", [-1, 2, 1_000_000, 2**31 - 1])
def test_unknown_queues_are_refused(ref):
    index = HeadIndex(2)
    out = array("i", [0])
    for call in (
        lambda: index.add(ref, 0),
        lambda: index.add_set(array("i", [ref]), 1, 0),
        lambda: index.next_offset(ref),
        lambda: index.first_offset(ref),
        lambda: index.set_next_offset(ref, 1),
        lambda: index.lookup(ref, 0, 1, out),
        lambda: index.watch(ref, True),
    ):
        with pytest.raises(IndexError):
            call()
    assert index.entry_count == 0


def test_lookup_gives_nothing_outside_of_what_is_held():
    index = HeadIndex(1)
    index.set_next_offset(0, 10)
    index.add(0, 1)
    out = array("i", [7, 7])
    assert [index.lookup(0, offset, 2, out) for offset in (-1, 0, 9, 11, 1 << 60)] == [0] * 5
    assert list(out) == [7, 7]
    assert index.lookup(0, 10, 0, out) == 0


def test_a_lookup_fills_no_more_than_the_buffer():
    index = HeadIndex(1)
    for position in range(100):
        index.add(0, position)
    out = array("i", bytes(4 * 3))
    assert index.lookup(0, 50, 100, out) == 3
    assert list(out) == [50, 51, 52]


def test_ensure_keeps_what_is_there():
    index = HeadIndex(1)
    index.add(0, 42)
    index.watch(0, True)
    for count in (2, 300, 5_000, 100):
        index.ensure(count)
    assert index.queue_count == 5_000
    assert read_all(index, 0) == [42]
    assert index.add(4_999, 1) == 0
    index.add(0, 43)
    grown: list[int] = []
    assert index.take_grown(grown) == 1
    assert grown == [0]


def test_a_long_queue_is_read_from_anywhere():
    index = HeadIndex(2)
    for position in range(40_000):
        index.add(position & 1, position)
    out = array("i", bytes(4 * 300))
    for offset in (0, 1, 1_021, 1_022, 1_023, 9_999, 19_700, 19_999):
        count = index.lookup(1, offset, 300, out)
        assert list(out[:count]) == [2 * n + 1 for n in range(offset, min(offset + 300, 20_000))]


def test_watched_queues_are_reported_once_for_each_take():
    index = HeadIndex(200)
    for ref in range(200):
        index.watch(ref, True)
    for _ in range(3):
        index.add_set(array("i", range(200)), 200, 1)
    grown: list[int] = []
    assert index.take_grown(grown) == 200
    assert grown == list(range(200))
    assert index.take_grown(grown) == 0


def test_a_watch_that_was_dropped_reports_nothing():
    index = HeadIndex(1)
    index.watch(0, True)
    index.add(0, 1)
    index.watch(0, False)
    grown: list[int] = []
    assert index.take_grown(grown) == 0
    index.add(0, 2)
    assert index.take_grown(grown) == 0
    index.watch(0, True)
    index.watch(0, True)
    index.add(0, 3)
    assert index.take_grown(grown) == 1
    index.watch(0, False)
    assert index.watched_count == 0


def test_a_detached_index_keeps_the_entries_while_the_live_one_goes_on():
    index = HeadIndex(3)
    index.watch(1, True)
    for position in range(100):
        index.add(1, position)
    frozen = index.detach()
    assert index.entry_count == 0
    assert index.add(1, 7) == 100
    assert (index.first_offset(1), index.next_offset(0), index.next_offset(1)) == (100, 0, 101)
    assert (frozen.first_offset(1), frozen.next_offset(1)) == (0, 100)
    assert read_all(frozen, 1) == list(range(100))
    assert read_all(index, 1) == [7]
    grown: list[int] = []
    index.take_grown(grown)
    assert grown == [1]


def test_clearing_keeps_next_offsets_and_watches():
    index = HeadIndex(2)
    index.watch(0, True)
    index.add(0, 1)
    index.detach()
    assert (index.entry_count, index.first_offset(0), index.next_offset(0)) == (0, 1, 1)
    index.take_grown([])
    index.add(0, 2)
    assert index.take_grown([]) == 1


class HeadIndexModel(RuleBasedStateMachine):
    """Random use beside plain lists."""

    def __init__(self):
        super().__init__()
        self.index = HeadIndex(QUEUES)
        self.entries = [[] for _ in range(QUEUES)]
        self.first = [0] * QUEUES
        self.watched: set[int] = set()
        self.grown: set[int] = set()
        self.position = 0

    def note(self, ref):
        self.entries[ref].append(self.position)
        if ref in self.watched:
            self.grown.add(ref)

    @rule(ref=refs, times=st.integers(1, 40))
    def add(self, ref, times):
        for _ in range(times):
            self.position += 100
            assert self.index.add(ref, self.position) == self.first[ref] + len(self.entries[ref])
            self.note(ref)

    @rule(chosen=st.lists(refs, unique=True))
    def add_set(self, chosen):
        self.position += 100
        self.index.add_set(array("i", chosen), len(chosen), self.position)
        for ref in chosen:
            self.note(ref)

    @rule(ref=refs, gap=st.integers(0, 9))
    def skip(self, ref, gap):
        offset = self.index.next_offset(ref) + gap
        self.index.set_next_offset(ref, offset)
        if self.entries[ref]:
            self.entries[ref].extend([HOLE] * gap)
            if gap and ref in self.watched:
                self.grown.add(ref)
        else:
            self.first[ref] = offset

    @rule(ref=refs, on=st.booleans())
    def watch(self, ref, on):
        self.index.watch(ref, on)
        (self.watched.add if on else self.watched.discard)(ref)

    @rule()
    def take(self):
        into: list[int] = []
        assert self.index.take_grown(into) == len(into)
        assert sorted(into) == sorted(self.grown & self.watched)
        self.grown.clear()

    @precondition(lambda self: sum(map(len, self.entries)))
    @rule()
    def seal(self):
        frozen = self.index.detach()
        self.check(frozen)
        for ref in range(QUEUES):
            self.first[ref] += len(self.entries[ref])
            self.entries[ref] = []

    def check(self, index):
        for ref in range(QUEUES):
            assert index.first_offset(ref) == self.first[ref]
            assert index.next_offset(ref) == self.first[ref] + len(self.entries[ref])
            assert read_all(index, ref) == self.entries[ref]
        assert index.entry_count == sum(map(len, self.entries))

    @invariant()
    def same(self):
        self.check(self.index)
        assert self.index.watched_count == len(self.watched)


TestHeadIndexModel = HeadIndexModel.TestCase
TestHeadIndexModel.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)


@given(st.integers(0, 600), st.integers(0, 620), st.integers(0, 90))
def test_any_window_of_any_queue_is_what_was_added(count, offset, size):
    index = HeadIndex(1)
    for position in range(count):
        index.add(0, position)
    out = array("i", bytes(4 * 100))
    found = index.lookup(0, offset, size, out)
    assert list(out[:found]) == list(range(count))[offset : offset + size]
