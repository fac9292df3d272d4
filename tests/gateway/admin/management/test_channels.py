from __future__ import annotations

from urllib.parse import quote

import aiormq
import pytest

from tests.support.admin import managed_gateway

pytestmark = pytest.mark.asyncio


async def _ignore(message):
    pass


async def test_channels_and_consumers_are_told_with_rabbitmqs_names(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        url = "amqp://guest:guest@{}:{}/?name=billing".format(*gateway.listening["amqp"])
        connection = await aiormq.connect(url)
        channel = await connection.channel()
        await channel.queue_declare("jobs", arguments={"x-single-active-consumer": True})
        await channel.basic_qos(prefetch_count=5)
        await channel.basic_consume("jobs", _ignore, consumer_tag="first")
        await channel.basic_consume("jobs", _ignore, consumer_tag="second")
        await channel.basic_publish(b"x", routing_key="jobs")
        (found,) = (await client.get("/api/channels")).json()
        assert (found["number"], found["consumer_count"], found["prefetch_count"]) == (1, 2, 5)
        assert (found["messages_unacknowledged"], found["confirm"], found["transactional"]) == (1, True, False)
        assert (await client.get(f"/api/channels/{quote(found['name'], safe='')}")).json() == found
        name = quote(found["connection_details"]["name"], safe="")
        assert (await client.get(f"/api/connections/{name}/channels")).json() == [found]
        assert (await client.get("/api/vhosts/%2F/channels")).json() == [found]
        assert (await client.get("/api/channels/none")).status_code == 404
        first, second = (await client.get("/api/consumers")).json()
        assert (first["consumer_tag"], first["queue"]) == ("first", {"name": "jobs", "vhost": "/"})
        assert (first["active"], second["active"]) == (True, False)
        assert (first["ack_required"], first["prefetch_count"]) == (True, 5)
        assert first["consumer_timeout"] == 1_800_000  # that of the settings: neither queue nor consumer says another
        assert first["channel_details"]["name"] == found["name"]
        assert first["lmq"] == found["lmq"]
        assert found["lmq"]["client"] == "billing"
        search = {"name": "jobs", "page": 1}
        assert (await client.get("/api/consumers", params=search)).json()["items"] == [first, second]
        assert (await client.get("/api/consumers/%2F")).json() == [first, second]
        assert (await client.get("/api/queues/%2F/jobs")).json()["consumer_details"] == [first, second]
        totals = (await client.get("/api/overview")).json()["object_totals"]
        assert (totals["channels"], totals["connections"], totals["consumers"]) == (1, 1, 2)
        (queue,) = (await client.get("/api/queues?sort=messages_unacknowledged")).json()
        assert (queue["messages_unacknowledged"], queue["consumers"]) == (1, 2)
        await connection.close()


async def test_channels_are_listed_by_virtual_host_and_by_connection(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        await client.put("/api/vhosts/lab")
        await client.put("/api/permissions/lab/guest", json={"configure": ".*", "write": ".*", "read": ".*"})
        url = "amqp://guest:guest@{}:{}/{}"
        here = await aiormq.connect(url.format(*gateway.listening["amqp"], ""))
        lab = await aiormq.connect(url.format(*gateway.listening["amqp"], "lab"))
        for connection in (here, lab, lab):
            await connection.channel()
        found = (await client.get("/api/vhosts/lab/channels?sort=number")).json()
        assert [(one["vhost"], one["number"]) for one in found] == [("lab", 1), ("lab", 2)]
        name = quote(found[0]["connection_details"]["name"], safe="")
        assert (await client.get(f"/api/connections/{name}/channels")).json() == found
        assert (await client.get("/api/connections/none/channels")).json() == []
        assert len((await client.get("/api/channels")).json()) == 3
        await lab.close()
        assert (await client.get("/api/vhosts/lab/channels")).json() == []
        assert (await client.get(f"/api/connections/{name}/channels")).json() == []
        await here.close()
