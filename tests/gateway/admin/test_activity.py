from __future__ import annotations

import asyncio

import pytest

from gateway.admin import activity
from gateway.admin.activity import Level, Rates, find_rates
from tests.support.admin import declare, make_client, make_view
from tests.support.admin_clients import publish, subscribe
from tests.support.gateway import running_gateway
from tests.support.waiting import WAIT_S

pytestmark = pytest.mark.asyncio
NAMES = ("deliver_get", "redeliver", "ack")


async def test_what_leaves_a_queue_is_not_told_as_nothing_before_it_was_looked_at_twice(tmp_path, monkeypatch):
    now = [1_000.0]
    monkeypatch.setattr(activity, "monotonic", lambda: now[0])
    async with running_gateway(tmp_path) as gateway, make_client(make_view(gateway)) as client:
        view = client._transport.app.state.view
        declare(gateway, "jobs")
        for _ in range(20):
            await publish(client, "amq.default", "jobs", "x")
        got = {"count": 5, "ackmode": "ack_requeue_false", "encoding": "auto"}

        async def take_and_look():
            await client.post("/api/queues/%2F/jobs/get", json=got)
            now[0] += 5
            await view.activity.look()

        async def find_rates_told():
            queue = (await client.get("/api/queues/%2F/jobs")).json()
            (ours,) = (await client.get("/api/lmq/queues")).json()
            stats = queue["message_stats"]
            told = (*(stats.get(f"{name}_details") for name in NAMES), queue.get("messages_details"))
            return told, ours["rate_out"], ours["rate_again"]

        await take_and_look()
        assert await find_rates_told() == ((None, None, None, None), None, None)
        await take_and_look()
        assert await find_rates_told() == ((None, None, None, None), None, None)
        await take_and_look()
        one, none = {"rate": 1.0}, {"rate": 0.0}
        assert await find_rates_told() == ((one, none, one, {"rate": -1.0}), 1.0, 0.0)
        now[0] += activity.TOLD_S + 1
        await take_and_look()  # nobody asked for it
        assert await find_rates_told() == ((None, None, None, None), None, None)
        for _ in range(2):
            now[0] += activity.TOLD_S + 1
            await view.activity.look()
        assert await find_rates_told() == ((none, none, none, none), 0.0, 0.0)  # nothing was taken since


@pytest.mark.here(reason="a list tells of the oldest message that is here")
async def test_what_comes_and_goes_between_two_looks_is_the_rate(tmp_path, monkeypatch):
    now = [1_000.0]
    monkeypatch.setattr(activity, "monotonic", lambda: now[0])
    monkeypatch.setattr(activity, "BLOCK", 2)  # so that there are several
    async with (
        running_gateway(tmp_path) as gateway,
        make_client(make_view(gateway)) as client,
        subscribe(gateway, "device", "plant/#"),
    ):
        view = client._transport.app.state.view
        declare(gateway, "idle", "jobs")
        await view.activity.look()
        assert (await client.get("/api/queues/%2F/jobs")).json()["messages_details"] == {"rate": 0.0}
        for _ in range(20):
            await publish(client, "amq.default", "jobs", "12345")
        await publish(client, "amq.topic", "plant.1", "x")
        now[0] += 5
        await view.activity.look()
        found = {one["name"]: one for one in (await client.get("/api/lmq/queues")).json()}
        assert {name: one["rate_in"] for name, one in found.items()} == {"idle": 0.0, "jobs": 4.0, "plant/#": 0.2}
        assert (found["jobs"]["body_bytes_mean"], found["idle"]["rate_out"], found["plant/#"]["rate_out"]) == (
            5,
            0,
            None,
        )
        assert found["jobs"]["oldest_at_ms"] <= found["jobs"]["newest_at_ms"]
        asked = {"columns": "name", "sort": "message_stats.publish_details.rate", "sort_reverse": "true"}
        assert (await client.get("/api/queues", params=asked)).json() == [{"name": "jobs"}, {"name": "idle"}]
        got = {"count": 5, "ackmode": "ack_requeue_false", "encoding": "auto"}
        assert len((await client.post("/api/queues/%2F/jobs/get", json=got)).json()) == 5
        now[0] += 5
        await view.activity.look()
        queue = (await client.get("/api/queues/%2F/jobs")).json()
        stats = queue["message_stats"]
        assert (stats["publish"], stats["ack"], stats["deliver_get"]) == (20, 5, 5)
        assert [stats[f"{name}_details"]["rate"] for name in ("publish", "ack", "deliver_get")] == [0.0, 1.0, 1.0]
        assert (queue["messages_details"]["rate"], queue["message_bytes"]) == (-1.0, 75)


