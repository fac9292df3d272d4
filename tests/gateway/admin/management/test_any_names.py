from __future__ import annotations

from urllib.parse import quote

import pytest

from tests.support.admin import managed_gateway

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("engine")]
TO_BE_GOT = {"count": 1, "ackmode": "ack_requeue_false", "encoding": "auto"}


@pytest.mark.parametrize("name", ["a%b", "ü & <x>", "?*$|\\\"'", "a/b\tc"])
async def test_queues_and_exchanges_have_any_names(tmp_path, name):
    said = quote(name, safe="")
    queue, exchange = f"/api/queues/%2F/{said}", f"/api/exchanges/%2F/{said}"
    async with managed_gateway(tmp_path) as (_, client):
        assert (await client.put(queue, json={})).status_code == 201
        assert (await client.put(queue, json={})).status_code == 204
        assert (await client.get(queue)).json()["name"] == name
        assert (await client.put(exchange, json={"type": "direct"})).status_code == 201
        assert (await client.put(f"{exchange}2", json={"type": "fanout"})).status_code == 201
        for letter, bound in (("q", said), ("e", f"{said}2")):
            answer = await client.post(f"/api/bindings/%2F/e/{said}/{letter}/{bound}", json={"routing_key": name})
            assert answer.status_code == 201, answer.text
        message = {"routing_key": name, "payload": "hi", "payload_encoding": "string", "properties": {}}
        assert (await client.post(f"{exchange}/publish", json=message)).json() == {"routed": True}
        (got,) = (await client.post(f"{queue}/get", json=TO_BE_GOT)).json()
        assert (got["payload"], got["exchange"], got["routing_key"]) == ("hi", name, name)
        await client.post("/api/exchanges/%2F/amq.default/publish", json=message)
        await client.put("/api/queues/%2F/other", json={})
        moved = await client.post("/api/lmq/move", json={"vhost": "/", "source": name, "destination": "other"})
        assert moved.json()["moved"] == 1, moved.text
        assert (await client.delete(f"{queue}/contents")).status_code == 204
        for letter, bound in (("q", said), ("e", f"{said}2")):
            binding = f"/api/bindings/%2F/e/{said}/{letter}/{bound}/{said}"
            assert (await client.delete(binding)).status_code == 204
        assert (await client.delete(queue)).status_code == 204
        assert (await client.delete(exchange)).status_code == 204


async def test_virtual_hosts_have_long_names(tmp_path):
    async with managed_gateway(tmp_path) as (_, client):
        vhost = "v" * 200
        assert (await client.put(f"/api/vhosts/{vhost}")).status_code == 201
        assert (await client.put(f"/api/queues/{vhost}/q", json={})).status_code == 201


@pytest.mark.parametrize("length", [256, 257])
async def test_what_is_too_long_is_said_to_be(tmp_path, length):
    long = "x" * length
    message = {"routing_key": "q", "payload": "hi", "payload_encoding": "string", "properties": {}}
    async with managed_gateway(tmp_path) as (_, client):
        await client.put("/api/queues/%2F/q", json={})
        for answer in (
            await client.put(f"/api/queues/%2F/{long}", json={}),
            await client.put(f"/api/exchanges/%2F/{long}", json={"type": "direct"}),
            await client.post("/api/bindings/%2F/e/amq.topic/q/q", json={"routing_key": long}),
            await client.post("/api/exchanges/%2F/amq.topic/publish", json={**message, "routing_key": long}),
            await client.post("/api/exchanges/%2F/amq.topic/publish", json={**message, "properties": {"type": long}}),
        ):
            assert (answer.status_code, answer.json()["error"]) == (400, "bad_request"), answer.text
            assert "255" in answer.json()["reason"]
