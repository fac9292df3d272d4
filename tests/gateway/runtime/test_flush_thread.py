from __future__ import annotations

import asyncio
import logging
import os
import threading
import time

import pytest

from core.errors import DiskFullError, FlushFailedError
from core.store.flush import Flush
from gateway.runtime import flush_thread
from gateway.runtime.flush_thread import TELL_NS, TOLD_AT_ONCE, FlushThread


class Store:
    """Flushes of one real file, with a step or without."""

    def __init__(self, path, step=None):
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT)
        self.step = step
        self.asked = []
        self.ended = []
        self.beside = []

    def begin_flush(self, *, is_all, fds_max):
        flush = Flush(0, 0)
        if self.fd >= 0:
            flush.add_file(self.fd)
        if self.step is not None:
            flush.add_step(self.step)
        flush.add_files_beside(self.beside, lambda: None)
        self.asked.append(is_all)
        return flush

    def end_flush(self):
        self.ended.append("done")

    def fail_flush(self, *, is_refused):
        self.ended.append("refused" if is_refused else "failed")


class Rounds:
    def __init__(self):
        self.calls = []
        self.wants_all = True
        self.company = 0  # looks until it has come
        self.looks = 0
        self.waiting = 0
        self.told = []
        self.turns = []  # of the loop, in which they were told
        self.turn = 0
        self.on_tell = lambda: None
        self.ended = asyncio.Event()

    def wants_company(self):
        self.looks += 1
        return self.looks <= self.company

    def begin_flush(self):
        self.calls.append("begin")
        return self.wants_all

    def end_flush(self, error, count_max):
        self.calls.append(error or "end")
        self.ended.set()
        return self.tell_more(count_max) if self.waiting else False

    def tell_more(self, count_max):
        self.told.append(min(self.waiting, count_max))
        self.turns.append(self.turn)
        self.waiting -= self.told[-1]
        self.on_tell()
        until_ns = time.monotonic_ns() + TELL_NS
        while time.monotonic_ns() < until_ns:
            pass
        return self.waiting > 0

    async def until_told(self):
        while self.waiting:
            self.turn += 1
            await asyncio.sleep(0)

    async def until_ended(self, count=1):
        while len(self.calls) < 2 * count:
            self.ended.clear()
            await asyncio.wait_for(self.ended.wait(), 20)


class Gate:
    """A step that waits until it may go on."""

    def __init__(self):
        self.entered = threading.Event()
        self.may_end = threading.Event()

    def __call__(self):
        self.entered.set()
        assert self.may_end.wait(20)


def make(store):
    rounds, took = Rounds(), []
    thread = FlushThread(store, rounds, asyncio.get_running_loop(), took.append)
    thread.start()
    return thread, rounds, took


@pytest.mark.asyncio
@pytest.mark.parametrize("step", [None, lambda: None])
async def test_a_request_is_answered_by_a_sync(tmp_path, step):
    store = Store(tmp_path / "f", step)
    thread, rounds, took = make(store)
    for count in range(1, 4):
        thread.request()
        await rounds.until_ended(count)
    assert rounds.calls == ["begin", "end"] * 3
    assert store.ended == ["done"] * 3
    assert len(took) == 3
    assert all(0 <= took_s < 5 for took_s in took)
    assert await thread.stop(5)


@pytest.mark.asyncio
async def test_files_beside_are_synced_before_the_flush_counts_as_done(tmp_path):
    store = Store(tmp_path / "f", lambda: None)
    store.beside = [os.open(tmp_path / name, os.O_RDWR | os.O_CREAT) for name in ("names", "copy")]
    thread, rounds, took = make(store)
    for count in range(1, 3):
        thread.request()
        await rounds.until_ended(count)
    assert store.ended == ["done"] * 2
    assert None not in took
    assert await thread.stop(5)


@pytest.mark.asyncio
@pytest.mark.parametrize("step", [None, lambda: None])
async def test_a_file_beside_that_the_disk_refuses_fails_the_flush(tmp_path, caplog, step):
    caplog.set_level(logging.CRITICAL, "gateway.runtime.flush_thread")
    store = Store(tmp_path / "f", step)
    store.beside = list(os.pipe())  # which cannot be synced
    thread, rounds, _ = make(store)
    thread.request()
    await rounds.until_ended()
    assert isinstance(rounds.calls[1], FlushFailedError)
    assert store.ended == ["refused"]
    assert await thread.stop(5)


