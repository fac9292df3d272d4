from __future__ import annotations

import pytest

from gateway.commands.bench.figures import Tally
from gateway.commands.bench.peers import Pace
from gateway.commands.bench.plan import Plan
from gateway.commands.bench.rocketmq import RocketmqPublisher
from gateway.commands.doors.place import Door, Place
from gateway.commands.doors.traffic import LinkError
from tests.support.gateway import running_gateway

pytestmark = pytest.mark.asyncio


async def test_a_refused_send_ends_the_load(tmp_path):
    async with running_gateway(tmp_path) as gateway:
        place = Place(Door.ROCKETMQ, *gateway.listening["namesrv"], None, None, "/", None, None)
        publisher = RocketmqPublisher(place, Tally(), Pace(1, None, 1), Plan("a topic", 1, 0, 1))
        with pytest.raises(LinkError, match="rocketmq: "):
            await publisher.open()
        await publisher.stop()
