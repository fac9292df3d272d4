from __future__ import annotations

import asyncio
import time

import uvloop

from tests.benchmarks.scenarios.interval_timer import IntervalTimer


def test_calls_are_a_fraction_of_a_millisecond_apart_and_none_is_left_out():
    async def run():
        calls = []
        timer = IntervalTimer(0.0002, lambda: calls.append(time.perf_counter()))
        began = time.perf_counter()
        timer.start()
        while len(calls) < 500:
            await asyncio.sleep(0.01)
        took = calls[499] - began
        timer.stop()
        stopped = len(calls)
        await asyncio.sleep(0.01)  # fifty periods
        return took, len(calls) - stopped

    took, calls_after = uvloop.run(run())
    assert took >= 500 * 0.0002 - 0.0002  # never early
    assert calls_after == 0


def test_stops_from_inside_a_call():
    async def run():
        calls = []

        def call():
            calls.append(1)
            timer.stop()

        timer = IntervalTimer(0.001, call)
        timer.start()
        until = time.perf_counter() + 0.005
        while time.perf_counter() < until:  # five are due at once
            pass
        await asyncio.sleep(0.01)  # ten periods
        return len(calls)

    assert uvloop.run(run()) == 1
