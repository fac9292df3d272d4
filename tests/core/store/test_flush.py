from __future__ import annotations

import os
import queue
import shutil
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


def folder_syncs(monkeypatch):
    """Return a list that gets the name of each folder that is synced from now on."""
    synced = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.append(Path(f"/proc/self/fd/{fd}").readlink().name), real(fd)))
    return synced


def test_the_name_of_the_first_segment_is_synced_before_anything_in_it_is_safe(store, monkeypatch):
    route = store.make_route(b"T", 0, b"", [])
    synced = folder_syncs(monkeypatch)
    publish(store, route, b"the first message since the log was begun")
    flush = store.begin_flush(is_all=False)
    flush.run()
    assert "commitlog" in synced
    store.end_flush()
    synced.clear()
    publish(store, route, b"the next")
    assert not store.begin_flush(is_all=False).has_steps
    store.fail_flush(is_refused=False)
    assert store.begin_flush(is_all=False).has_steps


def test_full_segments_of_a_killed_process_are_synced_before_their_messages_are_said_to_be_safe(tmp_path, monkeypatch):
    store = open_store(tmp_path / "killed")
    publish(store, store.make_route(b"T", 0, b"", []), *(b"x" * 30_000,) * 7)
    shutil.copytree(tmp_path / "killed", tmp_path / "data")
    store.close()
    synced = []
    real = os.fdatasync
    monkeypatch.setattr(
        os, "fdatasync", lambda fd: (synced.append(Path(f"/proc/self/fd/{fd}").readlink().name), real(fd))
    )
    store = open_store(tmp_path / "data")
    assert {path.name for path in (tmp_path / "data" / "commitlog").iterdir()} <= set(synced)
    store.close()


def test_queue_names_are_on_disk_with_what_is_said_of_the_queues(store):
    store.table("sessions").put(b"c", b"%LMQ%a")
    store.intern_queue(b"%LMQ%a")
    assert store.needs_flush()
    store.flush()
    assert not store.needs_flush()
    assert b"%LMQ%a" in (store.data_dir / "index" / "queues").read_bytes()


def test_what_was_confirmed_is_synced_with_everything_and_at_the_end(tmp_path, monkeypatch):
    store = open_store(tmp_path)
    synced = []
    real = os.fdatasync
    monkeypatch.setattr(
        os, "fdatasync", lambda fd: (synced.append(Path(f"/proc/self/fd/{fd}").readlink().name), real(fd))
    )
    publish(store, store.make_route(b"T", 0, b"", []), b"x")
    store.flush()
    synced.clear()
    store.flush()
    assert synced == ["confirmed"]
    synced.clear()
    store.flush()
    assert synced == []
    publish(store, store.make_route(b"T", 0, b"", []), b"x")
    store.close()
    assert synced[-1] == "confirmed"


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


def test_after_a_refused_sync_nothing_is_said_to_be_safe_any_more(tmp_path, monkeypatch):
    store = open_store(tmp_path / "data")
    publish(store, store.make_route(b"T", 0, b"", []), b"x")
    store.begin_flush()
    before = Confirmed.open(store.data_dir).get()
    store.fail_flush(is_refused=True)
    store.close()  # the next sync would succeed: the system forgets what it could not write
    assert Confirmed.open(tmp_path / "data").get() == before


def test_flush_of_the_log_alone_leaves_the_rest_to_the_next_one(store):
    publish(store, store.make_route(b"T", 0, b"", []), b"first of its segment")
    places = store.places("p")
    slot = places.acquire()
    store.flush()
    places.set(slot, 7)
    publish(store, store.make_route(b"T", 0, b"", []), b"x")
    flush = store.begin_flush(is_all=False)
    assert not flush.has_steps
    flush.run()
    store.end_flush()
    assert store.flushed_until == store.written_until
    assert places.dirty
    assert store.needs_flush()
    store.flush()
    assert not store.needs_flush()


def test_what_a_failed_flush_was_to_cover_is_covered_by_the_next(store, monkeypatch):
    route = store.make_route(b"T", 0, b"", [])
    places = store.places("p")
    slot = places.acquire()
    store.flush()
    publish(store, route, *(b"x" * 30_000,) * 7)
    places.set(slot, 7)
    failed = store.begin_flush()
    store.fail_flush(is_refused=False)
    assert places.dirty
    publish(store, route, *(b"y" * 30_000,) * 3)
    again = store.begin_flush()
    assert set(failed.fds) <= set(again.fds)
    assert again.has_steps  # the names in the log's folder are not sure
    again.run()
    store.end_flush()
    assert not store.needs_flush()


@pytest.mark.slow
def test_flush_and_prepare_on_another_thread_leave_the_log_whole(store):
    flushes = queue.SimpleQueue()
    done = queue.SimpleQueue()
    errors = []

    def work_on():
        try:
            while (flush := flushes.get()) is not None:
                store.prepare()
                flush.run()
                done.put(flush)
        except Exception as error:  # noqa: BLE001 - any of them fails the test
            errors.append(error)
            done.put(None)

    thread = threading.Thread(target=work_on)
    thread.start()
    route = store.make_route(b"T", 0, b"", [b"%LMQ%a"])
    flushes.put(store.begin_flush())
    for k in range(3_000):
        publish(store, route, b"%d" % k * 100)
        if not done.empty() and (flush := done.get()) is not None:
            store.end_flush()
            assert flush.until == store.flushed_until <= store.written_until
            flushes.put(store.begin_flush())
    flushes.put(None)
    thread.join()
    assert not errors
    assert [int(body[: len(b"%d" % k)]) for k, body in read_queue(store, b"%LMQ%a")] == list(range(3_000))
