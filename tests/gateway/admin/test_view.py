from __future__ import annotations

import pytest

from tests.support.admin import make_view
from tests.support.gateway import running_gateway
from tests.support.mqtt_door import MemoryTransport


@pytest.mark.asyncio
async def test_what_the_api_looks_at(tmp_path):
    async with running_gateway(tmp_path, free_bytes=lambda: 7) as gateway:
        view = make_view(gateway)
        assert list(view.vhosts) == [view.vhost]
        assert view.disk == "low"


@pytest.mark.asyncio
async def test_a_look_for_consumers_rests_among_connections_without_any(tmp_path):
    async with running_gateway(tmp_path, free_bytes=lambda: 7) as gateway:
        for number in range(100):
            gateway.doors["amqp"].connect(MemoryTransport(number))
        rests = list(make_view(gateway)._consumed())
        assert len(rests) > 5
        assert set(rests) == {None}
