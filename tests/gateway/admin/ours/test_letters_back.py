from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest

from gateway.settings.models import AuthSettings
from lmq import Producer, PushConsumer, SimpleConsumer
from tests.gateway.rocketmq.test_send_back import offset_of
from tests.support.admin import managed_gateway
from tests.support.admin_clients import add_user
from tests.support.rocketmq import LOCALHOST, request_frame, send_frame
from tests.support.rocketmq_door import Peer

pytestmark = pytest.mark.asyncio
DEAD = {"door": "rocketmq", "source": "%DLQ%billing"}
REASON = "the letter at offset {}: properties has 32844 bytes, more than 32767"
RIGHTS = {"configure": ".*", "write": ".*", "read": ".*"}


async def ask(peer, frame):
    """Return the door's answer, which comes when all is stored."""
    peer.give(frame)
    async with asyncio.timeout(30):
        while not (answers := peer.take()):
            await asyncio.sleep(0)
    return answers[0]


async def bury(gateway, *bodies, group="billing"):
    """Have messages be dead letters of a group."""
    site = SimpleNamespace(door=gateway.doors["rocketmq"], now_ms=time.time_ns() // 1_000_000)
    peer = Peer(site, 99, LOCALHOST)
    for body in bodies:
        place = offset_of(await ask(peer, send_frame(body, topic="Orders")))
        ext = {"offset": place, "group": group, "delayLevel": -1, "originMsgId": "k", "originTopic": "Orders"}
        assert (await ask(peer, request_frame(36, **ext))).code == 0
    peer.close()


@asynccontextmanager
async def consuming(gateway, failing):
    """Yield a queue of what the group is given; while `failing` is set, it gives up on all of it."""
    given = asyncio.Queue()

    async def handle(messages, _context):
        for message in messages:
            given.put_nowait(message)
        if failing.is_set():
            raise ValueError("cannot")

    namesrv = "{}:{}".format(*gateway.listening["namesrv"])
    options = {"consume_from": "first", "max_reconsume_times": 0}
    async with PushConsumer(namesrv, "billing", handle, **options) as consumer:
        consumer.subscribe("Orders", "paid")
        yield given


async def letters_of(client):
    return {one["name"]: one for one in (await client.get("/api/lmq/dead-letters")).json()}


async def until_dead(client, count):
    async with asyncio.timeout(30):
        while (await letters_of(client)).get("%DLQ%billing", {"messages": 0})["messages"] < count:
            await asyncio.sleep(0.01)


@pytest.mark.slow
async def test_a_groups_dead_letters_come_to_its_consumer_again_with_all_that_they_had(tmp_path):
    failing = asyncio.Event()
    failing.set()
    async with managed_gateway(tmp_path) as (gateway, client):
        namesrv = "{}:{}".format(*gateway.listening["namesrv"])
        async with Producer(namesrv) as producer, consuming(gateway, failing) as given:
            said = {"tags": "paid", "keys": ["o-1"], "properties": {"region": "north"}}
            await producer.send("Orders", b"an order", **said)
            first = await given.get()
            await until_dead(client, 1)
            failing.clear()
            answer = await client.post("/api/lmq/move", json=DEAD)
            assert answer.json() == {"moved": 1, "left": 0, "reasons": []}
            async with asyncio.timeout(30):
                again = await given.get()
    assert (again.topic, again.body, again.tags, again.keys) == ("Orders", b"an order", "paid", ["o-1"])
    assert (again.reconsume_times, again.properties["region"]) == (0, "north")
    assert again.properties["ORIGIN_MESSAGE_ID"]
    assert again.properties.get("UNIQ_KEY") == first.properties.get("UNIQ_KEY")


async def test_letters_that_were_sent_back_are_counted_no_more(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        await bury(gateway, b"1", b"2", b"3")
        one = (await letters_of(client))["%DLQ%billing"]
        assert (one["messages"], one["next_offset"], one["from"]) == (3, 0, ["billing"])
        assert one["oldest_at_ms"] > 0
        assert (await client.post("/api/lmq/move", json=DEAD | {"count": 2})).json()["moved"] == 2
        one = (await letters_of(client))["%DLQ%billing"]
        assert (one["messages"], one["next_offset"]) == (1, 2)
        assert (await client.post("/api/lmq/move", json=DEAD)).json()["moved"] == 1
        assert (await client.post("/api/lmq/move", json=DEAD)).json()["moved"] == 0
        one = (await letters_of(client))["%DLQ%billing"]
        assert (one["messages"], one["next_offset"], one["oldest_at_ms"]) == (0, 3, None)
        found = (await client.get("/api/lmq/messages", params={"queue": "%RETRY%billing/0", "offset": 0})).json()
        assert [item["body"] for item in found["items"]] == ["1", "2", "3"]
        assert {item["properties"]["RETRY_TOPIC"] for item in found["items"]} == {"Orders"}


async def test_letters_go_to_a_topic_where_one_is_named(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        await bury(gateway, b"1")
        before = (await client.get("/api/lmq/topics")).text
        for destination, code, reason in (
            ("Nowhere", 404, "no topic 'Nowhere'"),
            ("%LMQ%q", 400, "'%LMQ%q' is not a topic of RocketMQ clients"),
            ("SCHEDULE_TOPIC_XXXX", 400, "'SCHEDULE_TOPIC_XXXX' is not a topic of RocketMQ clients"),
            ("LMQ_PARENT", 400, "'LMQ_PARENT' is not a topic of RocketMQ clients"),
        ):
            answer = await client.post("/api/lmq/move", json=DEAD | {"destination": destination})
            assert (answer.status_code, answer.json()["reason"]) == (code, reason)
        assert (await client.get("/api/lmq/topics")).text == before
        assert (await client.post("/api/lmq/move", json=DEAD | {"destination": "Orders"})).json()["moved"] == 1
        bodies = []
        for one in (await client.get("/api/lmq/queues", params={"name": "Orders/"})).json():
            found = await client.get("/api/lmq/messages", params={"queue": one["light_queue"], "offset": 0})
            bodies += [item["body"] for item in found.json()["items"]]
        assert bodies == ["1", "1"]


async def test_letters_keep_the_topic_that_they_are_of_where_the_retry_topic_is_named(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        await bury(gateway, b"1", b"2")
        assert (await client.post("/api/lmq/move", json=DEAD | {"count": 1})).json()["moved"] == 1  # makes the topic
        named = await client.post("/api/lmq/move", json=DEAD | {"destination": "%RETRY%billing"})
        assert named.json() == {"moved": 1, "left": 0, "reasons": []}
        found = (await client.get("/api/lmq/messages", params={"queue": "%RETRY%billing/0", "offset": 0})).json()
        told = [(item["body"], item["properties"].get("RETRY_TOPIC")) for item in found["items"]]
        assert told == [("1", "Orders"), ("2", "Orders")]


@pytest.mark.slow
async def test_a_group_that_would_not_read_them_is_sent_none_unless_a_topic_is_named(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        namesrv = "{}:{}".format(*gateway.listening["namesrv"])
        async with SimpleConsumer(namesrv, "billing", consume_from="first") as consumer:
            consumer.subscribe("Orders")
            await bury(gateway, b"1")
            (first,) = await consumer.receive()
            await consumer.ack(first)
            answer = await client.post("/api/lmq/move", json=DEAD)
            assert (answer.status_code, answer.json()["reason"]) == (
                400,
                "members of group 'billing' do not read '%RETRY%billing': name a topic, for all its groups",
            )
            assert (await client.post("/api/lmq/move", json=DEAD | {"destination": "Orders"})).json()["moved"] == 1
            (again,) = await consumer.receive()
            assert (again.body, again.reconsume_times) == (b"1", 0)


async def test_what_is_no_topic_of_dead_letters_is_told(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        await bury(gateway, b"1")
        for wanted, code, reason in (
            (DEAD | {"source": "Orders"}, 400, "'Orders' is not a topic of dead letters: give %DLQ% and a group"),
            (DEAD | {"source": "%DLQ%none"}, 404, "no topic '%DLQ%none'"),
            (DEAD | {"vhost": "v"}, 400, "RocketMQ's topics are of the virtual host '/'"),
            ({"source": "%DLQ%billing"}, 404, "no queue '%DLQ%billing' in vhost '/'"),
        ):
            answer = await client.post("/api/lmq/move", json=wanted)
            assert (answer.status_code, answer.json()["reason"]) == (code, reason)
        assert (await client.post("/api/lmq/move", json=DEAD | {"source": "%DLQ%billing/0"})).json()["moved"] == 1


async def test_who_sends_letters_back_may_read_and_write_what_is_of_the_group(tmp_path):
    async with managed_gateway(tmp_path, rights=AuthSettings(rocketmq_anonymous=True)) as (gateway, client):
        await bury(gateway, b"1")
        assert (await client.post("/api/lmq/move", json=DEAD, auth=None)).status_code == 401
        await add_user(client, "ann", "management", read="billing")
        answer = await client.post("/api/lmq/move", json=DEAD, auth=("ann", "ann"))
        assert (answer.status_code, answer.json()["reason"][:57]) == (
            401,
            "write access to '%RETRY%billing' refused for user 'ann': "[:57],
        )
        await client.put("/api/permissions/%2F/ann", json={"configure": "", "write": "billing", "read": ""})
        answer = await client.post("/api/lmq/move", json=DEAD, auth=("ann", "ann"))
        assert "read access to '%DLQ%billing' refused for user 'ann'" in answer.json()["reason"]
        rights = {"configure": "", "write": "billing", "read": "billing"}
        await client.put("/api/permissions/%2F/ann", json=rights)
        assert (await client.post("/api/lmq/move", json=DEAD, auth=("ann", "ann"))).json()["moved"] == 1


async def test_letters_are_sent_back_by_one_at_a_time(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        await bury(gateway, *(b"%d" % number for number in range(100)))
        answers = await asyncio.gather(*(client.post("/api/lmq/move", json=DEAD) for _ in range(2)))
        assert sorted(answer.status_code for answer in answers) == [200, 409]
        found = await client.get("/api/lmq/messages", params={"queue": "%RETRY%billing/0", "offset": 0, "count": 200})
        assert [item["body"] for item in found.json()["items"]] == [str(number) for number in range(100)]


async def test_while_the_disk_is_low_letters_stay(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        await bury(gateway, b"1")
        gateway.broker.room.note(0, is_full=True, now_ms=time.time_ns() // 1_000_000)
        answer = await client.post("/api/lmq/move", json=DEAD)
        assert (answer.status_code, answer.json()["reason"].partition(":")[0]) == (503, "moved 0, then")
        assert (await letters_of(client))["%DLQ%billing"]["messages"] == 1


async def test_a_letter_that_no_record_can_hold_any_more_is_passed_over_and_told(tmp_path):
    """Its copy says where it comes from, for which there is no room: the letters behind it go back all the same."""
    group = "g" * 100
    full = f"a\x01{'x' * 32_590}\x02"
    async with managed_gateway(tmp_path) as (gateway, client):
        site = SimpleNamespace(door=gateway.doors["rocketmq"], now_ms=time.time_ns() // 1_000_000)
        peer = Peer(site, 99, LOCALHOST)
        for body, properties in ((b"1", ""), (b"2", full), (b"3", full), (b"4", "")):
            sent = await ask(peer, send_frame(body, topic=f"%DLQ%{group}", e="0", properties=properties))
            assert sent.code == 0, sent.remark
        peer.close()
        wanted = {"door": "rocketmq", "source": f"%DLQ%{group}"}
        answer = await client.post("/api/lmq/move", json=wanted | {"count": 2})
        assert answer.json() == {"moved": 1, "left": 1, "reasons": [REASON.format(1)]}
        answer = await client.post("/api/lmq/move", json=wanted)
        assert answer.json() == {"moved": 1, "left": 1, "reasons": [REASON.format(2)]}
        assert (await letters_of(client))[f"%DLQ%{group}"]["messages"] == 0
        found = (await client.get("/api/lmq/messages", params={"queue": f"%RETRY%{group}/0", "offset": 0})).json()
        assert [item["body"] for item in found["items"]] == ["1", "4"]
        found = (await client.get("/api/lmq/messages", params={"queue": f"%DLQ%{group}/0", "offset": 1})).json()
        assert [item["body"] for item in found["items"]] == ["2", "3", "4"]


async def test_it_is_told_of_a_letter_that_it_was_sent_back(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        await bury(gateway, b"1")
        await client.post("/api/lmq/move", json=DEAD)
        items = (await client.get("/api/lmq/messages", params={"queue": "%DLQ%billing/0", "offset": 0})).json()["items"]
        told = (await client.get(f"/api/lmq/messages/{items[0]['id']}")).json()
        readers = [reader for queue in told["queues"] for reader in queue["readers"]]
        assert [reader["outcome"] for reader in readers] == ["sent back by an operator"]
