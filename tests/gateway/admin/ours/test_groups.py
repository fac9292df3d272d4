from __future__ import annotations

import asyncio

import pytest

from gateway.admin.asking import open_queue
from gateway.rocketmq.group_table import Group
from lmq import Producer, PushConsumer
from tests.support.admin import managed_gateway
from tests.support.admin_clients import publish, subscribe
from tests.support.waiting import until

pytestmark = pytest.mark.asyncio


async def _take(messages, context):
    """Take what comes."""


async def test_groups_tell_their_lag_and_are_sent_elsewhere(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        host, port = gateway.listening["namesrv"]
        async with Producer(f"{host}:{port}", group="p") as producer:
            sent = await producer.send("ORDERS", b"x")
        key = f"ORDERS/{sent.queue_id}"
        gateway.broker.consumer_offsets.commit(b"billing", key.encode(), 0)
        await open_queue(gateway.broker, gateway.broker.find_queue(key.encode()))  # as its consumers do
        (found,) = (await client.get("/api/lmq/groups?sort=lag")).json()
        assert found == {
            "door": "rocketmq",
            "group": "billing",
            "queue": key,
            "next_offset": 0,
            "lag": 1,
            "members": 0,
            "redelivered": 0,
            "light_queue": key,
        }
        gateway.broker.consumer_offsets.commit(b"CID_RMQ_SYS_TIMER", b"rmq_sys_wheel_timer/1", 0)
        assert [one["group"] for one in (await client.get("/api/lmq/groups?page=1")).json()["items"]] == ["billing"]
        own = (await client.get("/api/lmq/groups?internal=true")).json()
        assert sorted(one["group"] for one in own) == ["CID_RMQ_SYS_TIMER", "billing"]
        path = "/api/lmq/groups/billing/reset"
        answer = await client.post(path, json={"queue": key, "offset": 99})
        assert answer.json() == {"group": "billing", "queue": key, "next_offset": 1}
        (item,) = (await client.get("/api/lmq/messages", params={"queue": key})).json()["items"]
        (where,) = (await client.get(f"/api/lmq/messages/{item['id']}")).json()["queues"]
        assert where["readers"][0]["outcome"] == "acknowledged, or passed over as its group was sent on"
        assert (await client.get("/api/lmq/groups")).json()[0]["lag"] == 0
        assert (await client.post(path, json={"queue": key, "at_ms": 0})).json()["next_offset"] == 0
        assert (await client.post(path, json={"queue": key})).status_code == 400
        assert (await client.post("/api/lmq/groups/other/reset", json={"queue": key, "offset": 0})).status_code == 404


async def test_a_group_is_sent_elsewhere_in_queues_that_nothing_came_to(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        gateway.broker.consumer_offsets.commit(b"billing", b"ORDERS/3", 0)
        path = "/api/lmq/groups/billing/reset"
        for wanted in ({"offset": 7}, {"at_ms": 1}):
            answer = await client.post(path, json={"queue": "ORDERS/3", **wanted})
            assert answer.json() == {"group": "billing", "queue": "ORDERS/3", "next_offset": 0}
        assert (await client.post(path, json={"queue": "NONE/0", "offset": 0})).status_code == 404


async def test_shared_subscriptions_are_groups_with_what_their_members_got_once_more(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        counts, shared = gateway.broker.metrics.door("mqtt"), "$share/workers/jobs/#"
        async with subscribe(gateway, "leaves", shared):
            for number in range(3):
                await publish(client, "amq.topic", "jobs.1", f"{number}", {"delivery_mode": 2})
            await until(lambda: counts.messages_out == 3)
        async with subscribe(gateway, "stays", shared):
            await until(lambda: counts.messages_out == 6)
            (found,) = (await client.get("/api/lmq/groups?door=mqtt")).json()
            assert found == {
                "door": "mqtt",
                "group": "workers",
                "queue": "jobs/#",
                "next_offset": 0,
                "lag": 3,
                "members": 1,
                "redelivered": 3,
                "light_queue": "%LMQ%mqtt%jobs%|h",
            }
            samples = [
                line for line in (await client.get("/metrics")).text.splitlines() if "redelivering_group" in line
            ]
            labels = '{door="mqtt",group="workers",queue="jobs/#"}'
            for name in ("redelivered", "messages"):
                assert f"lmq_redelivering_group_{name}_total{labels} 3.0" in samples
            (queue,) = (await client.get("/api/lmq/groups")).json()
            assert (await client.get("/api/lmq/groups/workers")).json() == {
                "door": "mqtt",
                "group": "workers",
                "members": 1,
                "member_names": ["stays"],
                "lag": 3,
                "redelivered": 3,
                "retries_max": None,
                "dead_letters": None,
                "queue_details": [queue],
            }
        assert (await client.get("/api/lmq/groups?door=rocketmq")).json() == []
        answer = await client.post("/api/lmq/groups/workers/reset", json={"queue": "jobs/#", "offset": 0})
        assert (answer.status_code, "shared subscriptions" in answer.text) == (400, True)


async def test_a_group_is_told_with_its_members_its_queues_and_its_dead_letters(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        host, port = gateway.listening["namesrv"]
        door = gateway.doors["rocketmq"]
        for queue in ("ORDERS/0", "ORDERS/1"):
            gateway.broker.consumer_offsets.commit(b"billing", queue.encode(), 0)
        door.groups.set(b"billing", Group(retryMaxTimes=3))
        async with (
            Producer(f"{host}:{port}", group="p") as producer,
            PushConsumer(f"{host}:{port}", "fresh", _take, client_id="member") as consumer,
        ):
            await producer.send("%DLQ%billing", b"given up")
            found = (await client.get("/api/lmq/groups/billing")).json()
            queues = found.pop("queue_details")
            assert [(one["queue"], one["lag"]) for one in queues] == [("ORDERS/0", 0), ("ORDERS/1", 0)]
            assert found == {
                "door": "rocketmq",
                "group": "billing",
                "members": 0,
                "member_names": [],
                "lag": 0,
                "redelivered": 0,
                "retries_max": 3,
                "dead_letters": 1,
            }
            await producer.send("ORDERS", b"x")
            consumer.subscribe("ORDERS", "*")
            async with asyncio.timeout(20):
                while (await client.get("/api/lmq/groups/fresh")).status_code == 404:
                    await asyncio.sleep(0)
            fresh = (await client.get("/api/lmq/groups/fresh")).json()
            assert (fresh["members"], fresh["member_names"], fresh["retries_max"]) == (1, ["member"], 16)


async def test_a_group_that_is_not_there_or_of_two_doors_is_refused(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        answer = await client.get("/api/lmq/groups/both")
        assert (answer.status_code, "no group 'both'" in answer.text) == (404, True)
        gateway.broker.consumer_offsets.commit(b"both", b"ORDERS/0", 0)
        assert (await client.get("/api/lmq/groups/both")).json()["door"] == "rocketmq"
        async with subscribe(gateway, "member", "$share/both/jobs"):
            answer = await client.get("/api/lmq/groups/both")
            assert (answer.status_code, "give the door (mqtt, rocketmq)" in answer.text) == (400, True)
            for door in ("mqtt", "rocketmq"):
                assert (await client.get(f"/api/lmq/groups/both?door={door}")).json()["door"] == door
        await client.put("/api/users/ann", json={"password": "ann", "tags": "management"})
        assert (await client.get("/api/lmq/groups/both", auth=("ann", "ann"))).status_code == 404
