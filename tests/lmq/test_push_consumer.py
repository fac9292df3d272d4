from __future__ import annotations

import asyncio
import json
import re

import pytest
import pytest_asyncio

from lmq import (
    ConnectionLostError,
    ConsumeStatus,
    FlowLimits,
    MessageQueue,
    OutMessage,
    Producer,
    PushConsumer,
    ResponseError,
    amqp_queue,
    mqtt_queue,
    push_consumer,
)
from lmq.client import Client
from lmq.queue_access import QueueAccess
from lmq.remoting.commands import Command, answer, encode_json
from lmq.routes import Routes
from lmq.subscription import make_subscription

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def producer(namesrv):
    async with Producer(namesrv) as producer:
        yield producer


class Reader:
    """Looks at the group's offsets and at queues, without being a member of the group."""

    def __init__(self, routes) -> None:
        self._access = QueueAccess(routes, "g", 3)

    async def committed(self, topic, queue_id=0):
        return await self._access.committed(MessageQueue(topic, "lmq", queue_id))

    async def pull(self, topic):
        return await self._access.pull(MessageQueue(topic, "lmq", 0), 0, 32, 5, make_subscription(topic))


@pytest_asyncio.fixture
async def reader(namesrv):
    routes = Routes(namesrv, timeout_s=3, greeting=lambda: Command(34, body=b"{}"))
    yield Reader(routes)
    await routes.close()


class Heard:
    """A listener that keeps what it was given; `on(message)` says what becomes of it."""

    def __init__(self, on=lambda message: None) -> None:
        self.on = on
        self.messages = []
        self.batches = []
        self._grown = asyncio.Event()

    async def __call__(self, messages, context):
        self.batches.append(len(messages))
        self.messages += messages
        self._grown.set()
        return self.on(messages[0])

    @property
    def bodies(self):
        return [message.body for message in self.messages]

    async def until(self, count):
        async with asyncio.timeout(10):
            while len(self.messages) < count:
                self._grown.clear()
                await self._grown.wait()
        return self


async def until(happened) -> None:
    async with asyncio.timeout(10):
        while not happened():
            await asyncio.sleep(0.005)


async def ask_behind(consumer) -> None:
    """Have the broker answer what is asked behind the pulls that a consumer sent: what they brought is there then."""
    for _ in range(3):
        await consumer._access.committed(MessageQueue("T", "lmq", 0))


async def fill(producer, count, topic="T"):
    await producer.send_many([OutMessage(topic, b"%d" % i, queue_id=i % 4) for i in range(count)])


def numbers(*heard):
    return sorted(int(body) for one in heard for body in one.bodies)


async def test_all_messages_of_a_topic_are_heard_once_and_the_group_goes_on_where_it_was(namesrv, producer, reader):
    await fill(producer, 100)
    heard = Heard()
    async with PushConsumer(namesrv, "g", heard, consume_from="first") as consumer:
        consumer.subscribe("T")
        await heard.until(100)
    assert numbers(heard) == list(range(100))
    assert [await reader.committed("T", i) for i in range(4)] == [25] * 4
    await producer.send("T", b"100", queue_id=0)
    again = Heard()
    async with PushConsumer(namesrv, "g", again) as consumer:
        consumer.subscribe("T")
        await again.until(1)
    assert again.bodies == [b"100"]


async def test_a_group_that_never_was_there_begins_with_what_comes(namesrv, producer):
    await fill(producer, 4)
    heard = Heard()
    async with PushConsumer(namesrv, "g", heard) as consumer:
        consumer.subscribe("T")
        await until(lambda: len([queue for queue in consumer.assigned if queue.topic == "T"]) == 4)
        await producer.send("T", b"new", queue_id=2)
        await heard.until(1)
    assert heard.bodies == [b"new"]


