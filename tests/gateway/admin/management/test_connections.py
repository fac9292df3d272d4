from __future__ import annotations

import asyncio
from urllib.parse import quote

import aiormq
import pytest

from tests.support.admin import managed_gateway

pytestmark = pytest.mark.asyncio
CONNECT = bytes.fromhex("100f00044d5154540402000000036465 76".replace(" ", ""))  # MQTT 3.1.1, client dev
PUBLISH = bytes.fromhex("3003000174")  # to the topic t
CONNACK = 0x20


def _url(gateway):
    return "amqp://guest:guest@{}:{}/".format(*gateway.listening["amqp"])


async def test_connections_are_told_and_closed_by_name(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        connection = await aiormq.connect(f"{_url(gateway)}?name=pump")
        await connection.channel()
        (found,) = (await client.get("/api/connections")).json()
        assert (found["user"], found["vhost"], found["protocol"], found["channels"]) == ("guest", "/", "AMQP 0-9-1", 1)
        assert found["name"] == f"127.0.0.1:{found['peer_port']} -> 127.0.0.1:{gateway.listening['amqp'][1]}"
        assert found["state"] == "running"
        assert found["recv_oct"] > 0
        path = f"/api/connections/{quote(found['name'], safe='')}"
        assert (await client.get(path)).json()["name"] == found["name"]
        assert (await client.get("/api/vhosts/%2F/connections?columns=name")).json() == [{"name": found["name"]}]
        assert (await client.delete(path, headers={"X-Reason": "maintenance"})).status_code == 204
        with pytest.raises(aiormq.exceptions.AMQPError, match="maintenance"):
            await connection.closing
        assert (await client.delete(path)).status_code == 404
        assert (await client.get("/api/connections")).json() == []


async def test_connections_are_found_by_client_user_and_address(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        opened = [await aiormq.connect(f"{_url(gateway)}?name={name}") for name in ("pump", "valve")]
        told = (await client.get("/api/connections")).json()
        ports = {one["user_provided_name"]: one["peer_port"] for one in told}
        for about, expected in (
            ("PUM", ["pump"]),
            ("guest", ["pump", "valve"]),
            (f":{ports['valve']} ->", ["valve"]),
            ("nobody", []),
        ):
            found = (await client.get("/api/connections", params={"page": 1, "about": about})).json()
            assert sorted(one["user_provided_name"] for one in found["items"]) == expected
            assert (found["total_count"], found["filtered_count"]) == (2, len(expected))
        (pump,) = [one["name"] for one in told if one["user_provided_name"] == "pump"]
        assert (await client.get("/api/connections?about=pump&columns=name")).json() == [{"name": pump}]
        assert (await client.get("/api/connections?about=pump&name=127")).status_code == 400
        assert (await client.get("/api/vhosts/%2F/connections?about=pump&columns=name")).json() == [{"name": pump}]
        await client.put("/api/vhosts/other", json={})
        assert (await client.get("/api/vhosts/other/connections?about=pump")).json() == []
        for one in opened:
            await one.close()


async def test_connections_that_are_held_back_are_told_from_those_that_only_read(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        publisher = await aiormq.connect(f"{_url(gateway)}?name=pump")
        reader = await aiormq.connect(f"{_url(gateway)}?name=display")
        channel = await publisher.channel()
        await channel.basic_publish(b"21.5", exchange="amq.topic", routing_key="t")
        answers, device = await asyncio.open_connection(*gateway.listening["mqtt"])
        device.write(CONNECT + PUBLISH)
        await answers.readexactly(4)
        async with asyncio.timeout(20):
            while gateway.doors["mqtt"].metrics.messages_in + gateway.doors["amqp"].metrics.messages_in < 2:
                await asyncio.sleep(0)
        gateway.memory.use(1)
        gateway.memory.look(now_ms=0)
        device.write(PUBLISH)  # a device is held back when it publishes once more
        async with asyncio.timeout(20):
            while gateway.doors["mqtt"].metrics.publishers_held == 0:
                await asyncio.sleep(0)
        rows = (await client.get("/api/connections?sort=state")).json()
        told = [(row["state"], row["lmq"]["client"]) for row in rows]
        assert (sorted(told[:2]), told[2:]) == ([("blocked", "dev"), ("blocked", "pump")], [("running", "display")])
        gateway.memory.use(0)
        gateway.memory.look(now_ms=1)
        assert {row["state"] for row in (await client.get("/api/connections")).json()} == {"running"}
        device.close()
        await publisher.close()
        await reader.close()


async def test_only_an_administrator_closes_a_connection(tmp_path):
    async with managed_gateway(tmp_path, auth=None) as (gateway, client):
        connection = await aiormq.connect(_url(gateway))
        (found,) = (await client.get("/api/connections?sort=recv_oct")).json()
        assert (await client.delete(f"/api/connections/{found['lmq']['number']}")).status_code == 401
        await connection.close()


async def test_clients_of_the_other_doors_are_closed_too(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        reader, writer = await asyncio.open_connection(*gateway.listening["mqtt"])
        writer.write(CONNECT)
        assert (await reader.readexactly(4))[0] == CONNACK
        (found,) = (await client.get("/api/connections")).json()
        assert (found["protocol"], found["lmq"]["client"]) == ("MQTT", "dev")
        assert (await client.delete(f"/api/connections/{found['lmq']['number']}")).status_code == 204
        assert await reader.read() == b""
        writer.close()


async def test_connections_of_a_user_are_listed_and_closed(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        connection = await aiormq.connect(_url(gateway))
        (only,) = (await client.get("/api/connections/username/guest")).json()
        assert only["user"] == "guest"
        assert (await client.get("/api/connections/username/ann")).json() == []
        assert (await client.delete("/api/connections/username/guest")).status_code == 204
        async with asyncio.timeout(20):
            while not connection.is_closed:
                await asyncio.sleep(0)


async def test_lists_of_a_user_and_of_a_virtual_host_follow_what_comes_logs_in_and_goes(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        paths = ("/api/connections/username/guest", "/api/vhosts/%2F/connections", "/api/connections/username/")
        device, writer = await asyncio.open_connection(*gateway.listening["mqtt"])
        writer.write(CONNECT)
        await device.readexactly(4)
        answers, early = await asyncio.open_connection(*gateway.listening["amqp"])
        early.write(b"AMQP\0\0\x09\x01")
        await answers.readexactly(7)  # it came, and has not given its name
        assert [(await client.get(path)).json() for path in paths[:2]] == [[], []]
        first = await aiormq.connect(f"{_url(gateway)}?name=first")
        second = await aiormq.connect(f"{_url(gateway)}?name=second")
        for path in paths[:2]:
            found = (await client.get(path)).json()
            assert sorted(one["lmq"]["client"] for one in found) == ["first", "second"]
        await first.close()
        for path in paths[:2]:
            assert [one["lmq"]["client"] for one in (await client.get(path)).json()] == ["second"]
        assert len((await client.get("/api/connections")).json()) == 3
        await second.close()
        early.close()
        writer.close()


async def test_those_of_other_users_stay_when_a_users_connections_are_closed(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        await client.put("/api/users/ann", json={"password": "x", "tags": ""})
        await client.put("/api/permissions/%2F/ann", json={"configure": "", "write": "", "read": ""})
        hers = [await aiormq.connect(_url(gateway).replace("guest:guest", "ann:x")) for _ in range(20)]
        other = await aiormq.connect(_url(gateway))
        assert (await client.delete("/api/connections/username/ann")).status_code == 204
        async with asyncio.timeout(20):
            while not all(one.is_closed for one in hers):
                await asyncio.sleep(0)
        assert [one["user"] for one in (await client.get("/api/connections")).json()] == ["guest"]
        await other.channel()
        await other.close()
