from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from core.errors import DiskFullError, StoreError
from core.store import segments as segments_module
from core.store.layout import segment_name
from core.store.segments import Segments, first_store_ms
from tests.support.records import encode_record
from tests.support.store import make_record

SIZE = 64 * 1024


@pytest.fixture
def segments(tmp_path):
    (tmp_path / "log").mkdir()
    segments = Segments(tmp_path / "log", tmp_path, SIZE, 2)
    yield segments
    segments.close()


def test_segments_follow_one_another(segments):
    for _ in range(3):
        segments.roll(SIZE)
    assert [segment.base for segment in segments.segments] == [0, SIZE, 2 * SIZE]
    assert segments.find(SIZE + 5) is segments.segments[1]
    assert segments.find(3 * SIZE) is None
    assert segments.newest_base == 2 * SIZE
    assert segments.total_bytes == 3 * SIZE


def test_prepared_segment_is_used_by_the_next_roll(segments, tmp_path):
    segments.prepare()
    segments.prepare()
    assert segments.is_prepared
    assert list((tmp_path / "log").iterdir()) == []
    segments.roll(0)
    assert not segments.is_prepared
    assert [path.name for path in (tmp_path / "log").iterdir()] == [segment_name(0)]
    segments.prepare()
    segments.close()
    assert [path.name for path in tmp_path.iterdir()] == ["log"]


def test_segment_that_is_being_made_does_not_lack_the_room_that_it_takes(segments, monkeypatch):
    free, lacked = SIZE, []

    def allocate(*_):
        nonlocal free
        free = 0
        lacked.append(segments.lacks_room())
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(segments_module, "free_bytes", lambda path: free)
    monkeypatch.setattr(os, "posix_fallocate", allocate)
    with pytest.raises(DiskFullError):
        segments.prepare()
    assert lacked == [False]
    assert segments.lacks_room()


def test_what_a_killed_process_prepared_is_removed(segments, tmp_path):
    segments.prepare()
    Segments(tmp_path / "log", tmp_path, SIZE, 2)
    assert [path.name for path in tmp_path.iterdir()] == ["log"]


def test_full_disk_stops_the_roll_and_nothing_has_changed(segments, monkeypatch):
    segments.roll(0)
    newest = segments.newest

    def no_room(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", no_room)
    with pytest.raises(DiskFullError):
        segments.roll(10)
    assert segments.newest is newest
    assert len(segments.segments) == 1
    monkeypatch.undo()
    segments.roll(10)
    assert len(segments.segments) == 2


def test_only_so_many_segments_stay_mapped_and_all_can_be_read(segments):
    for k in range(5):
        segments.roll(SIZE)
        segments.newest.view[0] = k
    assert [segments.view(k * SIZE)[0] for k in range(5)] == [0, 1, 2, 3, 4]
    assert len(segments._mapped) == 2
    assert segments.view(1) is None
    assert segments.view(5 * SIZE) is None


def test_oldest_goes_and_the_newest_never(segments, tmp_path):
    segments.roll(SIZE)
    view = segments.view(0)
    with pytest.raises(StoreError):
        segments.drop_oldest()
    segments.roll(SIZE)
    segments.drop_oldest()
    assert segments.first_offset == SIZE
    assert segments.view(0) is None
    segments.delete_dropped()
    assert view[0] == 0
    assert [path.name for path in (tmp_path / "log").iterdir()] == [segment_name(SIZE)]


def test_an_empty_file_is_no_segment(tmp_path):
    for base, size in ((0, SIZE), (SIZE, 0), (2 * SIZE, SIZE), (3 * SIZE, 0)):
        (tmp_path / segment_name(base)).write_bytes(bytes(size))
    assert [segment.base for segment in Segments(tmp_path, tmp_path, SIZE, 2).segments] == [0, 2 * SIZE]
    assert len(list(tmp_path.iterdir())) == 2


def test_dropped_segments_are_deleted_the_oldest_first_and_each_for_good_before_the_next(segments, monkeypatch):
    for _ in range(4):
        segments.roll(SIZE)
    left = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (left.append(len(list(segments.folder.iterdir()))), real(fd)))
    for _ in range(3):
        segments.drop_oldest()
    segments.delete_dropped()
    assert left == [3, 2, 1]


def test_what_a_process_before_this_one_wrote_is_synced_from_a_position_on(segments, monkeypatch):
    for _ in range(4):
        segments.roll(SIZE)
    synced = []
    monkeypatch.setattr(os, "fdatasync", lambda fd: synced.append(Path(f"/proc/self/fd/{fd}").readlink().name))
    segments.sync_from(2 * SIZE - 1)
    assert synced == [segment_name(base * SIZE) for base in (1, 2, 3)]


def test_an_empty_log_begins_where_it_is_told(segments):
    segments.first_base = 5 * SIZE
    assert segments.roll(0).base == 5 * SIZE
    assert segments.roll(0).base == 6 * SIZE


def test_room_after_the_records_of_a_full_segment_is_given_back(tmp_path):
    size = 4 << 20
    segments = Segments(tmp_path, tmp_path, size, 2)
    segments.roll(0)
    segments.newest.view[:] = b"x" * size
    os.fdatasync(segments.newest.fd)
    segments.roll(1 << 20)
    segments.trim()
    assert segments.segments[0].size == size
    assert bytes(segments.view(0)[: 1 << 20]) == b"x" * (1 << 20)
    assert segments.total_bytes <= 2 * size
    segments.close()


@pytest.mark.parametrize("born_host", [bytes(8), bytes(20)])
def test_first_store_time_is_the_first_records(born_host):
    sys_flag = 0x10 if len(born_host) == 20 else 0
    raw = encode_record(make_record(store_ms=77, born_host=born_host, sys_flag=sys_flag), with_crc=True)
    assert first_store_ms(memoryview(raw)) == 77
    assert first_store_ms(memoryview(bytes(200))) == -1
    assert first_store_ms(memoryview(b"")) == -1
