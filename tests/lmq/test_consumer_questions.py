from __future__ import annotations

import json

import pytest

from lmq import ConsumeStatus, FlowLimits, MessageQueue
from lmq.consume_stats import ConsumeStats
from lmq.consumer_questions import ConsumerQuestions
from lmq.consumption import ConcurrentConsumption, OrderlyConsumption, Supervision
from lmq.process_queue import ProcessQueue
from lmq.remoting.commands import Command
from lmq.subscription import make_subscription
from tests.support.records import encode_record
from tests.support.store import make_record

pytestmark = pytest.mark.asyncio

QUEUE = MessageQueue("T", "b", 2)


def questions(listen=None, *, is_orderly: bool = False):
    async def nothing(messages, context):
        return None

    shape = (listen or nothing, None, 1, Supervision(1))
    consumption = OrderlyConsumption(*shape, None, needs_lock=False) if is_orderly else ConcurrentConsumption(*shape)
    found = ConsumerQuestions(
        "g",
        consumption,
        wanted={"T": make_subscription("T", "a")},
        queues={QUEUE: ProcessQueue(QUEUE, 7, FlowLimits())},
        stats=ConsumeStats(),
        settings={"PROP_CONSUMEORDERLY": "false"},
    )
    return found.answerers()


async def test_it_tells_what_it_wants_and_how_far_it_is():
    body = bytes(questions()[307]("b:1", Command(307, ext={"consumerGroup": "g"})).body)
    assert body.startswith(b'{"mqTable":{{"brokerName":"b","queueId":2,"topic":"T"}:{')
    assert b'"commitOffset":7' in body
    assert b'"PROP_CONSUME_TYPE":"CONSUME_PASSIVELY"' in body
    assert b'"subString":"a"' in body


async def test_it_tells_offsets_of_a_topic():
    ask = questions()[221]
    said = bytes(ask("b:1", Command(221, ext={"group": "g", "topic": "T"})).body)
    assert said == b'{"consumerTable":{},"messageQueueTable":{{"brokerName":"b","queueId":2,"topic":"T"}:7}}'
    for ext in ({"group": "h", "topic": "T"}, {"group": "g", "topic": "U"}):
        assert b'"messageQueueTable":{}' in bytes(ask("b:1", Command(221, ext=ext)).body)


@pytest.mark.parametrize("is_orderly", [False, True])
@pytest.mark.parametrize(
    ("says", "result"), [(None, "CR_SUCCESS"), (ConsumeStatus.LATER, "CR_LATER"), (7, "CR_THROW_EXCEPTION")]
)
async def test_one_message_is_consumed_by_hand(says, result, is_orderly):
    given = []

    async def listen(messages, context):
        given.append((messages[0].topic, messages[0].body, context.queue))
        return says

    ext = {"consumerGroup": "g", "brokerName": "b"}
    properties = b"RETRY_TOPIC\x01T\x02"
    stored = make_record(topic=b"%RETRY%g", body=b"again", queue_id=1, properties=properties)
    record = encode_record(stored, with_crc=False)
    answered = await questions(listen, is_orderly=is_orderly)[309]("b:1", Command(309, ext=ext, body=record))
    said = json.loads(bytes(answered.body))
    assert (said["consumeResult"], said["order"]) == (result, is_orderly)
    assert ("TypeError" in said.get("remark", "")) == (says == 7)
    assert given == [("T", b"again", MessageQueue("%RETRY%g", "b", 1))]


@pytest.mark.parametrize("body", [b"", b"x" * 40, b"\x00\x00\x00\x01"])
async def test_a_record_that_is_none_is_refused(body):
    answered = await questions()[309]("b:1", Command(309, ext={"consumerGroup": "g"}, body=body))
    assert answered.code == 1


async def test_another_group_is_not_there():
    for code in (307, 309):
        assert questions()[code]("b:1", Command(code, ext={"consumerGroup": "h"})).code == 1
