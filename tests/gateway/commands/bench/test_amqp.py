from __future__ import annotations

import pytest

from gateway.commands.bench.load import run
from gateway.commands.bench.plan import Plan
from gateway.commands.doors.place import Door, Place
from gateway.commands.doors.traffic import LinkError
from tests.support.admin import declare
from tests.support.gateway import running_gateway

pytestmark = pytest.mark.asyncio


async def test_a_queue_that_takes_no_more_and_one_of_another_kind_are_told(tmp_path):
    async with running_gateway(tmp_path) as gateway:
        declare(gateway, "other", durable=False)
        place = Place(Door.AMQP, *gateway.listening["amqp"], None, None, "/", None, None)
        with pytest.raises(LinkError, match=r"406 .*durable") as failed:
            await run(place, Plan("other", 1, 0, 1))
        assert failed.value.code == 7
        with pytest.raises(LinkError, match=r"404 .*no exchange") as failed:
            await run(place, Plan("key", 1, 0, 1, exchange="none"))
        assert failed.value.code == 4
