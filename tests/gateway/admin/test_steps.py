from __future__ import annotations

import asyncio

import pytest

from gateway.admin import steps
from gateway.admin.steps import walk

pytestmark = pytest.mark.asyncio


async def test_a_walk_gives_what_was_found_and_lets_others_have_their_turn(monkeypatch):
    monkeypatch.setattr(steps, "STEP_S", 0.0)
    turns = 0

    async def count():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    other = asyncio.create_task(count())
    found = [thing async for thing in walk(number if number % 3 else None for number in range(300))]
    other.cancel()
    assert found == [number for number in range(300) if number % 3]
    assert turns >= 300 // steps.LOOKS