@pytest.mark.asyncio
async def test_a_sync_that_wants_company_begins_when_it_has_come(tmp_path, monkeypatch):
    monkeypatch.setattr(flush_thread, "COMPANY_PERCENT", 10**12)  # as long as it takes
    monkeypatch.setattr(flush_thread, "COMPANY_NS_MAX", 1 << 60)
    thread, rounds, _ = make(Store(tmp_path / "f"))
    thread.request()
    await rounds.until_ended()
    rounds.company, rounds.looks = 3, 0
    for _ in range(3):
        thread.request()
        await asyncio.sleep(0)
        assert rounds.calls == ["begin", "end"]
    thread.request()
    await rounds.until_ended(2)
    assert rounds.looks == 4
    assert await thread.stop(5)


@pytest.mark.asyncio
async def test_a_sync_whose_company_does_not_come_begins_without_it(tmp_path):
    thread, rounds, _ = make(Store(tmp_path / "f"))
    rounds.company = 1 << 60
    for count in range(1, 4):
        thread.request()
        await rounds.until_ended(count)
    assert rounds.calls == ["begin", "end"] * 3
    assert await thread.stop(5)


@pytest.mark.asyncio
async def test_a_sync_that_took_very_long_does_not_have_the_next_one_wait_long_for_company(tmp_path, monkeypatch):
    monkeypatch.setattr(flush_thread, "COMPANY_PERCENT", 10**9)  # as if it had waited an hour for room
    thread, rounds, _ = make(Store(tmp_path / "f"))
    thread.request()
    await rounds.until_ended()
    rounds.company, rounds.looks = 1 << 60, 0
    thread.request()
    await rounds.until_ended(2)
    assert await thread.stop(5)


@pytest.mark.asyncio
async def test_requests_during_a_sync_are_answered_by_one_more(tmp_path):
    gate = Gate()
    thread, rounds, _ = make(Store(tmp_path / "f", gate))
    thread.request()
    assert await asyncio.to_thread(gate.entered.wait, 5)
    thread.request()
    thread.request()
    gate.may_end.set()
    await rounds.until_ended(2)
    assert rounds.calls == ["begin", "end", "begin", "end"]
    assert await thread.stop(5)


@pytest.mark.asyncio
async def test_store_is_asked_for_what_the_round_covers(tmp_path):
    store = Store(tmp_path / "f")
    thread, rounds, _ = make(store)
    for count, wants_all in enumerate([True, False], 1):
        rounds.wants_all = wants_all
        thread.request()
        await rounds.until_ended(count)
    assert store.asked == [True, False]
    assert await thread.stop(5)


def refuse():
    raise OSError(5, "input/output error")


@pytest.mark.asyncio
@pytest.mark.parametrize(("step", "ending"), [(refuse, "refused"), (None, "refused")])
async def test_failed_sync_is_told_as_an_error_of_the_core_and_ends_the_thread(tmp_path, caplog, step, ending):
    caplog.set_level(logging.CRITICAL, "gateway.runtime.flush_thread")
    store = Store(tmp_path / "f", step)
    if step is None:
        store.fd, _ = os.pipe()  # which cannot be synced
    thread, rounds, took = make(store)
    thread.request()
    await rounds.until_ended()
    assert took == [None]
    assert isinstance(rounds.calls[1], FlushFailedError)
    assert store.ended == [ending]
    thread.request()
    await asyncio.sleep(0)
    assert len(rounds.calls) == 2
    assert await thread.stop(5)


class FullDisk:
    """A step that finds no room until there is some."""

    def __init__(self):
        self.tries = 0
        self.tried = threading.Event()
        self.has_room = False

    def __call__(self):
        self.tries += 1
        self.tried.set()
        if not self.has_room:
            raise DiskFullError("definitions.db")


