from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.admin import ELSEWHERE, declare, make_client, make_view, managed_gateway
from tests.support.admin_clients import add_user, publish, subscribe

pytestmark = pytest.mark.asyncio


def _samples(text):
    return {
        (sample.name, *(sample.labels[name] for name in sorted(sample.labels))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def test_queues_are_counted_and_the_deepest_are_named(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client), subscribe(gateway, "device", "a/+", "b"):
        declare(gateway, "deep", "empty")
        await publish(client, "amq.default", "deep", "x")
        found = _samples((await client.get("/metrics")).text)
        assert (found["lmq_queues",], found["lmq_queue_messages_ready",], found["lmq_subscriptions",]) == (2, 1, 2)
        assert found["lmq_deepest_queue_messages", "deep", "/"] == 1
        assert ("lmq_deepest_queue_messages", "empty", "/") not in found
        assert (found["lmq_retained",], found["lmq_delayed",]) == (0, 0)
        found = _samples((await client.get("/metrics/detailed?queue=deep&queue=none")).text)
        assert (
            found["lmq_detailed_queue_ready", "deep", "/"]
            == found["lmq_detailed_queue_messages_total", "deep", "/"]
            == 1
        )
        assert found["lmq_detailed_queue_redelivered_total", "deep", "/"] == 0
        assert not [key for key in found if "none" in key]
        assert (await client.get("/metrics/detailed")).status_code == 400
        for path in ("/metrics", "/healthz", "/readyz"):
            answer = await client.head(path)
            assert (answer.status_code, answer.content) == (200, b"")
        async with make_client(make_view(gateway), auth=None, peer=ELSEWHERE) as stranger:
            assert (await stranger.get("/metrics/detailed?queue=deep")).status_code == 401


async def test_queues_of_all_doors_are_told_by_name_and_one_that_is_not_there_is_refused(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client), subscribe(gateway, "device", "plant/#"):
        declare(gateway, "deep", "plant/#")
        gateway.doors["rocketmq"].topics.open_for_send(b"Orders", b"TBW102", 2)
        gateway.broker.intern_queue(b"Orders/0")
        for topic in ("plant.1", "plant.2"):
            await publish(client, "amq.topic", topic, "x")
        asked = {"queue": ["plant/#", "Orders/0", "none", "LMQ_PARENT/0", "Orders/9"]}
        found = _samples((await client.get("/metrics/detailed", params=asked)).text)
        assert {key: value for key, value in found.items() if "light" in key[0]} == {
            ("lmq_detailed_light_queue_kept", "mqtt", "plant/#"): 2,
            ("lmq_detailed_light_queue_readers", "mqtt", "plant/#"): 1,
            ("lmq_detailed_light_queue_messages_total", "mqtt", "plant/#"): 2,
            ("lmq_detailed_light_queue_kept", "rocketmq", "Orders/0"): 0,
            ("lmq_detailed_light_queue_readers", "rocketmq", "Orders/0"): 0,
            ("lmq_detailed_light_queue_messages_total", "rocketmq", "Orders/0"): 0,
        }
        assert found["lmq_detailed_queue_ready", "plant/#", "/"] == 0  # an AMQP queue of that name
        for asked in ({"queue": "wrong"}, {"queue": "deep", "vhost": "wrong"}, {"queue": ["Orders/9", "wrong"]}):
            answer = await client.get("/metrics/detailed", params=asked)
            assert (answer.status_code, "no queue of these: " in answer.json()["reason"]) == (404, True)
        await add_user(client, "some", "management", read=".*")
        async with make_client(make_view(gateway), auth=("some", "some")) as some:
            assert (await some.get("/metrics/detailed?queue=deep")).status_code == 200
            assert (await some.get("/metrics/detailed?queue=Orders/0")).status_code == 404


async def test_queues_whose_messages_come_again_are_named(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        declare(gateway, "well")
        await client.put("/api/queues/%2F/mails", json={"arguments": {"x-max-priority": 2}})
        for queue in ("mails", "well"):
            await publish(client, "amq.default", queue, "x", {"priority": 1})
        asked = {"count": 1, "encoding": "auto"}
        for _ in range(3):
            await client.post("/api/queues/%2F/mails/get", json={**asked, "ackmode": "ack_requeue_true"})
        await client.post("/api/queues/%2F/well/get", json={**asked, "ackmode": "ack_requeue_false"})
        found = _samples((await client.get("/metrics")).text)
        again = {key: value for key, value in found.items() if key[0].startswith("lmq_redelivering")}
        assert again == {
            ("lmq_redelivering_queue_redelivered_total", "mails", "/"): 2,
            ("lmq_redelivering_queue_messages_total", "mails", "/"): 1,
        }


async def test_sessions_and_groups_that_are_behind_are_named_with_what_waits_for_them(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        for name, filters in (("away", ("plant/#", "other")), ("member", ("$share/crew/plant/+",)), ("idle", ("no",))):
            async with subscribe(gateway, name, *filters):
                pass
        for topic in ("plant.1", "plant.2", "other"):
            await publish(client, "amq.topic", topic, "x")
        gateway.broker.consumer_offsets.commit(b"CID_RMQ_SYS_LETTERS", b"%LMQ%mqtt%other", 0)  # an operator's place
        found = _samples((await client.get("/metrics")).text)
        behind = {key: value for key, value in found.items() if "session_messages" in key[0] or "lagging" in key[0]}
        assert behind == {
            ("lmq_deepest_session_messages", "away"): 3,
            ("lmq_lagging_group_messages", "mqtt", "crew"): 2,
        }
