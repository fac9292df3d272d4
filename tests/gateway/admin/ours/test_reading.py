from __future__ import annotations

import pytest
from fastapi import HTTPException

from core.message import AWAY
from gateway.admin import asking
from gateway.admin.ours import reading
from gateway.admin.ours.reading import find_offset, read_one

pytestmark = pytest.mark.asyncio


class SlowBroker:
    """Messages are on their way for some reads."""

    def __init__(self, reads):
        self.reads = reads

    def read(self, queue_ref, offset, into, count_max, bytes_max):
        self.reads -= 1
        if self.reads >= 0:
            return AWAY
        into.queue_offset[0] = 7
        return 1

    def find_offset(self, queue_ref, at_ms, then, *, upper=False):
        if at_ms:
            then(at_ms)


async def test_what_is_on_its_way_is_waited_for_a_little(monkeypatch):
    monkeypatch.setattr(reading, "WAIT_S", 0.0)
    monkeypatch.setattr(asking, "AGAIN_S", 0.0)
    assert (await read_one(SlowBroker(3), 0, 7)) is not None
    assert (await read_one(SlowBroker(0), 0, 7)) is not None
    assert (await read_one(SlowBroker(0), 0, 6)) is None
    assert await find_offset(SlowBroker(0), 0, 5) == 5
    for late in (read_one(SlowBroker(10_000), 0, 7), find_offset(SlowBroker(0), 0, 0)):
        with pytest.raises(HTTPException) as raised:
            await late
        assert raised.value.status_code == 503
