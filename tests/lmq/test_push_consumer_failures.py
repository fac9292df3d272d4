"""What fails at a push consumer: a message, the listener, the broker, the way there."""

from __future__ import annotations

import re

import pytest

from lmq import (
    ConnectionLostError,
    ConsumeStatus,
    OutMessage,
    PushConsumer,
    ResponseError,
    push_consumer,
)
from lmq.queue_access import QueueAccess
from tests.support.heard import Heard, fill, numbers
from tests.support.waiting import until

pytestmark = pytest.mark.asyncio


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


async def test_in_order_too_a_batch_is_done_up_to_the_ack_index(namesrv, producer, reader):
    heard = Heard()

    async def listen(messages, context):
        context.suspend_s = 0.01
        if len(heard.batches) == 0:
            context.ack_index = 1
        return await heard(messages, context)

    await producer.send_many([OutMessage("T", b"%d" % i, queue_id=0) for i in range(4)])
    async with PushConsumer(namesrv, "g", listen, orderly=True, consume_from="first", consume_batch_size=8) as consumer:
        consumer.subscribe("T")
        await heard.until(6)
    assert (heard.bodies, heard.batches) == ([b"0", b"1", b"2", b"3", b"2", b"3"], [4, 2])
    assert [message.reconsume_times for message in heard.messages] == [0, 0, 0, 0, 1, 1]
    assert await reader.committed("T") == 4


async def test_in_order_too_a_listener_can_give_a_message_up_at_once(namesrv, producer, reader):
    heard = Heard(lambda message: ConsumeStatus.LATER if message.body == b"bad" else None)

    async def listen(messages, context):
        context.delay_level = -1
        return await heard(messages, context)

    for body in (b"bad", b"good"):
        await producer.send("T", body, queue_id=0)
    async with PushConsumer(namesrv, "g", listen, orderly=True, consume_from="first") as consumer:
        consumer.subscribe("T")
        await heard.until(2)
        dead = await reader.pull("%DLQ%g")
    assert heard.bodies == [b"bad", b"good"]
    assert [message.body for message in dead.messages] == [b"bad"]


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
