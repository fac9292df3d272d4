from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from core.errors import FlushFailedError
from core.store.confirmed import Confirmed
from tests.support.store import NOW_MS, open_store, publish, read_queue


@pytest.fixture
def store(tmp_path):
    store = open_store(tmp_path / "data")
    yield store
    store.close()


def test_flush_tells_readers_how_far_the_log_is_safe(store):
    publish(store, store.make_route(b"T", 0, b"", []), b"x", now_ms=NOW_MS + 3)
    assert Confirmed.open(store.data_dir).get()[0] == 0
    store.flush()
    assert Confirmed.open(store.data_dir).get() == (store.written_until, NOW_MS + 3)


def test_full_segments_are_synced_too_and_once(store, monkeypatch):
    route = store.make_route(b"T", 0, b"", [])
    store.flush()
    publish(store, route, *(b"x" * 30_000,) * 7)
    synced = []
    real = os.fdatasync
    monkeypatch.setattr(
        os, "fdatasync", lambda fd: (synced.append(str(Path(f"/proc/self/fd/{fd}").readlink())), real(fd))
    )
    store.flush()
    assert len({path for path in synced if "commitlog" in path}) == 4
    synced.clear()
    publish(store, route, b"y")
    store.flush()
    assert len([path for path in synced if "commitlog" in path]) == 1


def test_refused_sync_is_reported_and_promises_nothing(store, monkeypatch):
    publish(store, store.make_route(b"T", 0, b"", []), b"x")

    def refuse(_):
        raise OSError(5, "Input/output error")

    before = store.flushed_until
    monkeypatch.setattr(os, "fdatasync", refuse)
    with pytest.raises(FlushFailedError):
        store.flush()
    assert store.flushed_until == before
    monkeypatch.undo()


@pytest.mark.slow
def test_flush_and_prepare_on_another_thread_leave_the_log_whole(store):
    stop = threading.Event()
    errors = []

    def flush_on():
        try:
            while not stop.is_set():
                store.prepare()
                until = store.flush()
                assert until <= store.written_until
        except Exception as error:  # noqa: BLE001 - any of them fails the test
            errors.append(error)

    thread = threading.Thread(target=flush_on)
    thread.start()
    route = store.make_route(b"T", 0, b"", [b"%LMQ%a"])
    for k in range(3_000):
        publish(store, route, b"%d" % k * 100)
    stop.set()
    thread.join()
    assert not errors
    assert [int(body[: len(b"%d" % k)]) for k, body in read_queue(store, b"%LMQ%a")] == list(range(3_000))
