from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from core.errors import DataFolderUnusableError, DiskFullError
from core.store import mapped_file
from core.store.mapped_file import MappedFile, map_read_only

SIZE = 256 * 1024


def test_new_file_has_its_room_and_holds_zeros(tmp_path):
    file = MappedFile.create(tmp_path / "f", SIZE)
    assert (tmp_path / "f").stat().st_size == SIZE
    assert file.disk_bytes == SIZE
    assert bytes(file.view) == bytes(SIZE)


def test_bytes_are_shared_with_whoever_maps_the_file(tmp_path):
    file = MappedFile.create(tmp_path / "f", SIZE)
    other = MappedFile.open(tmp_path / "f", is_writable=False)
    file.view[7:10] = b"abc"
    os.fdatasync(file.fd)
    assert bytes(other.view[7:10]) == b"abc"
    with pytest.raises(TypeError):
        other.view[0] = 1


def test_views_outlive_the_file(tmp_path):
    file = MappedFile.create(tmp_path / "f", SIZE)
    view = file.view
    view[0] = 5
    fd = file.fd
    file.close()
    file.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)
    del file
    (tmp_path / "f").unlink()
    assert view[0] == 5


def test_full_disk_leaves_nothing_behind(tmp_path, monkeypatch):
    def no_room(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", no_room)
    with pytest.raises(DiskFullError):
        MappedFile.create(tmp_path / "f", SIZE)
    assert list(tmp_path.iterdir()) == []


def test_missing_and_empty_files_cannot_be_mapped(tmp_path):
    with pytest.raises(DataFolderUnusableError):
        MappedFile.open(tmp_path / "f", is_writable=False)
    (tmp_path / "f").touch()
    with pytest.raises(DataFolderUnusableError):
        MappedFile.open(tmp_path / "f", is_writable=True)


def test_populating_and_letting_go_keep_the_bytes(tmp_path):
    file = MappedFile.create(tmp_path / "f", SIZE)
    file.view[5000] = 9
    file.populate(4097, SIZE)
    file.let_go(1, SIZE - 1)
    assert file.view[5000] == 9
    assert file.view[SIZE - 1] == 0


def test_punched_pages_read_as_zeros_and_take_no_room(tmp_path):
    file = MappedFile.create(tmp_path / "f", SIZE)
    file.view[:] = b"x" * SIZE
    os.fdatasync(file.fd)
    file.punch(5000)
    assert bytes(file.view[:8192]) == b"x" * 8192
    assert file.size == SIZE
    if file.disk_bytes < SIZE:  # not every file system can
        assert bytes(file.view[8192:]) == bytes(SIZE - 8192)


def test_data_ranges_cover_all_that_was_written(tmp_path):
    file = MappedFile.create(tmp_path / "f", SIZE)
    file.view[100_000] = 1
    assert any(start <= 100_000 < end for start, end in file.data_ranges(0))
    assert all(start >= 120_000 for start, _ in file.data_ranges(120_000))


def test_file_that_finds_too_little_room_takes_none_of_it(tmp_path, monkeypatch):
    def refuse(*_):
        raise AssertionError("the last room was taken from others")

    monkeypatch.setattr(mapped_file, "free_bytes", lambda path: SIZE - 1)
    monkeypatch.setattr(os, "posix_fallocate", refuse)
    with pytest.raises(DiskFullError):
        MappedFile.create(tmp_path / "f", SIZE)
    assert list(tmp_path.iterdir()) == []


def test_read_only_mapping_holds_no_descriptor_and_goes_with_its_last_view(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(bytes(range(256)) * 64)
    with path.open("rb") as file:
        view = map_read_only(file.fileno(), 256 * 64)
    assert not [name for name in _open_names() if name == str(path)]
    part = view[8:24].cast("q")
    del view
    assert part.tobytes() == bytes(range(8, 24))
    with pytest.raises(TypeError):
        part[0] = 1
    assert str(path) in Path("/proc/self/maps").read_text()
    del part
    assert str(path) not in Path("/proc/self/maps").read_text()


def test_what_cannot_be_mapped_says_so(tmp_path):
    read, write = os.pipe()
    with pytest.raises(OSError, match="No such device"):
        map_read_only(read, 4096)
    os.close(read)
    os.close(write)


def _open_names():
    for entry in Path("/proc/self/fd").iterdir():
        try:
            yield str(entry.readlink())
        except FileNotFoundError:  # what lists them
            continue
