from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from core.errors import DiskFullError, FlushFailedError
from core.room import Room
from gateway import disk_threads
from gateway.disk_threads import FlushThread, PrepareThread, RoomWatch


class Store:
    def __init__(self):
        self.flushes = 0
        self.error = None
        self.may_end = threading.Event()
        self.may_end.set()
        self.entered = threading.Event()

    def flush(self):
        self.entered.set()
        assert self.may_end.wait(5)
        if self.error is not None:
            raise self.error
        self.flushes += 1
        return 0


class Rounds:
    def __init__(self):
        self.calls = []
        self.ended = asyncio.Event()

    def begin_flush(self):
        self.calls.append("begin")

    def end_flush(self, error):
        self.calls.append(error or "end")
        self.ended.set()


async def _ended(rounds, count=1):
    while len(rounds.calls) < 2 * count:
        rounds.ended.clear()
        await asyncio.wait_for(rounds.ended.wait(), 5)


@pytest.mark.asyncio
async def test_requests_of_one_turn_are_answered_by_one_sync():
    store, rounds, took = Store(), Rounds(), []
    thread = FlushThread(store, rounds, asyncio.get_running_loop(), took.append)
    thread.start()
    for _ in range(5):
        thread.request()
    await _ended(rounds)
    assert rounds.calls == ["begin", "end"]
    assert len(took) == store.flushes == 1
    assert thread.stop(5)


@pytest.mark.asyncio
async def test_requests_during_a_sync_are_answered_by_one_more():
    store, rounds = Store(), Rounds()
    thread = FlushThread(store, rounds, asyncio.get_running_loop(), lambda took_s: None)
    store.may_end.clear()
    thread.start()
    thread.request()
    await asyncio.sleep(0)
    assert await asyncio.to_thread(store.entered.wait, 5)
    thread.request()
    thread.request()
    store.may_end.set()
    await _ended(rounds, 2)
    assert rounds.calls == ["begin", "end", "begin", "end"]
    assert thread.stop(5)


@pytest.mark.asyncio
@pytest.mark.parametrize("error", [OSError(5, "input/output error"), DiskFullError("segment")])
async def test_failed_sync_is_told_as_an_error_of_the_core_and_ends_the_thread(error, caplog):
    caplog.set_level(logging.CRITICAL, "gateway.disk_threads")
    store, rounds, took = Store(), Rounds(), []
    store.error = error
    thread = FlushThread(store, rounds, asyncio.get_running_loop(), took.append)
    thread.start()
    thread.request()
    await _ended(rounds)
    assert took == [None]
    assert isinstance(rounds.calls[1], FlushFailedError | DiskFullError)
    assert await asyncio.to_thread(thread.stop, 5)


@pytest.mark.asyncio
async def test_failure_elsewhere_ends_syncs_and_is_told_once():
    store, rounds, took = Store(), Rounds(), []
    thread = FlushThread(store, rounds, asyncio.get_running_loop(), took.append)
    thread.start()
    error = FlushFailedError("input/output error")
    thread.fail(error)
    thread.fail(error)
    thread.request()
    await asyncio.sleep(0)
    assert rounds.calls == [error]
    assert took == [None]
    assert await asyncio.to_thread(thread.stop, 5)


class Disk:
    """Free room that a test sets, and what a watch tells of it."""

    def __init__(self, free_bytes=1_000):
        self.free_bytes = free_bytes
        self.error = None
        self.looks = 0
        self.room = Room(100)
        self.told = []
        self.heard = asyncio.Event()
        self.watch = RoomWatch(self.room, self.measure, asyncio.get_running_loop(), self.note)

    def measure(self):
        self.looks += 1
        if self.error is not None:
            raise self.error
        return self.free_bytes

    def note(self, free_bytes, is_full):
        if self.room.note(free_bytes, is_full=is_full, now_ms=0):
            self.told.append((free_bytes, is_full))
        self.heard.set()

    async def until_told(self, *what):
        while self.told != [*what]:
            self.heard.clear()
            await asyncio.wait_for(self.heard.wait(), 5)


class Log:
    """A store whose `prepare` fails as it is told."""

    def __init__(self, error=None):
        self.written_until = 0
        self.prepared = threading.Event()
        self.error = error

    def prepare(self):
        self.prepared.set()
        if self.error is not None:
            raise self.error


@pytest.mark.asyncio
async def test_want_of_room_ahead_of_the_writer_ends_nothing_and_is_said_once(caplog):
    log, failures = Log(DiskFullError("segment")), []
    disk = Disk()
    thread = PrepareThread(log, asyncio.get_running_loop(), failures.append, disk.watch)
    thread.start()
    for _ in range(3):
        assert await asyncio.to_thread(log.prepared.wait, 5)
        log.prepared.clear()
    assert await asyncio.to_thread(thread.stop, 5)
    assert failures == []
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    await disk.until_told((1_000, True))


@pytest.mark.asyncio
async def test_disk_that_refuses_is_told_on_the_loop_and_ends_the_thread(caplog):
    caplog.set_level(logging.CRITICAL, "gateway.disk_threads")
    told = asyncio.get_running_loop().create_future()
    log = Log(OSError(5, "input/output error"))
    thread = PrepareThread(log, asyncio.get_running_loop(), told.set_result, Disk().watch)
    thread.start()
    assert isinstance(await asyncio.wait_for(told, 5), FlushFailedError)
    assert await asyncio.to_thread(thread.stop, 5)


@pytest.mark.asyncio
async def test_loop_is_told_when_the_room_gets_low_and_when_it_is_back():
    disk = Disk()
    disk.watch.look_first()
    assert disk.told == []
    thread = PrepareThread(Log(), asyncio.get_running_loop(), lambda error: None, disk.watch)
    thread.start()
    disk.free_bytes = 99
    await disk.until_told((99, False))
    disk.free_bytes = 200
    await disk.until_told((99, False), (200, False))
    assert disk.room.free_bytes == 200
    assert await asyncio.to_thread(thread.stop, 5)


@pytest.mark.asyncio
async def test_room_that_is_low_at_the_start_is_told_before_anything_else():
    disk = Disk(99)
    disk.watch.look_first()
    assert disk.told == [(99, False)]


@pytest.mark.asyncio
async def test_disk_is_looked_at_a_few_times_in_a_second_however_often_it_is_asked():
    disk = Disk()
    for _ in range(1_000):
        disk.watch.look(0, is_full=False)
    assert disk.looks == 1
    disk.watch.look(0, is_full=True)
    assert disk.looks == 2


@pytest.mark.asyncio
async def test_disk_is_looked_at_again_when_a_part_of_its_least_room_was_written():
    disk = Disk()
    disk.watch.look(1_000, is_full=False)
    for written_until in range(1_000, 1_007):
        disk.watch.look(written_until, is_full=False)
    assert disk.looks == 1
    disk.watch.look(1_007, is_full=False)  # a sixteenth of 100
    assert disk.looks == 2


@pytest.mark.asyncio
async def test_disk_that_cannot_be_looked_at_changes_nothing_and_is_said_once(caplog, monkeypatch):
    disk = Disk(99)
    disk.watch.look_first()
    disk.error = OSError(5, "input/output error")
    for now_s in range(10):
        monkeypatch.setattr(disk_threads.time, "monotonic", lambda now_s=now_s: 10**9 + now_s)
        disk.watch.look(0, is_full=False)
    await asyncio.sleep(0)
    assert disk.told == [(99, False)]
    assert [record.levelname for record in caplog.records] == ["WARNING"]
