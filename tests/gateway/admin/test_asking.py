from __future__ import annotations

import asyncio
from array import array

import pytest
from fastapi import HTTPException

from core.errors import StoreClosedError
from core.message import AWAY, StoredBatch
from gateway.admin import asking

pytestmark = pytest.mark.asyncio


async def test_what_is_told_later_is_waited_for():
    loop = asyncio.get_running_loop()
    assert await asking.ask(lambda then: then(7)) == 7
    assert await asking.ask(lambda then: loop.call_soon(then, 8)) == 8


async def test_what_is_asked_for_at_once_may_be_waited_for_later():
    asked = []
    found = asking.begin_asking(asked.append)
    (then,) = asked
    then(7)
    then(8)  # which no one waits for
    assert await found == 7


class _Late:
    def __init__(self, away):
        self.away = away

    def read(self, *_asked):
        self.away -= 1
        return AWAY if self.away >= 0 else 3

    read_offsets = read


@pytest.mark.parametrize(("read", "wanted"), [(asking.read_on, 0), (asking.read_chosen, array("q", [0, 4, 5]))])
async def test_messages_on_their_way_are_asked_for_again_and_not_for_ever(monkeypatch, read, wanted):
    monkeypatch.setattr(asking, "AGAIN_S", 0.0)
    monkeypatch.setattr(asking, "AGAIN_MAX", 3)
    assert await read(_Late(2), 0, wanted, StoredBatch(1)) == 3
    with pytest.raises(HTTPException) as raised:
        await read(_Late(3), 0, wanted, StoredBatch(1))
    assert raised.value.status_code == 503


async def test_where_a_queue_ends_is_waited_for_and_one_that_cannot_be_opened_is_said():
    loop = asyncio.get_running_loop()
    opened = []

    class _Opening:
        def open_queue(self, queue_ref, then):
            opened.append(queue_ref)
            loop.call_soon(then, StoreClosedError("its broker is gone") if queue_ref else None)

    await asking.open_queue(_Opening(), 0)
    with pytest.raises(HTTPException) as raised:
        await asking.open_queue(_Opening(), 1)
    assert (raised.value.status_code, opened) == (503, [0, 1])
    assert "its broker is gone" in raised.value.detail["reason"]
