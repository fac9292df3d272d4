"""The members of a group: how they share queues out, take over from one another, and are seen."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime

import pytest

from lmq import (
    ConnectFailedError,
    ConsumeStatus,
    MessageQueue,
    OutMessage,
    PushConsumer,
)
from lmq.client import Client
from lmq.remoting.commands import Command, answer, encode_json
from tests.support.heard import Heard, fill, numbers
from tests.support.waiting import until

pytestmark = pytest.mark.asyncio


async def test_members_share_out_the_queues_and_one_takes_over_what_another_leaves(namesrv, producer):
    one, other = Heard(), Heard()
    await fill(producer, 4)
    async with PushConsumer(namesrv, "g", one, consume_from="first", client_id="a") as first:
        first.subscribe("T")
        await one.until(4)
        async with PushConsumer(namesrv, "g", other, client_id="b") as second:
            second.subscribe("T")
            await until(lambda: [q.queue_id for q in first.assigned if q.topic == "T"] == [0, 1])
            await until(lambda: [q.queue_id for q in second.assigned if q.topic == "T"] == [2, 3])
            await fill(producer, 40)
            await until(lambda: len(one.messages) + len(other.messages) >= 44)
            assert {message.queue_id for message in other.messages} == {2, 3}
        await until(lambda: len([q for q in first.assigned if q.topic == "T"]) == 4)
        await fill(producer, 4)
        await until(lambda: len(one.messages) + len(other.messages) >= 48)
    assert numbers(one, other) == sorted([*range(4), *range(40), *range(4)])


async def test_a_queue_in_order_changes_hands_when_its_batch_is_over(namesrv, producer):
    """No two members have messages of one queue at the same time, and none is heard twice."""
    working: dict[int, str] = {}
    found: list[int] = []

    def listener(name):
        async def listen(messages, context):
            queue_id = context.queue.queue_id
            assert working.setdefault(queue_id, name) == name
            await asyncio.sleep(0.02)  # work that is under way when the other comes
            found.extend(int(message.body) for message in messages)
            del working[queue_id]

        return listen

    await fill(producer, 80)
    options = {"orderly": True, "consume_from": "first"}
    async with PushConsumer(namesrv, "g", listener("a"), client_id="a", **options) as first:
        first.subscribe("T")
        await until(lambda: len(found) > 4)
        async with PushConsumer(namesrv, "g", listener("b"), client_id="b", **options) as second:
            second.subscribe("T")
            await until(lambda: len([q for q in second.assigned if q.topic == "T"]) == 2)
            await until(lambda: len(found) >= 80)
    assert sorted(found) == list(range(80))


async def test_in_a_broadcast_each_member_hears_all_and_goes_on_where_it_was(namesrv, producer, tmp_path):
    options = {"broadcasting": True, "consume_from": "first", "offsets_dir": tmp_path}
    one, other, again = Heard(), Heard(), Heard()
    await fill(producer, 8)
    async with PushConsumer(namesrv, "g", one, client_id="a", **options) as first:
        first.subscribe("T")
        async with PushConsumer(namesrv, "g", other, client_id="b", **options) as second:
            second.subscribe("T")
            await one.until(8)
            await other.until(8)
    await producer.send("T", b"8", queue_id=0)
    async with PushConsumer(namesrv, "g", again, client_id="a", **options) as first:
        first.subscribe("T")
        await again.until(1)
    assert numbers(one) == numbers(other) == list(range(8))
    assert again.bodies == [b"8"]
    kept = json.loads((tmp_path / "a" / "g" / "offsets.json").read_text())["offsets"]
    assert {(row["queue_id"], row["offset"]) for row in kept} == {(0, 3), (1, 2), (2, 2), (3, 2)}


async def test_members_share_in_a_way_of_ones_own(namesrv, producer):
    """The example of a group that has a spare member: only the one on a named address works."""

    def only(address):
        def allocate(client_id, queues, members):
            return queues if client_id.startswith(f"{address}@") else []

        return allocate

    here, spare = Heard(), Heard()
    options = {"consume_from": "first", "allocate": only("10.0.0.1")}
    await fill(producer, 8)
    async with PushConsumer(namesrv, "g", spare, client_id="10.0.0.2@x", **options) as second:
        second.subscribe("T")
        async with PushConsumer(namesrv, "g", here, client_id="10.0.0.1@x", **options) as first:
            first.subscribe("T")
            await here.until(8)
            assert second.assigned == []
    assert spare.messages == []


async def test_a_group_goes_on_where_it_is_told_to(gateway, namesrv, producer, reader):
    heard = Heard()
    await producer.send_many([OutMessage("T", b"%d" % i, queue_id=0) for i in range(4)])
    async with PushConsumer(namesrv, "g", heard, consume_from="first") as consumer:
        consumer.subscribe("T")
        await heard.until(4)
        body = b'{"offsetTable":{{"brokerName":"lmq","queueId":0,"topic":"T"}:2}}'
        for client in gateway.doors["rocketmq"].clients.find_group("g").members.values():
            client.send(Command(220, flag=2, ext={"group": "g", "topic": "T"}, body=body))
        await heard.until(6)
    assert heard.bodies[4:] == [b"2", b"3"]
    assert await reader.committed("T") == 4


async def test_another_takes_over_from_a_member_that_dies(gateway, namesrv, producer):
    """A member that is killed says no goodbye, and gives nothing up."""
    one, other = Heard(), Heard()
    await fill(producer, 8)
    dying = PushConsumer(namesrv, "g", one, consume_from="first", client_id="a")
    dying.subscribe("T")
    await dying.start()
    await one.until(8)
    async with PushConsumer(namesrv, "g", other, client_id="b") as second:
        second.subscribe("T")
        await until(lambda: len([q for q in second.assigned if q.topic == "T"]) == 2)
        for task in [*dying._tasks, *dying._readers.values()]:
            task.cancel()
        await dying._routes.close()
        await until(lambda: len([q for q in second.assigned if q.topic == "T"]) == 4)
        await fill(producer, 8)
        await until(lambda: numbers(other).count(7) and numbers(other).count(4))
    assert set(numbers(other)) == set(range(8))


async def test_a_commit_that_fails_as_a_queue_is_given_up_does_not_set_its_next_owner_back(
    namesrv, producer, reader, monkeypatch
):
    async def fail(queue, _offset):
        raise ConnectFailedError(queue.broker_name, "away")

    one, other = Heard(), Heard()
    options = {"consume_from": "first"}
    async with PushConsumer(namesrv, "g", one, client_id="a", **options) as first:
        first.subscribe("T")
        await fill(producer, 4)
        await one.until(4)
        with monkeypatch.context() as away:
            away.setattr(first._access, "commit", fail)
            second = PushConsumer(namesrv, "g", other, client_id="b", **options)
            second.subscribe("T")
            await second.start()
            await until(lambda: [q.queue_id for q in second.assigned if q.topic == "T"] == [2, 3])
            await fill(producer, 4)
            await until(lambda: len([one for one in other.messages if one.queue_offset == 1]) == 2)
            await until(lambda: all(one.offset == 2 for q, one in second._queues.items() if q.topic == "T"))
            await second._save_offsets()
        await first._save_offsets()
        assert [await reader.committed("T", queue_id) for queue_id in range(2, 4)] == [2, 2]
        await second.stop()


async def test_operators_see_a_consumer_and_have_it_consume_by_hand(gateway, namesrv, producer):
    heard = Heard(lambda message: ConsumeStatus.LATER if message.body == b"fails" else None)
    broker = Client("{}:{}".format(*gateway.listening["broker"]))
    sent = await producer.send("T", b"fails", queue_id=0)
    async with PushConsumer(namesrv, "g", heard, client_id="me", max_reconsume_times=0) as consumer:
        consumer.subscribe("T", "a || b")
        await until(lambda: consumer.assigned)
        ext = {"consumerGroup": "g", "clientId": "me"}
        info = await broker.request(Command(307, ext=ext | {"jstackEnable": "true"}))
        assert (info.code, b'"PROP_CONSUME_TYPE":"CONSUME_PASSIVELY"' in bytes(info.body)) == (0, True)
        assert b"_keep_balanced" in bytes(info.body)
        said = await broker.request(Command(309, ext=ext | {"msgId": sent.msg_id}))
        assert json.loads(bytes(said.body))["consumeResult"] == "CR_LATER"
    assert heard.bodies == [b"fails"]
    await broker.close()


@pytest.mark.parametrize(
    ("consume_from", "word"),
    [("first", "FIRST_OFFSET"), ("last", "LAST_OFFSET"), (datetime(2026, 1, 1, tzinfo=UTC), "TIMESTAMP")],
)
async def test_what_is_wanted_is_said_in_heartbeats(server, consume_from, word):
    table = {"b": {"brokerAddrs": {"0": server.address}, "brokerName": "b"}}
    server.on[106] = lambda request: _said(request, {"brokerAddrTable": table})
    server.on[105] = lambda request: _said(
        request,
        {
            "brokerDatas": [{"brokerAddrs": {"0": server.address}, "brokerName": "b"}],
            "queueDatas": [{"brokerName": "b", "readQueueNums": 1, "writeQueueNums": 1}],
        },
    )
    server.on[38] = lambda request: _said(request, {"consumerIdList": ["me"]})
    server.on[11] = lambda request: None
    server.on[29] = server.on[30] = lambda request: answer(request, 0, ext={"offset": "0"})
    async with PushConsumer(server.address, "g", Heard(), client_id="me", consume_from=consume_from) as consumer:
        consumer.subscribe("T", "a || b")
        await until(lambda: MessageQueue("T", "b", 0) in consumer.assigned)
    said = [json.loads(bytes(request.body)) for request in server.requests if request.code == 34][-1]
    (group,) = said["consumerDataSet"]
    assert (group["groupName"], group["consumeType"], group["messageModel"]) == ("g", "CONSUME_PASSIVELY", "CLUSTERING")
    assert group["consumeFromWhere"] == f"CONSUME_FROM_{word}"
    wanted = {one["topic"]: one["subString"] for one in group["subscriptionDataSet"]}
    assert wanted == {"T": "a || b", "%RETRY%g": "*"}


def _said(request, said):
    return answer(request, 0, body=encode_json(said))
