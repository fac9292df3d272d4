from __future__ import annotations

from array import array

import pytest

from core.store.head_index import HeadIndex
from core.store.queue_index import QueueIndex
from core.store.queue_names import QueueNames

END = 200  # of the log when both segments were full


@pytest.fixture
def index(tmp_path):
    """Queue 0 has offsets 0-4 in segment 0, 5-9 in segment 100, 10-14 in the head; queue 1 has 0 in segment 100."""
    names = QueueNames.open(tmp_path / "queues")
    for key in (b"a", b"b", b"c"):
        names.intern(key)
    index = QueueIndex(tmp_path, names, HeadIndex(3), rebuilt)
    for base in (0, 100):
        for k in range(5):
            index.head.add(0, 10 * k)
        if base:
            index.head.add(1, 7)
        index.seal_head(base, base + 100)
    for k in range(5):
        index.head.add(0, 10 * k + 1)
    yield index
    index.close()
    names.close()


def rebuilt(base):
    head = HeadIndex(3)
    head.set_next_offset(0, base // 20)
    for k in range(5):
        head.add(0, 10 * k)
    return head


def locate(index, ref, offset, count=10):
    out = array("i", bytes(40))
    found = index.locate(ref, offset, count, out)
    return index.found_base, index.found_offset, list(out[:found])


@pytest.mark.parametrize("is_written", [False, True])
def test_entries_are_found_in_whichever_part_holds_them(index, is_written):
    if is_written:
        index.write_full(END)
    assert locate(index, 0, 0) == (0, 0, [0, 10, 20, 30, 40])
    assert locate(index, 0, 8) == (100, 8, [30, 40])
    assert locate(index, 0, 3, 1) == (0, 3, [30])
    assert locate(index, 0, 10, 2) == (200, 10, [1, 11])
    assert locate(index, 1, 0) == (100, 0, [7])
    assert locate(index, 0, 15)[2] == []
    assert locate(index, 1, 1)[2] == []
    assert locate(index, 2, 0)[2] == []


def test_what_is_gone_leads_to_what_is_kept(index):
    index.write_full(END)
    assert index.min_offset(0) == 0
    assert index.drop_oldest()
    assert index.min_offset(0) == 5
    assert locate(index, 0, 2) == (100, 5, [0, 10, 20, 30, 40])
    assert index.drop_oldest()
    assert locate(index, 0, 0) == (200, 10, [1, 11, 21, 31, 41])
    assert index.min_offset(1) == 1
    assert not index.drop_oldest()


@pytest.mark.parametrize("is_written", [False, True])
def test_first_offsets_of_many_queues_are_what_is_said_of_each(index, is_written):
    if is_written:
        index.write_full(END)
    while True:
        for start in range(4):
            for size in range(5):
                out = array("q", [-7] * size)
                count = index.first_offsets(start, out)
                assert count == min(size, 3 - start)
                assert list(out[:count]) == [index.min_offset(ref) for ref in range(start, start + count)]
                assert set(out[count:]) <= {-7}
        if not index.drop_oldest():
            break


def test_file_of_a_segment_that_is_not_on_disk_yet_is_not_written(index, tmp_path):
    index.write_full(END - 1)
    assert index.sealed_part(0) is not None
    assert index.sealed_part(100) is None
    assert not (tmp_path / "00000000000000000100").exists()
    index.write_full(END)
    assert index.sealed_part(100) is not None


def test_part_without_a_file_is_not_dropped(index):
    assert not index.drop_oldest()


def test_damaged_file_is_replaced_from_the_log(index, tmp_path):
    index.write_full(END)
    path = tmp_path / "00000000000000000000"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1  # the last entry: checked when it is read
    path.write_bytes(data)
    for part in index.parts:
        part.source.close()
        part.source = type(part.source).open(tmp_path / f"{part.base:020d}")
    assert locate(index, 0, 0) == (0, 0, [0, 10, 20, 30, 40])
    assert isinstance(index.parts[0].source, HeadIndex)
    index.write_full(END)
    assert locate(index, 0, 4) == (0, 4, [40])


def test_what_a_damaged_file_had_and_the_log_has_lost_is_passed(index, tmp_path):
    index.rebuild = lambda base: HeadIndex(3)  # nothing in that segment is sound any more
    assert index.min_offset(0) == 0
    index.write_full(END)
    path = tmp_path / "00000000000000000000"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    for part in index.parts:
        part.source.close()
        part.source = type(part.source).open(tmp_path / f"{part.base:020d}")
    assert locate(index, 0, 2) == (100, 5, [0, 10, 20, 30, 40])
    assert index.min_offset(0) == 5