async def test_a_topic_that_comes_later_is_heard_from_its_first_message(monkeypatch, namesrv, producer):
    monkeypatch.setattr(push_consumer, "UNBALANCED_S", 0.05)
    heard = Heard()
    async with PushConsumer(namesrv, "g", heard) as consumer:
        consumer.subscribe("Later")
        await until(lambda: "Later" in consumer._assignment._first_seen)
        await fill(producer, 8, "Later")
        await heard.until(8)
    assert numbers(heard) == list(range(8))


async def test_only_wanted_tags_are_heard(namesrv, producer):
    heard = Heard()
    for tag in ("Aa", "BB", "c", ""):  # the first two have the same hash
        await producer.send("T", tag.encode(), tags=tag, queue_id=0)
    async with PushConsumer(namesrv, "g", heard, consume_from="first") as consumer:
        consumer.subscribe("T", "Aa || c")
        await heard.until(2)
    assert heard.bodies == [b"Aa", b"c"]


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


async def test_a_message_that_failed_comes_again_and_then_goes_to_the_dead_letters(namesrv, producer, reader):
    heard = Heard(lambda message: ConsumeStatus.LATER)
    await producer.send("T", b"bad", queue_id=0, keys="k", properties={"unit": "C"})

    async def listen(messages, context):
        context.delay_level = 1
        return await heard(messages, context)

    async with PushConsumer(namesrv, "g", listen, consume_from="first", max_reconsume_times=1) as consumer:
        consumer.subscribe("T")
        await heard.until(2)
        dead = await reader.pull("%DLQ%g")
    assert [(one.topic, one.body, one.reconsume_times) for one in heard.messages] == [
        ("T", b"bad", 0),
        ("T", b"bad", 1),
    ]
    assert [one.key for one in heard.messages[1:]] == [heard.messages[0].key]
    (letter,) = dead.messages
    assert (letter.body, letter.keys, letter.properties["unit"]) == (b"bad", ["k"], "C")
    assert await reader.committed("T") == 1


async def test_an_error_in_the_listener_is_a_failure_of_its_messages_alone(namesrv, producer, reader, caplog):
    def fail_once(message):
        if message.body == b"2" and message.reconsume_times == 0:
            raise RuntimeError("broken")

    heard = Heard(fail_once)
    await fill(producer, 4)
    async with PushConsumer(namesrv, "g", heard, consume_from="first") as consumer:
        consumer.subscribe("T")
        await heard.until(4)
    assert numbers(heard) == [0, 1, 2, 3]
    assert "broken" in caplog.text
    assert [await reader.committed("T", i) for i in range(4)] == [1] * 4


async def test_of_a_batch_what_comes_after_the_ack_index_comes_again(namesrv, producer):
    heard = Heard()

    async def listen(messages, context):
        await heard(messages, context)
        if messages[0].reconsume_times == 0:
            context.ack_index = 1
            context.delay_level = 1

    await producer.send_many([OutMessage("T", b"%d" % i, queue_id=0) for i in range(4)])
    async with PushConsumer(namesrv, "g", listen, consume_from="first", consume_batch_size=8) as consumer:
        consumer.subscribe("T")
        await heard.until(6)
    assert heard.batches[0] == 4
    assert sorted(heard.bodies[4:]) == [b"2", b"3"]


async def test_what_cannot_be_sent_back_is_heard_again_on_the_spot(monkeypatch, namesrv, producer):
    monkeypatch.setattr("lmq.consumption.AGAIN_S", 0.05)
    monkeypatch.setattr("lmq.send_back.SendBack.give_back", _refuse)
    heard = Heard(lambda message: ConsumeStatus.LATER if message.reconsume_times < 2 else None)
    await producer.send("T", b"x", queue_id=0)
    async with PushConsumer(namesrv, "g", heard, consume_from="first") as consumer:
        consumer.subscribe("T")
        await heard.until(3)
    assert [message.reconsume_times for message in heard.messages] == [0, 1, 2]


async def _refuse(self, message, delay_level):
    return False


