from __future__ import annotations

import os
import threading
from array import array

import pytest

from core.store.sync_plan import FDS_BESIDE_MAX
from gateway.runtime.sync_calls import (
    BESIDE,
    BESIDE_MAX,
    COUNT,
    COUNT_BESIDE,
    ERROR,
    FILES,
    HAS_STEPS,
    STOPS,
    TOOK_NS,
    WORK_SLOTS,
    sync_beside,
    sync_files,
)


class Scene:
    """A thread that syncs, and what it is told by."""

    def __init__(self):
        self.asked_fd = os.eventfd(0)
        self.done_fd = os.eventfd(0)
        self.work = array("q", bytes(8 * WORK_SLOTS))
        self.returned = []
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        self.returned.append(sync_files(self.asked_fd, self.done_fd, self.work))

    def ask(self, *fds, beside=(), has_steps=False):
        self.work[COUNT] = len(fds)
        self.work[COUNT_BESIDE] = len(beside)
        for at, fd in enumerate(beside):
            self.work[BESIDE + at] = fd
        self.work[HAS_STEPS] = has_steps
        for at, fd in enumerate(fds):
            self.work[FILES + at] = fd
        os.eventfd_write(self.asked_fd, 1)

    def close(self):
        if self.thread.is_alive():
            self.work[STOPS] = 1
            os.eventfd_write(self.asked_fd, 1)
        self.thread.join(20)
        os.close(self.asked_fd)
        os.close(self.done_fd)


@pytest.fixture
def scene():
    scene = Scene()
    yield scene
    scene.close()


@pytest.fixture
def synced(monkeypatch):
    calls = []
    real = os.fdatasync
    monkeypatch.setattr(os, "fdatasync", lambda fd: (calls.append(fd), real(fd)))
    return calls


def test_each_round_syncs_its_files_in_order_and_says_so(scene, synced, tmp_path):
    fds = [os.open(tmp_path / str(number), os.O_RDWR | os.O_CREAT) for number in range(3)]
    for round_fds in (fds, fds[::-1], []):
        synced.clear()
        scene.ask(*round_fds)
        assert os.eventfd_read(scene.done_fd) == 1
        assert synced == round_fds
        assert scene.work[TOOK_NS] >= 0
    assert scene.thread.is_alive()
    for fd in fds:
        os.close(fd)


def test_files_beside_are_synced_before_a_round_is_done(scene, synced, tmp_path):
    fds = [os.open(tmp_path / str(number), os.O_RDWR | os.O_CREAT) for number in range(3)]
    scene.ask(fds[0], beside=fds[1:])
    assert os.eventfd_read(scene.done_fd) == 1
    assert sorted(synced) == fds
    for fd in fds:
        os.close(fd)


def test_files_beside_a_round_with_steps_are_synced_when_the_caller_has_done_those(scene, synced, tmp_path):
    fd = os.open(tmp_path / "names", os.O_RDWR | os.O_CREAT)
    scene.ask(beside=[fd], has_steps=True)
    scene.thread.join(20)
    sync_beside(scene.work)
    assert (synced, scene.work[ERROR]) == ([fd], 0)
    os.close(fd)


def test_a_refused_file_beside_is_an_error_of_the_round(scene, synced):
    reader, writer = os.pipe()
    scene.ask(beside=[reader])
    scene.thread.join(20)
    assert scene.returned == [True]
    assert scene.work[ERROR] != 0
    os.close(reader)
    os.close(writer)


def test_there_is_room_for_as_many_files_beside_as_a_plan_has():
    assert BESIDE_MAX >= FDS_BESIDE_MAX


def test_a_round_with_steps_is_the_callers_to_end(scene):
    scene.ask(has_steps=True)
    scene.thread.join(20)
    assert scene.returned == [True]


def test_a_refused_file_ends_the_round_with_its_error(scene, synced):
    reader, writer = os.pipe()
    scene.ask(reader, writer)
    scene.thread.join(20)
    assert scene.returned == [True]
    assert scene.work[ERROR] != 0
    assert synced == [reader]
    os.close(reader)
    os.close(writer)


def test_it_ends_when_it_is_told_to(scene):
    scene.work[STOPS] = 1
    os.eventfd_write(scene.asked_fd, 1)
    scene.thread.join(20)
    assert scene.returned == [False]
