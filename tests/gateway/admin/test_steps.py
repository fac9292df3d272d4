from __future__ import annotations

import asyncio

import pytest

from gateway.admin import steps
from gateway.admin.steps import PatientSteps, do_all, walk
from tests.support.waiting import counted_turns

pytestmark = pytest.mark.asyncio


async def test_a_walk_gives_what_was_found_and_lets_others_have_their_turn(monkeypatch):
    monkeypatch.setattr(steps, "STEP_S", 0.0)
    async with counted_turns() as turns:
        found = [thing async for thing in walk(number if number % 3 else None for number in range(300))]
    assert found == [number for number in range(300) if number % 3]
    assert turns() >= 300 // 3 + 200 // steps.LOOKS


async def test_work_that_is_begun_is_done_in_turns_and_at_once_where_nobody_waits_any_more(monkeypatch):
    monkeypatch.setattr(steps, "STEP_S", 0.0)
    done = []
    task = asyncio.create_task(do_all(done.append(number) for number in range(100)))
    while len(done) < 3:
        await asyncio.sleep(0)
    assert len(done) < 10
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == list(range(100))
    await do_all(done.append(number) for number in range(100))
    assert len(done) == 200


async def test_steps_cost_what_they_did_and_not_what_others_did_meanwhile(monkeypatch):
    monkeypatch.setattr(steps, "STEP_S", 0.0)
    clock_s = [0.0]
    monkeypatch.setattr(steps, "thread_time", lambda: clock_s[0])

    async def others():
        while True:
            clock_s[0] += 100
            await asyncio.sleep(0)

    other, ours = asyncio.create_task(others()), steps.Steps()
    for _ in range(5):
        clock_s[0] += 1
        await ours.rest()
    clock_s[0] += 1
    other.cancel()
    assert ours.cost_s == 6
    assert clock_s[0] > 100


async def test_what_nobody_waits_for_rests_longer_while_others_are_under_way(monkeypatch):
    monkeypatch.setattr(steps, "STEP_S", 0.0)
    slept, sleep, is_busy = [], asyncio.sleep, [True]

    async def note(delay):
        slept.append(delay)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", note)
    monkeypatch.setattr(steps, "PATIENT_S", 7.0)
    patient = PatientSteps(lambda: is_busy[0])
    await patient.rest()
    is_busy[0] = False
    await patient.rest()
    assert slept == [7.0, 0]