async def test_each_queue_is_heard_in_order_and_a_message_that_fails_holds_it_up(namesrv, producer, reader):
    def fail_twice(message):
        return ConsumeStatus.LATER if message.body == b"4" and message.reconsume_times < 2 else None

    heard = Heard(fail_twice)

    async def listen(messages, context):
        context.suspend_s = 0.01
        return await heard(messages, context)

    await fill(producer, 40)
    async with PushConsumer(namesrv, "g", listen, orderly=True, consume_from="first") as consumer:
        consumer.subscribe("T")
        await heard.until(42)
    of_queue = [int(message.body) for message in heard.messages if message.queue_id == 0]
    assert of_queue == [0, 4, 4, 4, *range(8, 40, 4)]
    for number in (1, 2, 3):
        assert [int(m.body) for m in heard.messages if m.queue_id == number] == list(range(number, 40, 4))
    assert await reader.committed("T") == 10


async def test_in_order_too_a_message_goes_to_the_dead_letters_after_its_attempts(namesrv, producer, reader):
    heard = Heard(lambda message: ConsumeStatus.LATER if message.body == b"bad" else None)

    async def listen(messages, context):
        context.suspend_s = 0.01
        return await heard(messages, context)

    await producer.send("T", b"bad", queue_id=0)
    await producer.send("T", b"good", queue_id=0)
    async with PushConsumer(
        namesrv, "g", listen, orderly=True, consume_from="first", max_reconsume_times=2
    ) as consumer:
        consumer.subscribe("T")
        await heard.until(4)
        dead = await reader.pull("%DLQ%g")
    assert heard.bodies == [b"bad", b"bad", b"bad", b"good"]
    assert [message.body for message in dead.messages] == [b"bad"]


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


async def test_no_more_is_pulled_ahead_than_the_limits_allow(namesrv, producer):
    gate = asyncio.Event()
    begun = []

    async def listen(messages, context):
        begun.append(messages)
        await gate.wait()

    await producer.send_many([OutMessage("T", b"x", queue_id=0) for _ in range(50)])
    limits = FlowLimits(messages=5)
    async with PushConsumer(
        namesrv, "g", listen, consume_from="first", pull_batch_size=2, limits=limits, concurrency=100
    ) as consumer:
        consumer.subscribe("T")
        await until(lambda: len(begun) >= 6)
        await ask_behind(consumer)
        assert len(begun) == 6
        gate.set()
        await until(lambda: len(begun) == 50)


async def test_a_stop_waits_for_the_listener_and_commits_what_it_did(namesrv, producer, reader):
    heard, gate = Heard(), asyncio.Event()

    async def listen(messages, context):
        await heard(messages, context)
        await gate.wait()

    await producer.send_many([OutMessage("T", b"%d" % i, queue_id=0) for i in range(10)])
    consumer = PushConsumer(namesrv, "g", listen, consume_from="first", concurrency=3)
    await consumer.start()
    consumer.subscribe("T")
    await heard.until(3)
    stopping = asyncio.create_task(consumer.stop())
    await until(lambda: consumer._consumption._listening._is_stopped)
    gate.set()
    await stopping
    assert len(heard.messages) == 3
    assert await reader.committed("T") == 3


async def test_a_stop_does_not_wait_for_ever(namesrv, producer, reader):
    heard = Heard()

    async def listen(messages, context):
        await heard(messages, context)
        await asyncio.Event().wait()

    await producer.send("T", b"x", queue_id=0)
    async with PushConsumer(namesrv, "g", listen, consume_from="first", stop_s=0.05) as consumer:
        consumer.subscribe("T")
        await heard.until(1)
    assert await reader.committed("T") == 0


async def test_offsets_are_committed_every_now_and_then(monkeypatch, namesrv, producer, reader):
    monkeypatch.setattr(push_consumer, "COMMIT_S", 0.02)
    heard = Heard()
    await producer.send("T", b"x", queue_id=0)
    async with PushConsumer(namesrv, "g", heard, consume_from="first") as consumer:
        consumer.subscribe("T")
        await heard.until(1)
        async with asyncio.timeout(5):
            while await reader.committed("T") != 1:
                await asyncio.sleep(0.01)


