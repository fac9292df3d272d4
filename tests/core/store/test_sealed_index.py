"""Sealed index files: what went in comes out, and damage is found."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given, settings, strategies as st

from core.errors import CorruptRecordError, DiskFullError
from core.store.head_index import HOLE, HeadIndex
from core.store.sealed_index import SealedIndex, write_sealed_index
from tests.support.crashes import crash_everywhere
from tests.support.files import file_size_limit

BASE = 3 << 28


def make_head(queues: dict[int, tuple[int, list[int]]], queue_count: int) -> HeadIndex:
    head = HeadIndex(queue_count)
    for ref, (first, positions) in queues.items():
        head.set_next_offset(ref, first)
        for position in positions:
            head.add(ref, position)
    return head


def seal(path, head: HeadIndex) -> SealedIndex:
    write_sealed_index(path, head.detach(), BASE, head.queue_count, 12_345, log_position=BASE + 99)
    return SealedIndex.open(path)


def read_queue(index: SealedIndex, ref: int, first: int, step: int = 500) -> list[int]:
    out = array("i", bytes(4 * step))
    found: list[int] = []
    while count := index.lookup(ref, first + len(found), step, out):
        found.extend(out[:count])
    return found


def read_all(index: SealedIndex) -> dict[int, tuple[int, list[int]]]:
    return {ref: (first, read_queue(index, ref, first)) for ref, first, _ in index.queues()}


queues_of = st.dictionaries(
    st.integers(0, 300),
    st.tuples(st.integers(0, 1 << 40), st.lists(st.integers(-1, 2**31 - 1), min_size=1, max_size=60)),
    max_size=40,
)


@given(queues=queues_of)
@settings(max_examples=60, deadline=None)
def test_what_was_sealed_is_read_back(tmp_path_factory, queues):
    index = seal(tmp_path_factory.mktemp("sealed") / "i", make_head(queues, 301))
    assert read_all(index) == queues
    for ref in range(-1, 303):
        expected = queues.get(ref)
        assert index.find(ref) == (expected and (expected[0], len(expected[1])))
    index.close()


@given(queues=queues_of, start=st.integers(0, 305), count=st.integers(0, 320))
@settings(max_examples=60, deadline=None)
def test_first_offsets_of_many_queues_are_those_that_each_has(tmp_path_factory, queues, start, count):
    head = make_head(queues, 301)
    index = seal(tmp_path_factory.mktemp("sealed") / "i", make_head(queues, 301))
    for source in (head, index):
        out = array("q", [-7] * count)
        source.put_first_offsets(start, count, out)
        assert list(out) == [queues[ref][0] if ref in queues else -7 for ref in range(start, start + count)]
    index.close()


def test_the_header_says_what_the_file_covers(tmp_path):
    index = seal(tmp_path / "i", make_head({5: (7, [1, HOLE, 3])}, 9))
    assert index.segment_base == BASE
    assert index.log_position == BASE + 99
    assert (index.names_count, index.names_fingerprint, index.entry_count) == (9, 12_345, 3)
    assert list(index.queues()) == [(5, 7, 3)]
    index.close()


def test_a_segment_without_entries_has_an_index_too(tmp_path):
    index = seal(tmp_path / "i", HeadIndex(4))
    assert list(index.queues()) == []
    assert index.find(0) is None
    assert index.lookup(0, 0, 1, array("i", [0])) == 0
    index.close()


def test_lookup_gives_nothing_outside_of_what_is_held(tmp_path):
    index = seal(tmp_path / "i", make_head({1: (10, [4, 5, 6])}, 3))
    out = array("i", [9, 9])
    assert [index.lookup(1, offset, 5, out) for offset in (-1, 0, 9, 13, 1 << 60)] == [0] * 5
    assert [index.lookup(ref, 10, 5, out) for ref in (-1, 0, 2, 3, 1 << 40)] == [0] * 5
    assert index.lookup(1, 10, 0, out) == 0
    assert list(out) == [9, 9]
    assert index.lookup(1, 11, 5, out) == 2
    assert list(out) == [5, 6]
    index.close()


def test_more_entries_and_queues_than_a_slice_holds(tmp_path):
    head = HeadIndex(140_000)
    head.add_set(array("i", range(140_000)), 140_000, 7)
    for position in range(300_000):
        head.add(70_000, position)
    head.add(139_999, 8)
    index = seal(tmp_path / "i", head)
    assert index.entry_count == 440_001
    assert read_queue(index, 70_000, 0, 100_000) == [7, *range(300_000)]
    assert [index.find(ref) for ref in (0, 69_999, 70_000, 139_999)] == [
        (0, 1),
        (0, 1),
        (0, 300_001),
        (0, 2),
    ]
    assert read_queue(index, 139_999, 0) == [7, 8]
    assert sum(count for _, _, count in index.queues()) == 440_001
    index.close()


def test_a_closed_index_gives_nothing(tmp_path):
    index = seal(tmp_path / "i", make_head({0: (0, [1])}, 1))
    index.close()
    index.close()
    assert index.find(0) is None
    assert index.lookup(0, 0, 1, array("i", [0])) == 0


def test_sealing_again_gives_the_same_file(tmp_path):
    frozen = make_head({0: (5, [1, 2, 3]), 7: (0, [9])}, 8).detach()
    for name in "ab":
        write_sealed_index(tmp_path / name, frozen, BASE, 8, 1)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


@given(queues=queues_of.filter(bool), data=st.data())
@settings(max_examples=120, deadline=None)
def test_a_flipped_bit_is_found_and_never_served(tmp_path_factory, queues, data):
    path = tmp_path_factory.mktemp("sealed") / "i"
    seal(path, make_head(queues, 301)).close()
    whole = bytearray(path.read_bytes())
    bit = data.draw(st.integers(0, 8 * len(whole) - 1))
    whole[bit // 8] ^= 1 << bit % 8
    path.write_bytes(whole)
    with pytest.raises(CorruptRecordError):
        read_all(SealedIndex.open(path))


def test_a_damaged_block_costs_only_its_own_entries(tmp_path):
    path = tmp_path / "i"
    seal(path, make_head({0: (0, list(range(3_000)))}, 1)).close()
    whole = bytearray(path.read_bytes())
    whole[-4 * 3_000 + 4 * 1_500] ^= 1
    path.write_bytes(whole)
    index = SealedIndex.open(path)
    out = array("i", bytes(4 * 1_024))
    assert index.lookup(0, 0, 1_024, out) == 1_024
    assert index.lookup(0, 2_048, 1_024, out) == 952
    for _ in range(2):
        with pytest.raises(CorruptRecordError) as caught:
            index.lookup(0, 1_024, 1, out)
    assert caught.value.physical_offset == BASE
    index.close()


def test_a_shortened_or_lengthened_file_is_refused(tmp_path):
    path = tmp_path / "i"
    seal(path, make_head({3: (0, [1, 2])}, 4)).close()
    whole = path.read_bytes()
    for size in [*range(200), len(whole) - 1]:
        path.write_bytes(whole[:size])
        with pytest.raises(CorruptRecordError):
            SealedIndex.open(path)
    path.write_bytes(whole + b"\0")
    with pytest.raises(CorruptRecordError):
        SealedIndex.open(path)


@given(data=st.binary(max_size=300))
def test_any_other_file_is_refused(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("sealed") / "i"
    path.write_bytes(data)
    with pytest.raises(CorruptRecordError):
        SealedIndex.open(path)


@pytest.mark.parametrize("size", [100, 5_000])
def test_a_full_disk_leaves_no_file(tmp_path, size):
    head = make_head({0: (0, list(range(3_000)))}, 1).detach()
    with file_size_limit(size), pytest.raises(DiskFullError):
        write_sealed_index(tmp_path / "i", head, BASE, 1, 1)
    assert list(tmp_path.iterdir()) == []
    write_sealed_index(tmp_path / "i", head, BASE, 1, 1)
    index = SealedIndex.open(tmp_path / "i")
    assert read_queue(index, 0, 0) == list(range(3_000))
    index.close()


def test_a_crash_at_any_step_leaves_no_file_or_a_whole_one(tmp_path):
    folder = tmp_path / "index"
    folder.mkdir()
    head = make_head({2: (7, list(range(3_000)))}, 3).detach()
    seen = []
    for _ in crash_everywhere(folder, lambda: write_sealed_index(folder / "i", head, BASE, 3, 1)):
        seen.append((folder / "i").exists())
        if seen[-1]:
            index = SealedIndex.open(folder / "i")
            assert read_all(index) == {2: (7, list(range(3_000)))}
            index.close()
    assert seen == sorted(seen)
    assert set(seen) == {False, True}
