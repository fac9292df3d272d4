from __future__ import annotations

import random

import pytest

from core.lmq.queue_name import mqtt_queue_name
from gateway.admin.management.listing import rank
from gateway.admin.rosters import chunks, roster
from tests.support.admin import declare, managed_gateway
from tests.support.admin_clients import publish, subscribe

pytestmark = [pytest.mark.asyncio, pytest.mark.here(reason="a list tells of the messages that are here")]
# What is -1 or 0 in an order where nothing is told.
UNTOLD = {**dict.fromkeys(("messages_ready", "messages_unacknowledged", "rate_out", "rate_again"), -1)}
UNTOLD |= dict.fromkeys(("oldest_at_ms", "newest_at_ms"), 0)


async def test_light_queues_of_all_doors_are_sorted_by_whatever_is_told_of_them(tmp_path, monkeypatch):
    draw = random.Random(3)
    async with managed_gateway(tmp_path) as (gateway, client):
        filters = [f"f/{number:02}" for number in range(30)]
        for one in filters:
            gateway.broker.intern_queue(mqtt_queue_name(one.encode()))
        queues = [f"q{number:02}" for number in range(30)]
        declare(gateway, *queues)
        view = client._transport.app.state.view
        view.rocketmq.topics.open_for_send(b"ORDERS", b"TBW102", 1)
        view.broker.intern_queue(b"ORDERS/0")
        await view.activity.look()
        async with subscribe(gateway, "device", *(read := draw.sample(filters, 8))):
            for name in [*read[:6], *draw.sample(queues, 9)]:
                exchange, key = ("amq.topic", name.replace("/", ".")) if "/" in name else ("amq.default", name)
                for _ in range(draw.randrange(1, 4)):
                    await publish(client, exchange, key, "x" * draw.randrange(1, 40))
            await view.activity.look()
            told = (await client.get("/api/lmq/queues")).json()
            assert len(told) == 61
            for column in sorted(told[0]):
                for reverse in (False, True):
                    view.rosters.stop()
                    asked = {"sort": column, "sort_reverse": reverse}
                    whole = (await client.get("/api/lmq/queues", params=asked)).json()
                    had = [rank(UNTOLD.get(column) if item[column] is None else item[column]) for item in whole]
                    assert had == sorted(had, reverse=reverse), column
                    view.rosters.stop()
                    with monkeypatch.context() as patch:
                        patch.setattr(roster, "LONG", 20)
                        patch.setattr(chunks, "FIGURES_A_STEP", 8)
                        page = (
                            await client.get("/api/lmq/queues", params={**asked, "page": 1, "page_size": 25})
                        ).json()
                    assert [item["name"] for item in page["items"]] == [item["name"] for item in whole[:25]], column


async def test_some_columns_of_light_queues_are_told_as_all_of_them_are(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client), subscribe(gateway, "device", "plant/#"):
        declare(gateway, "jobs")
        whole = (await client.get("/api/lmq/queues")).json()
        for column in whole[0]:
            some = (await client.get("/api/lmq/queues", params={"columns": f"name,{column}"})).json()
            assert some == [{"name": item["name"], column: item[column]} for item in whole]