async def test_light_queues_are_heard_by_name_by_filter_and_by_amqp_queue(gateway, namesrv, producer):
    by_filter, by_queue = mqtt_queue("site/+/temp"), amqp_queue("work")
    gateway.broker.bind_filter(b"site/+/temp", by_filter.encode(), hides_dollar=True)
    heard = Heard()
    async with PushConsumer(namesrv, "g", heard, consume_from="first") as consumer:
        for name in ("%LMQ%mine", by_filter, by_queue):
            consumer.subscribe(name)
        await producer.send("T", b"mine", dispatch="%LMQ%mine")
        await producer.publish("site/1/temp", b"21.5")
        await producer.send("T", b"job", dispatch=by_queue)
        await heard.until(3)
    assert {message.queue: message.body for message in heard.messages} == {
        "%LMQ%mine": b"mine",
        by_filter: b"21.5",
        by_queue: b"job",
    }


async def test_a_topic_can_be_left(namesrv, producer):
    heard = Heard()
    async with PushConsumer(namesrv, "g", heard, consume_from="first") as consumer:
        consumer.subscribe("T")
        consumer.subscribe("U")
        await producer.send("T", b"t", queue_id=0)
        await producer.send("U", b"u", queue_id=0)
        await heard.until(2)
        consumer.unsubscribe("T")
        await until(lambda: {queue.topic for queue in consumer.assigned} == {"U", "%RETRY%g"})


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


async def test_consuming_goes_on_after_lost_connections(gateway, namesrv, producer):
    heard = Heard()
    async with PushConsumer(namesrv, "g", heard, consume_from="first") as consumer:
        consumer.subscribe("T")
        await producer.send("T", b"0", queue_id=0)
        await heard.until(1)
        gateway.connections.abort_all()
        await producer.send("T", b"1", queue_id=0)
        await heard.until(2)
    assert set(heard.bodies) == {b"0", b"1"}


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


async def test_an_expression_that_the_broker_refuses_fails_the_start(namesrv, producer):
    await fill(producer, 1)
    consumer = PushConsumer(namesrv, "g", Heard())
    consumer.subscribe("T", sql="a > ")
    with pytest.raises(ResponseError):
        await consumer.start()
    await consumer.stop()


async def test_an_expression_that_is_refused_after_the_start_is_told_and_given_up(namesrv, producer):
    await producer.send("T", b"heard", queue_id=0)
    heard = Heard()
    async with PushConsumer(namesrv, "g", heard, consume_from="first") as consumer:
        with pytest.raises(ResponseError) as caught:
            await consumer.subscribe("T", sql="a > ")
        assert caught.value.code == 23
        consumer.subscribe("Never", sql="b > ")  # nobody waits for it, and it harms nothing
        await consumer.subscribe("T")
        await heard.until(1)
    assert heard.bodies == [b"heard"]


async def test_a_consumer_that_pauses_is_given_nothing_and_goes_on(namesrv, producer, reader):
    heard = Heard()
    async with PushConsumer(namesrv, "g", heard, consume_from="first") as consumer:
        consumer.subscribe("T")
        await fill(producer, 8)
        await heard.until(8)
        consumer.pause()
        await fill(producer, 8)
        await ask_behind(consumer)
        assert (len(heard.messages), consumer.is_paused) == (8, True)
        assert len([queue for queue in consumer.assigned if queue.topic == "T"]) == 4
        consumer.resume()
        await heard.until(16)
    assert [await reader.committed("T", i) for i in range(4)] == [4] * 4


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


