from __future__ import annotations

import asyncio

import pytest

from gateway.admin import totals
from gateway.admin.totals import TotalsKeeper
from gateway.inventory import QueueEntry

pytestmark = pytest.mark.asyncio


async def test_those_that_ask_together_wait_for_one_walk(monkeypatch):
    walks = []

    def queues():
        walks.append(1)
        yield QueueEntry("a", "%LMQ%a", 0, 5, 2, ready=3, unacked=1)
        yield None
        yield QueueEntry("b", "%LMQ%b", 0, 5, 1)

    keeper = TotalsKeeper(queues, lambda: iter([2, 3]))
    assert set(await asyncio.gather(keeper.find(), keeper.find())) == {(2, 3, 1, 3, 5)}
    assert len(walks) == 1
    monkeypatch.setattr(totals, "FRESH_S", 0.0)
    await keeper.find()
    assert len(walks) == 2
