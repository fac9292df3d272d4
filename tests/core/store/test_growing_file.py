"""A mapped file that grows."""

from __future__ import annotations

import os

import pytest

from core.errors import DiskFullError
from core.store.growing_file import STEP_BYTES, GrowingFile
from tests.support.files import file_size_limit


def test_a_new_file_is_zeros_with_blocks(tmp_path):
    file = GrowingFile(tmp_path / "file")
    assert bytes(file.map) == bytes(STEP_BYTES)
    assert (tmp_path / "file").stat().st_blocks * 512 >= STEP_BYTES
    file.close()


def test_stores_reach_the_file_without_a_sync(tmp_path):
    file = GrowingFile(tmp_path / "file")
    file.map[10:13] = b"abc"
    assert (tmp_path / "file").read_bytes()[10:13] == b"abc"
    file.sync()
    file.close()


def test_growing_keeps_the_content_and_old_views(tmp_path):
    file = GrowingFile(tmp_path / "file")
    view = memoryview(file.map)
    view[0] = 7
    file.grow(3 * STEP_BYTES + 1)
    assert file.size == 4 * STEP_BYTES
    assert file.map[0] == 7
    view[1] = 8
    assert file.map[1] == 8
    file.grow(1)
    assert file.size > 4 * STEP_BYTES
    file.close()


def test_a_file_of_another_size_is_rounded_up(tmp_path):
    (tmp_path / "file").write_bytes(b"x" * (STEP_BYTES + 1))
    file = GrowingFile(tmp_path / "file")
    assert file.size == 2 * STEP_BYTES
    assert bytes(file.map[: STEP_BYTES + 2]) == b"x" * (STEP_BYTES + 1) + b"\0"
    file.close()


def test_a_sparse_file_gets_its_blocks(tmp_path):
    (tmp_path / "file").touch()
    os.truncate(tmp_path / "file", 4 * STEP_BYTES)
    GrowingFile(tmp_path / "file").close()
    assert (tmp_path / "file").stat().st_blocks * 512 >= 4 * STEP_BYTES


def test_no_room_leaves_the_file_as_it_was(tmp_path):
    with file_size_limit(1_000), pytest.raises(DiskFullError):
        GrowingFile(tmp_path / "file")
    file = GrowingFile(tmp_path / "file")
    file.map[0] = 1
    with file_size_limit(STEP_BYTES), pytest.raises(DiskFullError):
        file.grow(2 * STEP_BYTES)
    assert (file.size, len(file.map), file.map[0]) == (STEP_BYTES, STEP_BYTES, 1)
    assert (tmp_path / "file").stat().st_size == STEP_BYTES
    file.close()