@pytest.mark.asyncio
async def test_what_finds_no_room_waits_for_some_and_is_safe_then(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(flush_thread, "ROOM_WAIT_S", 0.001)
    caplog.set_level(logging.INFO, "gateway.runtime.flush_thread")
    step = FullDisk()
    store = Store(tmp_path / "f", step)
    thread, rounds, took = make(store)
    thread.request()
    assert await asyncio.to_thread(step.tried.wait, 5)
    assert (rounds.calls, store.ended) == (["begin"], [])
    step.has_room = True
    await rounds.until_ended()
    assert (rounds.calls, store.ended, len(took)) == (["begin", "end"], ["done"], 1)
    assert step.tries >= 2
    said = "what is to be safe on disk waits for room: no space left for definitions.db"
    assert [record.getMessage() for record in caplog.records] == [said, "what waited for room is safe on disk"]
    thread.request()
    await rounds.until_ended(2)
    assert await thread.stop(5)


@pytest.mark.asyncio
async def test_stop_does_not_wait_for_room(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(flush_thread, "ROOM_WAIT_S", 0.001)
    caplog.set_level(logging.CRITICAL, "gateway.runtime.flush_thread")
    step = FullDisk()
    store = Store(tmp_path / "f", step)
    thread, rounds, took = make(store)
    thread.request()
    assert await asyncio.to_thread(step.tried.wait, 5)
    assert await thread.stop(5)
    assert isinstance(rounds.calls[1], DiskFullError)
    assert (store.ended, took) == (["failed"], [None])


@pytest.mark.asyncio
async def test_failure_elsewhere_ends_syncs_and_is_told_once(tmp_path):
    thread, rounds, took = make(Store(tmp_path / "f"))
    error = FlushFailedError("input/output error")
    thread.fail(error)
    thread.fail(error)
    thread.request()
    await asyncio.sleep(0)
    assert rounds.calls == [error]
    assert took == [None]
    assert await thread.stop(5)


@pytest.mark.asyncio
async def test_stop_waits_for_the_sync_under_way_and_no_longer_than_it_is_told(tmp_path):
    gate = Gate()
    thread, rounds, _ = make(Store(tmp_path / "f", gate))
    thread.request()
    assert await asyncio.to_thread(gate.entered.wait, 5)
    assert not await thread.stop(0.05)
    gate.may_end.set()
    assert await thread.stop(5)
    await rounds.until_ended(0)


@pytest.mark.asyncio
async def test_stop_of_a_thread_that_was_never_started():
    thread = FlushThread(Store("/dev/null"), Rounds(), asyncio.get_running_loop(), lambda took_s: None)
    assert await thread.stop(5)


@pytest.mark.asyncio
async def test_a_sync_that_ends_while_the_loop_waits_for_the_stop_is_told(tmp_path):
    gate = Gate()
    store = Store(tmp_path / "f", gate)
    thread, rounds, _ = make(store)
    thread.request()
    assert await asyncio.to_thread(gate.entered.wait, 5)
    gate.may_end.set()
    assert await thread.stop(5)
    assert (rounds.calls, store.ended) == (["begin", "end"], ["done"])


@pytest.mark.asyncio
async def test_a_sync_that_the_thread_did_not_begin_counts_as_failed(tmp_path):
    for number in range(8):  # the thread looks before the stop, or after it
        store = Store(tmp_path / f"{number}")
        thread, rounds, _ = make(store)
        thread.request()
        assert await thread.stop(5)
        assert (rounds.calls, store.ended) in ((["begin"], ["failed"]), (["begin", "end"], ["done"]))


@pytest.mark.asyncio
async def test_many_that_waited_are_told_in_several_turns_and_the_next_sync_comes_after_them(tmp_path):
    thread, rounds, _ = make(Store(tmp_path / "f"))
    rounds.waiting = 3 * TOLD_AT_ONCE
    rounds.on_tell = thread.request
    await_told = asyncio.create_task(rounds.until_told())
    thread.request()
    await asyncio.wait_for(await_told, 20)
    assert rounds.told == [TOLD_AT_ONCE] * 3
    assert len(set(rounds.turns)) == 3  # each is as much work as a turn may have
    assert rounds.calls[:2] == ["begin", "end"]
    await rounds.until_ended(2)
    assert rounds.calls == ["begin", "end", "begin", "end"]
    await thread.stop(5)


@pytest.mark.asyncio
async def test_a_stop_tells_the_rest_of_those_that_waited(tmp_path):
    store = Store(tmp_path / "f")
    thread, rounds, _ = make(store)
    rounds.waiting = 5 * TOLD_AT_ONCE
    thread.request()
    await rounds.until_ended()
    assert rounds.waiting
    assert await thread.stop(5)
    assert not rounds.waiting
    assert store.ended == ["done"]
