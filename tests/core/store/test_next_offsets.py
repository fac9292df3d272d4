"""The next offsets of all queues: two generations, the newest good one is used."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from core.errors import DiskFullError
from core.store.head_index import HeadIndex
from core.store.next_offsets import read_next_offsets, write_next_offsets
from tests.support.crashes import crash_everywhere
from tests.support.files import file_size_limit


def make_head(offsets) -> HeadIndex:
    head = HeadIndex(len(offsets))
    for ref, offset in enumerate(offsets):
        head.set_next_offset(ref, offset)
    return head


@given(st.lists(st.integers(0, 1 << 50), max_size=50), st.integers(0, 3), st.integers(0, 1 << 60))
@settings(max_examples=40, deadline=None)
def test_offsets_come_back(tmp_path_factory, offsets, unknown, log_position):
    path = tmp_path_factory.mktemp("offsets") / "offsets"
    head = make_head(offsets)
    for ref in range(0, len(offsets), 3):
        offsets[ref] = head.add(ref, 5) + 1
    write_next_offsets(path, head, len(offsets) + unknown, 99, log_position)
    found = read_next_offsets(path)
    assert list(found.offsets) == offsets + [0] * unknown
    assert (found.names_count, found.names_fingerprint) == (len(offsets) + unknown, 99)
    assert found.log_position == log_position
    again = HeadIndex()
    found.apply(again)
    assert [again.next_offset(ref) for ref in range(len(offsets))] == offsets


def test_only_the_named_queues_are_written(tmp_path):
    write_next_offsets(tmp_path / "offsets", make_head([1, 2, 3]), 2, 0, 0)
    assert list(read_next_offsets(tmp_path / "offsets").offsets) == [1, 2]


def test_many_queues(tmp_path):
    offsets = [7 * ref for ref in range(140_001)]
    write_next_offsets(tmp_path / "offsets", make_head(offsets), len(offsets), 0, 0)
    assert list(read_next_offsets(tmp_path / "offsets").offsets) == offsets


def test_there_may_be_none(tmp_path):
    assert read_next_offsets(tmp_path / "offsets") is None


def test_damage_anywhere_brings_the_generation_before_back(tmp_path):
    path = tmp_path / "offsets"
    for generation in (1, 2, 3):
        write_next_offsets(path, make_head([generation, 2, 3]), 3, 0, generation)
    whole = path.read_bytes()
    for bit in range(8 * len(whole)):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        found = read_next_offsets(path)
        assert found.log_position in {2, 3}
        assert list(found.offsets) == [found.log_position, 2, 3]
        assert found.log_position == 2 or bit // 8 in range(36, 40)  # padding
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        assert read_next_offsets(path).log_position == 2
    path.unlink()
    assert read_next_offsets(path).log_position == 2
    path.with_name("offsets.previous").write_bytes(b"")
    assert read_next_offsets(path) is None


def test_a_full_disk_changes_nothing(tmp_path):
    path = tmp_path / "offsets"
    write_next_offsets(path, make_head([1]), 1, 0, 1)
    head = make_head([5] * 1_000)
    with file_size_limit(1_000), pytest.raises(DiskFullError):
        write_next_offsets(path, head, 1_000, 0, 2)
    assert read_next_offsets(path).log_position == 1
    assert [name.name for name in tmp_path.iterdir()] == ["offsets"]


def test_a_crash_at_any_step_leaves_the_old_offsets_or_the_new_ones(tmp_path):
    folder = tmp_path / "index"
    folder.mkdir()
    path = folder / "offsets"
    for generation in (1, 2):
        write_next_offsets(path, make_head([generation]), 1, 0, generation)
    seen = []
    for _ in crash_everywhere(folder, lambda: write_next_offsets(path, make_head([3]), 1, 0, 3)):
        found = read_next_offsets(path)
        assert list(found.offsets) == [found.log_position]
        seen.append(found.log_position)
        path.unlink()
        assert read_next_offsets(path).log_position in {1, 2}
    assert seen == sorted(seen)
    assert set(seen) == {2, 3}
