from __future__ import annotations

import asyncio

import pytest

from lmq import MessageQueue
from lmq.gate import Gate

pytestmark = pytest.mark.asyncio

ONE, OTHER = MessageQueue("T", "b", 0), MessageQueue("T", "b", 1)


async def test_single_queues_are_held_up_and_let_go():
    gate = Gate()
    gate.pause(ONE)
    assert (gate.holds(ONE), gate.holds(OTHER), gate.is_paused) == (True, False, False)
    await gate.wait_open()
    gate.resume(ONE, OTHER)
    assert not gate.holds(ONE)


async def test_what_waits_goes_on_when_all_may():
    gate = Gate()
    gate.pause()
    gate.pause(ONE)
    waiting = asyncio.create_task(gate.wait_open())
    await asyncio.sleep(0)
    gate.resume(ONE)
    await asyncio.sleep(0)
    assert (gate.holds(ONE), waiting.done()) == (True, False)
    gate.resume()
    await waiting
    assert not gate.holds(ONE)
