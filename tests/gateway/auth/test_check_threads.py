from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from gateway.auth.check_threads import THREADS_MAX, CheckThreads


@pytest.mark.asyncio
async def test_work_runs_beside_the_loop_and_its_answer_comes_on_the_loop():
    threads = CheckThreads(asyncio.get_running_loop())
    came = asyncio.get_running_loop().create_future()
    ran_on = []

    def work():
        ran_on.append(threading.get_ident())
        return True

    threads.run(work, lambda answer: came.set_result((answer, threading.get_ident())))
    assert await came == (True, threading.get_ident())
    assert ran_on != [threading.get_ident()]
    threads.stop()


@pytest.mark.asyncio
async def test_no_more_run_at_once_than_there_are_threads():
    threads = CheckThreads(asyncio.get_running_loop())
    gate, began = threading.Event(), threading.Semaphore(0)
    running = []
    done = asyncio.get_running_loop().create_future()
    answers = []

    def work():
        running.append(1)
        began.release()
        gate.wait(10)
        return True

    def note(answer):
        answers.append(answer)
        if len(answers) == THREADS_MAX + 2:
            done.set_result(None)

    for _ in range(THREADS_MAX + 2):
        threads.run(work, note)
    for _ in range(THREADS_MAX):
        assert await asyncio.to_thread(began.acquire, timeout=10)
    assert len(running) == THREADS_MAX
    gate.set()
    await done
    threads.stop()


@pytest.mark.asyncio
async def test_work_that_fails_is_told_as_none(caplog):
    caplog.set_level(logging.CRITICAL + 1)
    threads = CheckThreads(asyncio.get_running_loop())
    came = asyncio.get_running_loop().create_future()
    threads.run(lambda: bool(1 // 0), came.set_result)
    assert await came is None
    threads.stop()


@pytest.mark.asyncio
async def test_nobody_is_told_after_the_stop():
    threads = CheckThreads(asyncio.get_running_loop())
    began, gate, ended = threading.Event(), threading.Event(), threading.Event()
    told = []

    def work():
        began.set()
        gate.wait(10)
        ended.set()
        return True

    threads.run(work, told.append)
    assert await asyncio.to_thread(began.wait, 10)  # else the stop forgets it before it begins
    threads.stop()
    threads.run(work, told.append)
    gate.set()
    assert await asyncio.to_thread(ended.wait, 10)
    await asyncio.to_thread(threads._pool.shutdown)
    await asyncio.sleep(0)
    assert told == []


@pytest.mark.asyncio
async def test_call_comes_later():
    threads = CheckThreads(asyncio.get_running_loop())
    came = asyncio.Event()
    threads.call_later(1, came.set)
    assert not came.is_set()
    await came.wait()
    threads.stop()
