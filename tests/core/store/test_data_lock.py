"""The lock on a data folder and the format in it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from core.errors import DataFolderInUseError, DataFolderUnusableError
from core.store.data_lock import FORMAT, DataLock
from tests.support.crashes import crash_everywhere

HOLD = "import pathlib, sys; from core.store.data_lock import DataLock; "
HOLD += "DataLock.acquire(pathlib.Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"


def test_the_folder_is_made_with_its_format(tmp_path):
    lock = DataLock.acquire(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b" / "format").read_text() == f"{FORMAT}\n"
    assert (tmp_path / "a" / "b" / "lock").read_text() == f"{os.getpid()}\n"
    lock.release()
    lock.release()


def test_a_second_holder_is_told_who_the_first_is(tmp_path):
    lock = DataLock.acquire(tmp_path)
    with pytest.raises(DataFolderInUseError) as caught:
        DataLock.acquire(tmp_path)
    assert caught.value.pid == os.getpid()
    lock.release()
    DataLock.acquire(tmp_path).release()


def test_a_holder_whose_number_is_unreadable_still_holds(tmp_path):
    lock = DataLock.acquire(tmp_path)
    (tmp_path / "lock").write_text("?")
    with pytest.raises(DataFolderInUseError) as caught:
        DataLock.acquire(tmp_path)
    assert caught.value.pid is None
    lock.release()


@pytest.mark.slow
def test_a_killed_holder_lets_go(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(DataFolderInUseError) as caught:
            DataLock.acquire(tmp_path)
        assert caught.value.pid == process.pid
        process.kill()
        process.wait()
    DataLock.acquire(tmp_path).release()


def test_another_version_is_refused_and_left_unlocked(tmp_path):
    (tmp_path / "format").write_text("lmq-gateway 99\n")
    for _ in range(2):
        with pytest.raises(DataFolderUnusableError, match="lmq-gateway 99"):
            DataLock.acquire(tmp_path)


def test_an_empty_format_is_written_anew(tmp_path):
    (tmp_path / "format").write_text("")
    DataLock.acquire(tmp_path).release()
    assert (tmp_path / "format").read_text() == f"{FORMAT}\n"


def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "data").write_text("")
    with pytest.raises(DataFolderUnusableError) as caught:
        DataLock.acquire(tmp_path / "data")
    assert caught.value.path == str(tmp_path / "data")
    assert str(caught.value).endswith("data: it is a file")


def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "lock").mkdir()
    with pytest.raises(DataFolderUnusableError, match="directory"):
        DataLock.acquire(tmp_path)


def test_a_crash_at_any_step_leaves_a_folder_that_can_be_locked(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    for _ in crash_everywhere(folder, lambda: DataLock.acquire(folder)):
        DataLock.acquire(folder).release()
        assert (folder / "format").read_text() == f"{FORMAT}\n"
