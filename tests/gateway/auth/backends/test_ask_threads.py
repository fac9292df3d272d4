from __future__ import annotations

import asyncio
import threading

import pytest

from gateway.auth.backends.ask_threads import AskThreads

pytestmark = pytest.mark.asyncio


class Site:
    def __init__(self, threads_max=2):
        self.ended = threading.Semaphore(0)
        self.threads = AskThreads(threads_max, "lmq-test", self.ended.release)


async def test_work_is_done_on_threads_and_errors_come_back():
    site = Site()
    assert await site.threads.run(threading.get_ident) != threading.get_ident()
    with pytest.raises(ZeroDivisionError):
        await site.threads.run(lambda: 1 // 0)
    assert await asyncio.gather(*(site.threads.run(lambda k=k: k) for k in range(50))) == list(range(50))
    site.threads.close()
    assert await asyncio.to_thread(site.ended.acquire, timeout=20)


async def test_threads_are_as_many_as_are_needed_and_no_more():
    site = Site(2)
    for _ in range(3):
        await site.threads.run(int)
    assert site.threads._count == 1
    both = threading.Barrier(2)
    await asyncio.gather(*(site.threads.run(lambda: both.wait(20)) for _ in range(4)))
    assert site.threads._count == 2
    site.threads.close()


async def test_what_nobody_waits_for_is_not_done_and_what_hangs_holds_up_its_own_threads_alone():
    site, other = Site(1), Site(1)
    hanging, done = threading.Event(), []
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await site.threads.run(hanging.wait)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await site.threads.run(lambda: done.append(1))
    assert await other.threads.run(lambda: "quick") == "quick"
    hanging.set()
    assert await site.threads.run(lambda: "next") == "next"
    assert done == []
    site.threads.close()
    other.threads.close()
