from __future__ import annotations

import json

import pytest

from core.store import table
from core.store.table import ROOM_BYTES_MIN
from tests.support.admin import declare, managed_gateway
from tests.support.full_definitions import set_room_for_definitions

pytestmark = pytest.mark.asyncio
SAYS_CLASSIC = {"x-queue-type": "classic"}


async def test_export_of_one_gateway_is_imported_by_another(tmp_path):
    async with managed_gateway(tmp_path / "one", amqp={"listen": "127.0.0.1:0", "vhosts": ["v"]}) as (gateway, client):
        declare(gateway, "q")
        assert (await client.put("/api/queues/v/c", json={"durable": True, "arguments": SAYS_CLASSIC})).is_success
        vhost = gateway.doors["amqp"].vhost
        vhost.bind(vhost.exchanges.get("amq.topic"), ("q", "a.#", None))
        text = (await client.get("/api/definitions")).text
        part = (await client.get("/api/definitions/%2F")).json()
    async with managed_gateway(tmp_path / "two") as (gateway, client):
        for _ in range(2):
            answer = await client.post("/api/definitions", content=text)
            assert (answer.status_code, answer.json()["not_imported"]) == (200, [])
            assert answer.json()["imported"] == {"vhosts": 2, "queues": 2, "bindings": 1}
        assert json.loads((await client.get("/api/definitions")).text) == json.loads(text)
        assert part["queues"] == [
            {"name": "q", "type": "classic", "durable": True, "auto_delete": False, "arguments": {}}
        ]
        told = json.loads(text)["queues"]
        assert [queue["arguments"] for queue in told if queue["name"] == "c"] == [SAYS_CLASSIC]
        assert (await client.post("/api/definitions/v", json=part)).json()["imported"] == {"queues": 1, "bindings": 1}
        assert gateway.doors["amqp"].vhosts.find("v").find("q") is not None


async def test_file_that_is_wrong_is_refused_whole(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        wrong = {"vhosts": [{"name": "v"}], "queues": [{"name": "q", "vhost": "none"}]}
        answer = await client.post("/api/definitions", json=wrong)
        assert (answer.status_code, answer.json()["reason"]) == (400, "queue 'q': no vhost 'none'")
        for content in (b"{", b"[]", b'{"a": "\xff"}'):
            assert (await client.post("/api/definitions", content=content)).status_code == 400
        assert (await client.post("/api/definitions/none", json={})).status_code == 404
        assert [vhost.name for vhost in gateway.doors["amqp"].vhosts] == ["/"]


async def test_only_administrators_may(tmp_path):
    async with managed_gateway(tmp_path, auth=None) as (_, client):
        for ask in (client.get, client.post):
            assert (await ask("/api/definitions")).status_code == 401
            assert (await ask("/api/definitions/%2F")).status_code == 401


async def test_import_makes_nothing_while_the_disk_has_no_room_for_it(tmp_path, monkeypatch):
    async with managed_gateway(tmp_path) as (gateway, client):
        said = {"queues": [{"name": "q", "vhost": "/", "durable": True, "auto_delete": False, "arguments": {}}]}
        set_room_for_definitions(gateway.store, False)
        answer = await client.post("/api/definitions", json=said)
        assert answer.status_code == 503
        assert answer.json()["reason"] == "not all was made: no space left for definitions.db"
        assert gateway.doors["amqp"].vhost.find("q") is None
        set_room_for_definitions(gateway.store, True)
        free = ROOM_BYTES_MIN + (1 << 20)
        monkeypatch.setattr(table, "free_bytes", lambda _: free)
        long = json.dumps(said) + " " * (1 << 20)
        assert (await client.post("/api/definitions", content=long)).status_code == 503
        assert (await client.post("/api/definitions", json=said)).json()["imported"] == {"queues": 1}
