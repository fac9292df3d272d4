"""Room, syncs and replacement of files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from core.errors import DiskFullError, FlushFailedError
from core.store.disk import (
    allocate,
    free_bytes,
    make_durable,
    make_folder,
    new_file,
    replace_file,
    sync_file,
    sync_folder,
    write_all,
)
from tests.support.crashes import crash_everywhere
from tests.support.files import file_size_limit


@pytest.fixture
def fd(tmp_path):
    number = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    yield number
    os.close(number)


def test_allocated_bytes_are_zeros_with_blocks(tmp_path, fd):
    os.write(fd, b"abc")
    allocate(fd, tmp_path / "file", 3, 100_000)
    assert (tmp_path / "file").read_bytes() == b"abc" + bytes(99_997)
    assert os.fstat(fd).st_blocks * 512 >= 100_000


def test_no_room_to_allocate_leaves_the_file_as_it_was(tmp_path, fd):
    os.write(fd, b"abc")
    with file_size_limit(5_000), pytest.raises(DiskFullError) as caught:
        allocate(fd, tmp_path / "file", 3, 100_000)
    assert caught.value.path == str(tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == b"abc"


def test_no_room_to_write_leaves_the_file_as_it_was(tmp_path, fd):
    write_all(fd, tmp_path / "file", b"abc", 0)
    with file_size_limit(5_000), pytest.raises(DiskFullError):
        write_all(fd, tmp_path / "file", bytes(100_000), 3)
    assert (tmp_path / "file").read_bytes() == b"abc"
    write_all(fd, tmp_path / "file", memoryview(b"def"), 3)
    assert (tmp_path / "file").read_bytes() == b"abcdef"


def test_other_errors_keep_their_own_name(tmp_path):
    (tmp_path / "file").touch()
    with (tmp_path / "file").open("rb") as file, pytest.raises(OSError, match="descriptor"):
        write_all(file.fileno(), tmp_path / "file", b"x", 0)
    with (tmp_path / "file").open("rb") as file, pytest.raises(OSError, match="descriptor"):
        allocate(file.fileno(), tmp_path / "file", 0, 10)


def test_a_refused_sync_is_reported():
    read_end, write_end = os.pipe()
    try:
        with pytest.raises(FlushFailedError):
            sync_file(write_end)
    finally:
        os.close(read_end)
        os.close(write_end)


def test_a_folder_is_synced(tmp_path):
    sync_folder(tmp_path)


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    path = tmp_path / "file"
    replace_file(path, b"one")
    assert path.read_bytes() == b"one"
    with file_size_limit(100), pytest.raises(DiskFullError):
        replace_file(path, bytes(5_000))
    with pytest.raises(ZeroDivisionError), new_file(path):
        raise ZeroDivisionError
    assert path.read_bytes() == b"one"
    assert list(tmp_path.iterdir()) == [path]


def test_the_replaced_file_is_kept_under_another_name(tmp_path):
    path, kept = tmp_path / "file", tmp_path / "kept"
    for content in (b"one", b"two", b"three"):
        with new_file(path, keep=kept) as fd:
            write_all(fd, path, content, 0)
    assert (path.read_bytes(), kept.read_bytes()) == (b"three", b"two")
    assert sorted(tmp_path.iterdir()) == [path, kept]


def test_a_missing_folder_is_an_error_of_its_own(tmp_path):
    with pytest.raises(FileNotFoundError):
        replace_file(tmp_path / "none" / "file", b"")


def test_a_crash_at_any_step_leaves_the_old_file_or_the_new_one(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "file"
    replace_file(path, b"old")

    def work():
        with new_file(path, keep=folder / "kept") as fd:
            write_all(fd, path, b"new", 0)

    seen = []
    for _ in crash_everywhere(folder, work):
        seen.append(path.read_bytes())
        replace_file(path, b"next")
        assert path.read_bytes() == b"next"
        assert {name.name for name in folder.iterdir()} <= {"file", "kept", "kept.new"}
    assert seen == sorted(seen, reverse=True)
    assert {seen[0], seen[-1]} == {b"old", b"new"}


def test_free_room_is_what_the_file_system_gives_to_us(tmp_path, monkeypatch):
    room = free_bytes(tmp_path)
    assert 0 < room <= shutil.disk_usage(tmp_path).total
    told = os.statvfs_result((4096, 4096, 0, 0, 0, 0, 0, 0, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda path: told)
    assert free_bytes(tmp_path) > 1 << 60


def test_folders_are_made_with_those_above_them_and_their_names_synced(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(Path(f"/proc/self/fd/{fd}").readlink()))
    make_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()
    assert synced[-2:] == [tmp_path, tmp_path / "a"]
    make_folder(tmp_path / "a" / "b")  # by a process that was killed before it had synced it, for all we know
    assert synced[-1] == tmp_path / "a"


def test_a_folder_in_one_that_we_may_not_read_is_made(tmp_path, monkeypatch):
    real = os.open

    def refuse(path, flags, *args):
        if flags & os.O_DIRECTORY:
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, flags, *args)

    monkeypatch.setattr(os, "open", refuse)
    make_folder(tmp_path / "data")
    assert (tmp_path / "data").is_dir()


def test_a_new_file_is_durable_with_its_name(tmp_path, fd, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fdatasync", lambda fd: synced.append(Path(f"/proc/self/fd/{fd}").readlink().name))
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(Path(f"/proc/self/fd/{fd}").readlink().name))
    make_durable(fd, tmp_path / "file")
    assert synced == ["file", tmp_path.name]
