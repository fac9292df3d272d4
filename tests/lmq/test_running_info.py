from __future__ import annotations

import asyncio
import json

import pytest

from lmq import FlowLimits, Message, MessageQueue
from lmq.process_queue import ProcessQueue
from lmq.remoting.commands import Command
from lmq.running_info import (
    describe_process_queue,
    encode_queues,
    encode_running_info,
    refuse_group,
    tell_stacks,
    wants_stacks,
)
from lmq.subscription import make_subscription


def test_queues_are_keys_as_rocketmqs_tools_read_them():
    rows = {MessageQueue("T", "b", 1): 7, MessageQueue("T", "b", 0): 5}
    assert encode_queues(rows) == (
        b'{{"brokerName":"b","queueId":0,"topic":"T"}:5,{"brokerName":"b","queueId":1,"topic":"T"}:7}'
    )
    assert encode_queues({}) == b"{}"


def test_a_process_queue_tells_how_far_it_is_and_what_waits():
    queue = ProcessQueue(MessageQueue("T", "b", 0), 3, FlowLimits())
    assert describe_process_queue(queue)["cachedMsgCount"] == 0
    queue.put([Message("T", b"x" * (1 << 20), {}, "T", 0, i, 0, 0, 0, b"") for i in (4, 6)], 9)
    said = describe_process_queue(queue)
    assert (said["commitOffset"], said["cachedMsgMinOffset"], said["cachedMsgMaxOffset"]) == (4, 4, 6)
    assert (said["cachedMsgCount"], said["cachedMsgSizeInMiB"], said["locked"], said["droped"]) == (2, 2, False, False)
    assert said["lastPullTimestamp"] > 0 == said["lastConsumeTimestamp"]


def test_all_is_one_object():
    body = encode_running_info(
        {"PROP_CONSUME_TYPE": "CONSUME_PASSIVELY"}, [make_subscription("T", "a")], {}, {"T": {}}, stacks="here"
    )
    said = json.loads(body)
    assert said["mqTable"] == said["mqPopTable"] == said["userConsumerInfo"] == {}
    assert said["subscriptionSet"][0]["subString"] == "a"
    assert (said["statusTable"], said["jstack"]) == ({"T": {}}, "here")
    assert "jstack" not in json.loads(encode_running_info({}, [], {}, {}, stacks=None))


@pytest.mark.asyncio
async def test_stacks_are_those_of_the_loops_tasks():
    async def a_job_that_waits():
        await asyncio.Event().wait()

    task = asyncio.create_task(a_job_that_waits())
    await asyncio.sleep(0)
    assert "a_job_that_waits" in tell_stacks()
    task.cancel()
    assert wants_stacks(Command(307, ext={"jstackEnable": "true"}))
    assert not wants_stacks(Command(307))


def test_a_group_that_is_not_there_is_named():
    assert refuse_group(Command(307, ext={"consumerGroup": "g"})).remark == (
        "The Consumer Group <g> not exist in this consumer"
    )
