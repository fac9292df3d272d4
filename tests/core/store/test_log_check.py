"""What is found missing of a log, by readers too."""

from __future__ import annotations

import shutil

import pytest

from core.errors import DataFolderUnusableError
from core.store.log_check import check_log, find_known_end, find_log_end, find_missing_end
from core.store.log_survey import SegmentFile
from tests.support.store import light, open_store, publish

SEGMENT = 64 * 1024
NAME = "{:020d}".format


@pytest.fixture
def folder(tmp_path):
    """A folder with four segments, the last one used in part, as a killed process leaves it; see `end_of`."""
    store = open_store(tmp_path / "killed")
    publish(store, store.make_route(b"T", 0, b"", light("a")), *(b"x" * 5_000,) * 40)
    store.flush()
    store.prepare()
    shutil.copytree(tmp_path / "killed", tmp_path / "data")
    store.close()
    return tmp_path / "data"


def segment(folder, number):
    return folder / "commitlog" / NAME(number * SEGMENT)


def cut(path, size):
    path.write_bytes(path.read_bytes()[:size])


def losses(folder, *known):
    return [(loss.start, loss.end) for loss in check_log(folder, *known).losses]


def test_nothing_is_missing_of_a_whole_log(folder):
    check = check_log(folder)
    assert (check.holes, check.losses) == ([], [])
    assert check.known_end == find_known_end(folder) > 3 * SEGMENT


def test_missing_and_short_and_empty_segments_in_the_middle_are_named(folder):
    segment(folder, 1).unlink()
    assert losses(folder) == [(SEGMENT, 2 * SEGMENT)]
    assert str(check_log(folder).losses[0]) == (
        f"segment {NAME(SEGMENT)} is missing: positions {SEGMENT} to {2 * SEGMENT}"
    )
    cut(segment(folder, 0), 10_000)
    assert losses(folder) == [(10_000, 2 * SEGMENT)]
    cut(segment(folder, 0), 0)
    assert [loss.what for loss in check_log(folder).losses] == [f"segment {NAME(0)} has only 0 bytes"]


@pytest.mark.parametrize("how", ["missing", "empty", "cut", "zeros", "last record"])
def test_a_log_that_ends_before_what_was_confirmed_is_told_from_where_on(folder, how):
    known_end = find_known_end(folder)
    path = segment(folder, 3)
    data = path.read_bytes()
    ends = 3 * SEGMENT
    if how == "missing":
        path.unlink()
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "cut":
        cut(path, known_end - ends - 1)
    elif how == "zeros":
        path.write_bytes(bytes(SEGMENT))
    else:
        at = known_end - ends - 100
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    ((start, end),) = losses(folder)
    assert end == known_end
    record_bytes = 5_180
    assert start == ends if how in {"missing", "empty", "zeros"} else known_end - record_bytes < start < known_end


def test_a_missing_log_is_told(folder):
    known_end = find_known_end(folder)
    shutil.rmtree(folder / "commitlog")
    assert losses(folder) == [(0, known_end)]
    (folder / "commitlog").mkdir()
    assert losses(folder) == [(0, known_end)]


def test_damage_before_the_end_is_no_loss_of_the_end(folder):
    path = segment(folder, 3)
    data = bytearray(path.read_bytes())
    data[2] ^= 1  # the size of the first record
    path.write_bytes(data)
    assert losses(folder) == []


def test_where_nothing_was_confirmed_the_indexes_tell(folder):
    (folder / "confirmed").unlink()
    assert find_known_end(folder) == 3 * SEGMENT
    segment(folder, 3).unlink()
    assert losses(folder) == []
    segment(folder, 2).unlink()
    assert losses(folder) == [(2 * SEGMENT, 3 * SEGMENT)]
    shutil.rmtree(folder / "index")
    assert find_known_end(folder) == -1
    assert losses(folder) == []
    assert losses(folder, 2 * SEGMENT + 1) == [(2 * SEGMENT, 2 * SEGMENT + 1)]


def test_a_hole_in_what_no_sync_covered_is_no_loss(folder):
    known_end = find_known_end(folder)
    assert known_end < 4 * SEGMENT
    for number in (5, 7):
        segment(folder, number).write_bytes(bytes(SEGMENT))
    check = check_log(folder)
    assert [(hole.start, hole.end) for hole in check.holes] == [(4 * SEGMENT, 5 * SEGMENT), (6 * SEGMENT, 7 * SEGMENT)]
    assert check.losses == []


def test_segments_that_lie_over_each_other_are_refused(folder):
    (folder / "commitlog" / NAME(SEGMENT + 4096)).write_bytes(bytes(SEGMENT))
    with pytest.raises(DataFolderUnusableError, match="lies within"):
        check_log(folder)


def test_the_end_of_a_segment_is_after_its_last_sound_record(tmp_path):
    store = open_store(tmp_path)
    batch = publish(store, store.make_route(b"T", 0, b"", light("a")), *(b"%d" % k * 100 for k in range(9)), now_ms=7)
    store.close()
    data = bytearray(segment(tmp_path, 0).read_bytes())
    end = store.written_until
    assert find_log_end(data, 0, end)[0] == end
    assert find_log_end(data, 0, len(data))[0] == end
    assert find_log_end(data, 0, end).store_ms > 0
    data[batch.physical_offset[8] + 120] ^= 1
    assert find_log_end(data, 0, end)[0] == batch.physical_offset[8]
    data[batch.physical_offset[4] + 1] ^= 1
    assert find_log_end(data, 0, end)[0] == batch.physical_offset[8]
    assert find_log_end(bytes(SEGMENT), 0, 100) == (0, 0)


def test_nothing_is_missing_at_the_end_of_a_log_of_which_nothing_was_on_disk(tmp_path):
    assert find_missing_end([], 0) == []
    assert find_missing_end([SegmentFile(0, 0, tmp_path / NAME(0))], 0) == []
