"""What is read of a server from outside."""

from __future__ import annotations

import os
import signal

import pytest

from tests.benchmarks.scenarios.peers import PEERS, Peer
from tests.benchmarks.scenarios.server import Server, family, spawn, used_bytes


def test_disk_is_counted_by_pages_that_hold_something(tmp_path):
    path = tmp_path / "log"
    with path.open("wb") as file:
        file.write(b"x" * 5_000)
        file.write(bytes(100_000))
        file.write(b"y" * 10)
        os.truncate(file.fileno(), 1 << 30)
    assert 5_000 < used_bytes(path) <= 4 * 4_096


def test_disk_of_a_file_that_is_gone_or_empty_is_nothing(tmp_path):
    (tmp_path / "empty").touch()
    assert used_bytes(tmp_path / "empty") == used_bytes(tmp_path / "gone") == 0


def test_family_of_a_process_begins_with_itself():
    assert family(os.getpid())[0] == os.getpid()


def test_server_is_stopped_when_its_start_is_cut_short():
    made = []

    def launch(folder, ports):
        made.append(Server(spawn(["sleep", "60"], folder), folder, {}))
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        return made[0]

    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            Peer("sleeper", frozenset({"mqtt"}), lambda: "1", launch).start()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert not made[0].is_up()
    assert not made[0].folder.exists()


@pytest.mark.slow
def test_relay_starts_is_watched_and_stops():
    server = PEERS["null"].start()
    try:
        assert server.is_up()
        assert server.cpu_s() > 0
        assert server.private_bytes() > 1_000_000
    finally:
        server.stop()
    assert not server.is_up()
    assert not server.folder.exists()
