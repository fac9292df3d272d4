from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import pytest

from core.errors import DiskFullError
from core.settings import MIB, StoreSettings
from core.store import segments
from core.store.layout import NEXT_SEGMENT_FILE, segment_name
from core.store.pages_ahead import POPULATED_MIN
from tests.support.store import open_store, publish

SEGMENT_BYTES = 32 * MIB


@pytest.fixture
def store(tmp_path):
    store = open_store(tmp_path, StoreSettings(segment_bytes=SEGMENT_BYTES))
    yield store
    store.close()


def write(store, size):
    """Publish so many bytes."""
    route = store.make_route(b"T", 0, b"", [])
    for _ in range(size // MIB):
        publish(store, route, b"x" * (MIB - 1_000))


def resident_bytes(path):
    """Return how much of a file is in this process's memory."""
    resident = 0
    is_ours = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if "-" in line.split(" ", 1)[0] and ":" not in line.split(" ", 1)[0]:
            is_ours = line.endswith(str(path))
        elif is_ours and line.startswith("Rss:"):
            resident += int(line.split()[1]) * 1024
    return resident


@pytest.mark.skipif(sys.platform != "linux", reason="others have no way to ask for pages")
def test_pages_that_the_writer_comes_to_are_in_memory_before_it(store, tmp_path):
    write(store, MIB)
    newest = tmp_path / "commitlog" / segment_name(0)
    assert resident_bytes(newest) < POPULATED_MIN
    store.prepare()
    assert resident_bytes(newest) >= POPULATED_MIN
    assert resident_bytes(newest) < SEGMENT_BYTES


def test_next_segment_is_made_when_the_newest_is_half_full(store, tmp_path):
    def spares():
        return [path.stat().st_size for path in tmp_path.glob(f"{NEXT_SEGMENT_FILE}*")]

    write(store, SEGMENT_BYTES // 4)
    store.prepare()
    assert spares() == []
    write(store, SEGMENT_BYTES // 3)
    store.prepare()
    assert spares() == [SEGMENT_BYTES]


def test_nothing_is_made_ready_for_a_log_without_segments(store, tmp_path):
    store.prepare()
    assert list((tmp_path / "commitlog").iterdir()) == []


def test_no_room_for_the_next_segment_is_said(store, monkeypatch):
    write(store, SEGMENT_BYTES * 2 // 3)

    def no_room(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", no_room)
    with pytest.raises(DiskFullError):
        store.prepare()


def wants(store, size):
    """Publish so many MiB; return after which of them a step was wanted."""
    wanted = []
    for number in range(1, size // MIB + 1):
        write(store, MIB)
        if store.touch_ahead() and store.touch_pages():
            wanted.append(number)
    return wanted


def test_more_is_wanted_once_when_the_writer_comes_near_the_end_of_what_is_ready(tmp_path):
    store = open_store(tmp_path / "large", StoreSettings(segment_bytes=4 * SEGMENT_BYTES))
    assert not store.touch_pages()  # nothing is written
    write(store, MIB)
    for count, half in ((12, POPULATED_MIN // 2), (20, 12 * MIB)):  # then half of twice what was written
        store.prepare()
        wanted = []
        for _ in range(count):
            write(store, MIB)
            wanted.append(store.touch_ahead() and store.touch_pages())
        assert wanted.index(True) == half // MIB
        assert wanted.count(True) == 1
    store.close()


def test_step_that_does_not_come_is_wanted_again_until_the_next_segment_is_there(store):
    assert wants(store, SEGMENT_BYTES) == [1, 17, 22, 27, 32]  # the first, behind the half, and an eighth behind each
    store.prepare()
    assert wants(store, SEGMENT_BYTES) == [1, 17, 22, 27, 32]
    store.prepare()
    assert wants(store, SEGMENT_BYTES // 2) == [1]  # the one that was ready is used up


def test_next_segment_lacks_room_from_the_half_of_the_newest_on_until_it_is_there(store, monkeypatch):
    free = SEGMENT_BYTES
    monkeypatch.setattr(segments, "free_bytes", lambda path: free)
    assert not store.pages_ahead.lacks_room()
    free = SEGMENT_BYTES - 1
    assert store.pages_ahead.lacks_room()  # the first one
    with pytest.raises(DiskFullError):
        store.prepare()
    write(store, SEGMENT_BYTES // 4)
    assert not store.pages_ahead.lacks_room()
    write(store, SEGMENT_BYTES // 3)
    assert store.pages_ahead.lacks_room()
    free = SEGMENT_BYTES
    assert not store.pages_ahead.lacks_room()
    store.prepare()
    free = 0
    assert not store.pages_ahead.lacks_room()


def test_more_is_wanted_as_soon_as_the_one_that_prepares_said(store):
    write(store, MIB)
    store.prepare(2 * MIB)
    wanted = []
    for _ in range(4):
        write(store, MIB)
        wanted.append(store.touch_ahead() and store.touch_pages())
    assert wanted == [False, False, True, False]


def test_messages_that_come_one_by_one_want_no_step_of_preparation(store):
    write(store, MIB)
    store.prepare()
    route = store.make_route(b"T", 0, b"", [])
    for _ in range(300):
        publish(store, route, bytes(256))
        store.touch_ahead()
        assert not store.touch_pages()
