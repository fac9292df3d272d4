from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from core.errors import DiskFullError, FlushFailedError
from gateway.disk_threads import FlushThread, PrepareThread


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
    thread = PrepareThread(log, asyncio.get_running_loop(), failures.append)
    thread.start()
    for _ in range(3):
        assert await asyncio.to_thread(log.prepared.wait, 5)
        log.prepared.clear()
    assert await asyncio.to_thread(thread.stop, 5)
    assert failures == []
    assert [record.levelname for record in caplog.records] == ["WARNING"]


@pytest.mark.asyncio
async def test_disk_that_refuses_is_told_on_the_loop_and_ends_the_thread(caplog):
    caplog.set_level(logging.CRITICAL, "gateway.disk_threads")
    told = asyncio.get_running_loop().create_future()
    thread = PrepareThread(Log(OSError(5, "input/output error")), asyncio.get_running_loop(), told.set_result)
    thread.start()
    assert isinstance(await asyncio.wait_for(told, 5), FlushFailedError)
    assert await asyncio.to_thread(thread.stop, 5)
