from __future__ import annotations

import time
from pathlib import Path

import aiormq
import pytest

from gateway.carriage import SecureAddress
from gateway.net.streams.certificate_file import Certificate
from gateway.net.streams.tls_counts import TlsCounts
from tests.support.admin import declare, make_client, make_view, managed_gateway
from tests.support.logins import quick_hash

pytestmark = pytest.mark.asyncio
WHO = (("ann:x", "v"), ("guest:guest", ""))  # with the virtual host


async def test_the_overview_counts_what_there_is(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        declare(gateway, "a", "b")
        gateway.broker.metrics.door("mqtt").messages_in += 3
        found = (await client.get("/api/overview")).json()
        assert found["object_totals"]["queues"] == 2
        assert found["queue_totals"] == {"messages": 0, "messages_ready": 0, "messages_unacknowledged": 0}
        assert found["message_stats"]["publish"] == 3
        assert found["message_stats"].keys() == {
            "publish",
            "publish_details",
            "deliver_get",
            "deliver_get_details",
        }
        assert {one["protocol"] for one in found["listeners"]} >= {"mqtt", "amqp"}
        assert found["lmq"]["doors"]["mqtt"]["messages_in"] == 3
        assert found["lmq"]["uptime_ms"] == 7


async def test_certificates_that_have_to_be_replaced_are_named(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, _):
        view = make_view(gateway)
        day_s, now_s = 86_400, int(time.time())
        soon, later = (
            Certificate(Path(f"{days}.pem"), ("mq.test",), now_s - 90 * day_s, now_s + days * day_s)
            for days in (-3, 60)
        )
        view.certificates = lambda: [SecureAddress("mqtts", "0.0.0.0:8883", (soon, later), TlsCounts())]
        async with make_client(view) as client:
            (told,) = (await client.get("/api/overview")).json()["lmq"]["certificates_ending"]
        assert told == {
            "listener": "mqtts",
            "address": "0.0.0.0:8883",
            "file": "-3.pem",
            "names": ["mq.test"],
            "expires_at_ms": soon.expires_at_s * 1_000,
        }


async def test_who_manages_is_told_the_totals_of_its_own(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        await client.put("/api/vhosts/v")
        await client.put("/api/users/ann", json={"password_hash": quick_hash("x"), "tags": "management"})
        await client.put("/api/permissions/v/ann", json={"configure": ".*", "write": ".*", "read": ".*"})
        for vhost, queue, messages in (("v", "hers", 1), ("%2F", "theirs", 2)):
            await client.put(f"/api/queues/{vhost}/{queue}", json={})
            for _ in range(messages):
                told = {"properties": {}, "routing_key": queue, "payload": "x", "payload_encoding": "string"}
                await client.post(f"/api/exchanges/{vhost}/amq.default/publish", json=told)
        host, port = gateway.listening["amqp"]
        connections = [await aiormq.connect(f"amqp://{who}@{host}:{port}/{vhost}") for who, vhost in WHO]
        channel, _ = [await connection.channel() for connection in connections]
        await channel.basic_consume("hers", lambda _: None)
        async with make_client(make_view(gateway), auth=("ann", "x")) as ann:
            mine, everything = [(await one.get("/api/overview")).json() for one in (ann, client)]
            assert (await ann.get("/metrics/detailed?queue=theirs")).status_code == 401
            named = (await ann.get("/metrics/detailed?vhost=v&queue=hers&queue=theirs")).text
        exchanges = everything["object_totals"]["exchanges"]
        expected = {"connections": 1, "channels": 1, "consumers": 1, "queues": 1, "exchanges": exchanges // 2}
        assert mine["object_totals"] == expected
        assert everything["object_totals"] == {
            "connections": 2,
            "channels": 2,
            "consumers": 1,
            "queues": 2,
            "exchanges": exchanges,
        }
        assert mine["queue_totals"]["messages"] == 1
        assert everything["queue_totals"]["messages"] == 3
        assert mine["lmq"].keys() == {"version", "is_ready", "uptime_ms", "disk", "memory", "alarms"}
        assert not {"listeners", "node"} & mine.keys()
        assert (mine["message_stats"]["publish"], mine["message_stats"]["get"]) == (1, 0)
        assert everything["message_stats"]["publish"] == 3
        assert 'lmq_detailed_queue_readers{queue="hers",vhost="v"} 1.0' in named
        assert "theirs" not in named


async def test_there_is_one_node(tmp_path):
    async with managed_gateway(tmp_path) as (_, client):
        (node,) = (await client.get("/api/nodes")).json()
        assert node["running"] is True
        assert (await client.get(f"/api/nodes/{node['name']}")).json()["disk_free_limit"] == node["disk_free_limit"]
        assert (await client.get("/api/nodes/other@host")).status_code == 404


async def test_the_node_tells_its_memory_and_who_tried_to_log_in(tmp_path):
    async with managed_gateway(tmp_path) as (_, client):
        (node,) = (await client.get("/api/nodes")).json()
        where = f"/api/nodes/{node['name']}/memory"
        memory = (await client.get(where)).json()["memory"]
        assert memory["total"]["rss"] == memory["other_system"] > 1 << 20
        assert memory["binary"] == 0
        assert (await client.get("/api/nodes/other/memory")).status_code == 404
        assert (await client.get("/api/overview", auth=("guest", "wrong"))).status_code == 401
        found = {one["protocol"]: one for one in (await client.get(f"/api/auth/attempts/{node['name']}")).json()}
        admin = found["http"]
        assert admin["auth_attempts_failed"] == 1
        assert admin["auth_attempts"] == admin["auth_attempts_succeeded"] + 1
        assert (await client.get("/api/auth/attempts/other")).status_code == 404
