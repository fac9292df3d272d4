from __future__ import annotations

import pytest

from gateway.admin.rosters.rows_part import DefaultBindings
from tests.support.admin import declare, managed_gateway

pytestmark = pytest.mark.asyncio


async def test_each_queue_has_one_binding_to_the_exchange_without_a_name(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        declare(gateway, "a", "b", "c")
        vhost = gateway.doors["amqp"].vhost
        part = DefaultBindings(vhost)
        for _ in part.arrivals():
            pass
        assert (part.size, part.alive(), part.names(0, 3), part.name(1)) == (3, 3, "\n\n", "")
        await client.delete("/api/queues/%2F/b")
        assert [part.take(number) for number in range(3)] == [(vhost, "", (name, name, None)) if name != "b" else None
                                                             for name in "abc"]  # fmt: skip
        assert (list(part.gone), part.alive(), part.there(0, 3)) == ([1], 2, b"\1\0\1")
        found = (await client.get("/api/bindings", params={"page": 1})).json()
        assert [(item["source"], item["destination"]) for item in found["items"]] == [("", "a"), ("", "c")]
