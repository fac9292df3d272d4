"""What a consumer tells of itself where an operator asks: `mqadmin consumerStatus`, and the consoles that ask the same.

Source: docs/protocols/rocketmq.md, "The SDK".
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterable, Mapping

from lmq.process_queue import ProcessQueue
from lmq.queues import MessageQueue
from lmq.remoting.commands import Command, answer, encode_json
from lmq.remoting.response_codes import ResponseCode
from lmq.subscription import Subscription

TASKS_MAX = 1_000  # whose stacks are told, of 20 lines each; chosen: nobody reads more of them
STACKS_CHARACTERS_MAX = 1 << 20  # of an answer, whose frame has 16 MiB at official brokers
ACTIVE, PASSIVE = "CONSUME_ACTIVELY", "CONSUME_PASSIVELY"


def encode_queues(rows: Mapping[MessageQueue, object]) -> bytes:
    """Return a table by queue as RocketMQ's tools read it: the keys are objects, which is no JSON."""
    pieces = [
        b"%b:%b"
        % (
            encode_json({"brokerName": queue.broker_name, "queueId": queue.queue_id, "topic": queue.topic}),
            encode_json(value),
        )
        for queue, value in sorted(rows.items())
    ]
    return b"{%b}" % b",".join(pieces)


def describe_process_queue(one: ProcessQueue) -> dict[str, object]:
    """Return how far a queue is, and what of it waits for the listener."""
    first, last, count, size = one.measure()
    return {
        "cachedMsgCount": count,
        "cachedMsgMaxOffset": last,
        "cachedMsgMinOffset": first,
        "cachedMsgSizeInMiB": size >> 20,
        "commitOffset": one.offset,
        "droped": one.is_dropped,
        "lastConsumeTimestamp": one.consumed_ms,
        "lastLockTimestamp": one.locked_ms,
        "lastPullTimestamp": one.pulled_ms,
        "locked": one.is_locked,
        "transactionMsgCount": 0,
        "transactionMsgMaxOffset": 0,
        "transactionMsgMinOffset": 0,
        "tryUnlockTimes": 0,
    }


def encode_running_info(
    properties: Mapping[str, str],
    subscriptions: Iterable[Subscription],
    queues: Mapping[MessageQueue, object],
    status: Mapping[str, object],
    *,
    stacks: str | None,
) -> bytes:
    """Return the body of the answer.

    Args:
        properties: The consumer's settings, by RocketMQ's names.
        subscriptions: What it wants.
        queues: What is said of each queue that it has.
        status: What is said of each topic.
        stacks: What its tasks do, where that is asked for.
    """
    rest = {
        "mqPopTable": {},
        "properties": dict(properties),
        "statusTable": dict(status),
        "subscriptionSet": [one.describe() for one in subscriptions],
        "userConsumerInfo": {},
    }
    if stacks is not None:
        rest["jstack"] = stacks
    return b'{"mqTable":%b,%b' % (encode_queues(queues), encode_json(rest)[1:])


def wants_stacks(request: Command) -> bool:
    """Whether the operator wants to know what the consumer's tasks do."""
    return request.ext.get("jstackEnable", "").lower() == "true"


def tell_stacks() -> str:
    """Return where each task of the loop stands now."""
    out = io.StringIO()
    for task in sorted(asyncio.all_tasks(), key=lambda one: one.get_name())[:TASKS_MAX]:
        task.print_stack(limit=20, file=out)
        if out.tell() > STACKS_CHARACTERS_MAX:
            break
    return out.getvalue()


def refuse_group(request: Command) -> Command:
    """Return the answer to a question about a group that this consumer is no member of."""
    remark = f"The Consumer Group <{request.ext.get('consumerGroup', '')}> not exist in this consumer"
    return answer(request, ResponseCode.SYSTEM_ERROR, remark)