async def test_what_is_wanted_is_said_in_heartbeats(server):
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
    async with PushConsumer(server.address, "g", Heard(), client_id="me") as consumer:
        consumer.subscribe("T", "a || b")
        await until(lambda: MessageQueue("T", "b", 0) in consumer.assigned)
    said = [json.loads(bytes(request.body)) for request in server.requests if request.code == 34][-1]
    (group,) = said["consumerDataSet"]
    assert (group["groupName"], group["consumeType"], group["messageModel"]) == ("g", "CONSUME_PASSIVELY", "CLUSTERING")
    wanted = {one["topic"]: one["subString"] for one in group["subscriptionDataSet"]}
    assert wanted == {"T": "a || b", "%RETRY%g": "*"}


def _said(request, said):
    return answer(request, 0, body=encode_json(said))


async def test_a_listener_is_async_and_a_start_is_known():
    def plain(messages, context):
        return None

    with pytest.raises(TypeError, match=r"^listener=.* is a def"):
        PushConsumer("127.0.0.1:9876", "g", plain)
    with pytest.raises(
        ValueError, match=r"^consume_from='newest' is not known; it is one of 'first', 'last', any datetime$"
    ):
        PushConsumer("127.0.0.1:9876", "g", Heard(), consume_from="newest")


async def test_a_name_server_that_is_away_is_told_of_in_one_line_for_all_topics(monkeypatch, caplog):
    monkeypatch.setattr(push_consumer, "UNBALANCED_S", 0.01)
    async with PushConsumer("127.0.0.1:1", "g", Heard(), timeout_s=0.05) as consumer:
        consumer.subscribe("T")
        await until(lambda: consumer._troubles.sharing.failures > 4)
    (said,) = [record for record in caplog.records if record.name == "lmq.trouble"]
    assert (said.levelname, said.exc_info) == ("WARNING", None)
    assert "sharing out queues fails" in said.getMessage()
    assert "cause=" in said.getMessage()
    assert caplog.text.count("Traceback") == 0


async def test_a_pull_that_fails_is_told_of_and_so_is_that_it_works_again(monkeypatch, namesrv, producer, caplog):
    pull, failures = QueueAccess.pull, [ConnectionLostError("the broker went away") for _ in range(8)]

    async def fail_at_first(self, *args):
        if failures:
            raise failures.pop()
        return await pull(self, *args)

    monkeypatch.setattr(QueueAccess, "pull", fail_at_first)
    await fill(producer, 4)
    heard = Heard()
    async with PushConsumer(namesrv, "g", heard, consume_from="first") as consumer:
        consumer.subscribe("T")
        await heard.until(4)
    fails, works = [record.getMessage() for record in caplog.records if record.name == "lmq.trouble"]
    assert re.match(r"pulling fails at=.*the broker went away", fails)
    assert works.startswith("pulling works again")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"concurrency": 0}, "concurrency=0; it is to be 1 or more"),
        ({"consume_batch_size": 0}, "consume_batch_size=0; it is to be 1 or more"),
        ({"pull_batch_size": -1}, "pull_batch_size=-1; it is to be 1 or more"),
        ({"max_reconsume_times": -1}, "max_reconsume_times=-1; it is to be 0 or more"),
        ({"limits": 5}, "limits=5 is of type int; it is to be of type FlowLimits"),
        ({"allocate": None}, "allocate=None cannot be called"),
        ({"allocate": len}, "allocate=<built-in function len> cannot be called with what it is given"),
    ],
)
async def test_what_would_never_consume_is_refused_at_once(changes, said):
    with pytest.raises((TypeError, ValueError), match=rf"^{re.escape(said)}"):
        PushConsumer("127.0.0.1:9876", "g", Heard(), **changes)


async def test_a_topic_that_there_cannot_be_is_not_subscribed_to():
    with pytest.raises(ValueError, match=r"^topic 'site/1/temp': .* mqtt_queue makes one of a filter$"):
        PushConsumer("127.0.0.1:9876", "g", Heard()).subscribe("site/1/temp")


async def test_a_folder_of_offsets_may_be_a_text(tmp_path):
    PushConsumer("127.0.0.1:9876", "g", Heard(), broadcasting=True, offsets_dir=str(tmp_path))