async def test_a_message_that_comes_again_and_again_is_found_by_its_queue(tmp_path, monkeypatch):
    now = [1_000.0]
    monkeypatch.setattr(activity, "monotonic", lambda: now[0])
    async with running_gateway(tmp_path) as gateway, make_client(make_view(gateway)) as client:
        view = client._transport.app.state.view
        declare(gateway, "calm", "mails")
        await publish(client, "amq.default", "calm", "fine")
        await publish(client, "amq.default", "mails", "poison")
        await client.get("/api/queues")  # so that they are watched
        await view.activity.look()
        back = {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"}
        for _ in range(11):
            await client.post("/api/queues/%2F/mails/get", json=back)
        now[0] += 5
        await view.activity.look()
        asked = {"sort": "message_stats.redeliver_details.rate", "sort_reverse": "true"}
        mails, calm = (await client.get("/api/queues", params=asked)).json()
        stats = mails["message_stats"]
        assert (mails["name"], stats["redeliver"], stats["redeliver_details"]) == ("mails", 10, {"rate": 2.0})
        assert (stats["deliver_get"], stats["deliver_get_details"], stats["ack"]) == (10, {"rate": 2.0}, 0)
        assert calm["message_stats"]["redeliver_details"] == {"rate": 0.0}
        ours = (await client.get("/api/lmq/queues", params={"sort": "rate_again", "sort_reverse": "true"})).json()
        assert [(one["name"], one["rate_again"]) for one in ours] == [("mails", 2.0), ("calm", 0.0)]


async def test_messages_of_each_priority_are_counted(tmp_path):
    async with running_gateway(tmp_path) as gateway, make_client(make_view(gateway)) as client:
        await client.put("/api/queues/%2F/jobs", json={"arguments": {"x-max-priority": 5}})
        for priority in (0, 3, 5):
            sent = {
                "routing_key": "jobs",
                "payload": "x",
                "payload_encoding": "string",
                "properties": {"priority": priority},
            }
            await client.post("/api/exchanges/%2F/amq.default/publish", json=sent)
        async with asyncio.timeout(WAIT_S):  # until the engine has told of all
            while (await client.get("/api/queues/%2F/jobs")).json()["message_stats"]["publish"] != 3:
                await asyncio.sleep(0)


async def test_looks_are_not_made_too_often(tmp_path, monkeypatch):
    async with running_gateway(tmp_path) as gateway:
        look = make_view(gateway).activity
        assert look.is_due()
        await look.look()
        assert not look.is_due()
        monkeypatch.setattr(activity, "monotonic", lambda: 1e12)
        assert look.is_due()


async def test_only_the_busiest_of_very_many_are_remembered(tmp_path, monkeypatch):
    monkeypatch.setattr(activity, "GROWN_MAX", 2)  # one of them is what all messages are in
    async with running_gateway(tmp_path) as gateway, make_client(make_view(gateway)) as client:
        view = client._transport.app.state.view
        declare(gateway, "a", "b")
        await view.activity.look()
        for name in ("a", "b", "b"):
            await publish(client, "amq.default", name, "x")
        await view.activity.look()
        found = {one["name"]: one["rate_in"] for one in (await client.get("/api/lmq/queues?door=amqp")).json()}
        assert found["b"] > found["a"] == 0


async def test_rates_between_two_moments():
    before, now = Level(10.0, 100, 40, 10, 1), Level(12.0, 120, 30, 14, 7)
    assert find_rates(before, now) == Rates(given=10.0, delivered=18.0, left=13.0, ready=-5.0, unacked=2.0, again=3.0)
