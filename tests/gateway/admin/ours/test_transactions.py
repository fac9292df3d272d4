from __future__ import annotations

import asyncio

import pytest

from gateway.admin.ours import transactions
from lmq import TransactionProducer, TransactionState
from tests.support.admin import make_client, make_view, managed_gateway
from tests.support.logins import quick_hash

pytestmark = pytest.mark.asyncio


def _producer(gateway, group):
    async def unknown(*_):
        return TransactionState.UNKNOWN

    return TransactionProducer(":".join(map(str, gateway.listening["namesrv"])), group, check=unknown)


async def _send(producer, topic, body, state):
    async def decide(_):
        return state

    await producer.send_in_transaction(topic, body, decide, keys="k")


async def _until(client, count):
    async with asyncio.timeout(60):
        while (found := (await client.get("/api/lmq/transactions")).json())["pending"] != count:
            await asyncio.sleep(0.001)
    return found["items"]


async def test_transactions_without_an_end_are_told_the_oldest_first_with_who_can_be_asked(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        assert (await client.get("/api/lmq/transactions")).json() == {"pending": 0, "items": []}
        async with _producer(gateway, "payers") as payers:
            async with _producer(gateway, "gone") as gone:
                await _send(gone, "Pay", b"left", TransactionState.UNKNOWN)
            await _send(payers, "Pay", b"done", TransactionState.COMMIT)
            await _send(payers, "Ship", b"open", TransactionState.UNKNOWN)
            first, second = await _until(client, 2)
            page = (await client.get("/api/lmq/transactions?page=2&page_size=1&columns=topic")).json()
            assert (page["items"], page["total_count"], page["pending"]) == ([{"topic": "Ship"}], 2, 2)
            for asked in ("sort=topic&sort_reverse=true&page=1&page_size=1", "name=ship", "count=1&sort=topic&name=s"):
                (one,) = (await client.get(f"/api/lmq/transactions?{asked}")).json()["items"]
                assert one["topic"] == "Ship"
            while first["producers"]:  # its connection is closed a moment later
                first, second = await _until(client, 2)
            assert (first["topic"], first["group"], first["producers"], first["body_bytes"]) == ("Pay", "gone", 0, 4)
            assert (second["topic"], second["group"], second["producers"]) == ("Ship", "payers", 1)
            assert second["number"] > first["number"]
            assert 0 < first["stored_at_ms"] <= second["stored_at_ms"]
            shown = (await client.get(f"/api/lmq/messages/{first['id']}")).json()
            assert shown["body"] == "left"
            (only,) = (await client.get("/api/lmq/transactions?count=1")).json()["items"]
            assert only["id"] == first["id"]
    async with managed_gateway(tmp_path) as (_, client):
        items = await _until(client, 2)
        assert [(one["id"], one["producers"]) for one in items] == [(first["id"], 0), (second["id"], 0)]


async def test_transactions_are_for_monitors(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        await client.put("/api/users/ann", json={"password_hash": quick_hash("x"), "tags": "management"})
        async with make_client(make_view(gateway), auth=("ann", "x")) as ann:
            assert (await ann.get("/api/lmq/transactions")).status_code == 401


async def test_what_waits_is_asked_for_a_few_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(transactions, "READ_COUNT", 2)
    async with managed_gateway(tmp_path) as (gateway, client), _producer(gateway, "payers") as payers:
        for number in range(5):
            await _send(payers, "Pay", b"%d" % number, TransactionState.UNKNOWN)
        plain = await _until(client, 5)
        service, asked = gateway.doors["rocketmq"].transactions, []
        waiting = service.waiting
        monkeypatch.setattr(service, "waiting", lambda count, *first: asked.append(count) or waiting(count, *first))
        found = (await client.get("/api/lmq/transactions?page=1")).json()
        assert (found["pending"], found["items"]) == (5, plain)
        assert [one["number"] for one in plain] == sorted(one["number"] for one in plain)
        assert set(asked) == {2}
        three = (await client.get("/api/lmq/transactions?count=3")).json()
        assert (three["pending"], three["items"]) == (5, plain[:3])
