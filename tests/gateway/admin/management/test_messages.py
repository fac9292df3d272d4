from __future__ import annotations

import base64

import pytest

from tests.support.admin import declare, managed_gateway

pytestmark = pytest.mark.asyncio
PUBLISH = "/api/exchanges/%2F/amq.default/publish"
GET = "/api/queues/%2F/q/get"


def _message(payload, **more):
    return {"routing_key": "q", "payload": payload, "payload_encoding": "string", "properties": {}, **more}


async def test_messages_are_published_looked_at_and_taken(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        declare(gateway, "q")
        properties = {"headers": {"a": 1}, "delivery_mode": 2, "timestamp": 1_700_000_000, "type": "t", "priority": 3}
        answer = await client.post(PUBLISH, json=_message("hi", properties=properties))
        assert answer.json() == {"routed": True}
        assert (await client.post(PUBLISH, json=_message("x", routing_key="none"))).json() == {"routed": False}
        octets = base64.b64encode(b"\xff" * 300_000).decode()
        assert (await client.post(PUBLISH, json=_message(octets, payload_encoding="base64"))).json()["routed"]
        look = {"count": 5, "ackmode": "ack_requeue_true", "encoding": "auto", "truncate": 5}
        first, second = (await client.post(GET, json=look)).json()
        assert first == {
            "payload_bytes": 2,
            "redelivered": False,
            "exchange": "",
            "routing_key": "q",
            "message_count": 1,
            "properties": properties,
            "payload": "hi",
            "payload_encoding": "string",
        }
        assert (second["payload"], second["payload_encoding"]) == (base64.b64encode(b"\xff" * 5).decode(), "base64")
        assert (await client.get("/api/queues/%2F/q")).json()["messages"] == 2
        take = {"count": 1, "ackmode": "ack_requeue_false", "encoding": "base64"}
        (taken,) = (await client.post(GET, json=take)).json()
        assert (taken["payload"], taken["redelivered"]) == ("aGk=", True)
        assert (await client.post(GET, json={**take, "ackmode": "reject_requeue_false"})).json()[0]["payload_bytes"]
        assert (await client.post(GET, json=take)).json() == []


@pytest.mark.parametrize(
    ("path", "told", "code"),
    [
        ("/api/exchanges/%2F/none/publish", _message(""), 404),
        (PUBLISH, {}, 400),
        (PUBLISH, _message("", payload_encoding="odd"), 400),
        (PUBLISH, _message("?", payload_encoding="base64"), 400),
        (PUBLISH, _message("", properties={"odd": 1}), 400),
        (PUBLISH, _message("", properties={"priority": 256}), 400),
        (PUBLISH, _message("", properties={"headers": 1}), 400),
        (PUBLISH, _message("", properties={"app_id": "x" * 256}), 400),
        (GET, {"count": 0, "ackmode": "ack_requeue_true", "encoding": "auto"}, 400),
        ("/api/queues/%2F/none/get", {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"}, 404),
    ],
)
async def test_what_cannot_be_done_is_refused(tmp_path, path, told, code):
    async with managed_gateway(tmp_path) as (gateway, client):
        declare(gateway, "q")
        answer = await client.post(path, json=told)
        assert answer.status_code == code
        assert answer.json()["reason"]
