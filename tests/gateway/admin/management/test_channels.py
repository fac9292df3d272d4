from __future__ import annotations

from urllib.parse import quote

import aiormq
import pytest

from gateway.admin.management.channels import CHANNEL, ChannelRoster
from gateway.admin.rosters.column import NAME, Column
from gateway.amqp.inventory import AmqpInventory
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


async def test_lists_tell_at_once_that_a_channel_or_consumer_came_or_went(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        host, port = gateway.listening["amqp"]
        connection = await aiormq.connect(f"amqp://guest:guest@{host}:{port}/")

        async def listed():
            channels, consumers = [(await client.get(f"/api/{kind}")).json() for kind in ("channels", "consumers")]
            total = (await client.get("/api/channels", params={"page": 1})).json()["total_count"]
            assert total == len(channels)
            return [one["number"] for one in channels], [one["consumer_tag"] for one in consumers]

        assert await listed() == ([], [])
        first = await connection.channel()
        assert await listed() == ([1], [])
        second = await connection.channel()
        await second.queue_declare("jobs")
        await second.queue_declare("others")
        for tag, queue in (("a", "jobs"), ("b", "jobs"), ("c", "others")):
            await second.basic_consume(queue, _ignore, consumer_tag=tag)
        assert await listed() == ([1, 2], ["a", "b", "c"])
        await second.basic_cancel("a")
        assert await listed() == ([1, 2], ["b", "c"])
        await first.queue_delete("others")
        assert await listed() == ([1, 2], ["b"])
        await first.close()
        assert await listed() == ([2], ["b"])
        with pytest.raises(aiormq.exceptions.ChannelNotFoundEntity):
            await second.queue_declare("none", passive=True)
        third = await connection.channel()
        assert await listed() == ([third.number], [])
        await connection.close()
        assert await listed() == ([], [])


async def test_channels_are_not_walked_where_none_came_or_went(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, _):
        host, port = gateway.listening["amqp"]
        connection = await aiormq.connect(f"amqp://guest:guest@{host}:{port}/")
        await connection.channel()
        inventory = gateway.doors["amqp"].inventory()
        before = inventory.channel_changes()
        assert inventory.channel_changes() == before
        await connection.channel()
        assert inventory.channel_changes() != before
        await connection.close()


class CountingInventory(AmqpInventory):
    """Counts the channels that it describes."""

    described = 0

    def describe_channel(self, found):
        self.described += 1
        return super().describe_channel(found)


async def test_only_the_channels_on_a_page_are_described(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        host, port = gateway.listening["amqp"]
        connection = await aiormq.connect(f"amqp://guest:guest@{host}:{port}/")
        for _ in range(10):
            await connection.channel()
        inventory = CountingInventory(gateway.doors["amqp"].inventory()._services)
        found = await ChannelRoster(inventory, "/").find(Column(NAME, CHANNEL.name), 2, 5, None)
        assert (found.total, inventory.described) == (10, 3)
        assert [one["name"] for one in (await client.get("/api/channels")).json()][2:5] == [
            entry.name for entry in found.things
        ]
        await connection.close()
