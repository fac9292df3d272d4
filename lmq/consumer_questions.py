"""What brokers ask of a push consumer for operators: how it is, how far it is, and to consume one message by hand.

Source: docs/protocols/rocketmq.md, "The SDK".
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Awaitable, Callable, Mapping

from lmq.client import Answer
from lmq.consume_stats import ConsumeStats
from lmq.consumption import ConsumeStatus, Consumption, Once
from lmq.errors import SdkError
from lmq.process_queue import ProcessQueue
from lmq.queue_access import read_messages
from lmq.queues import MessageQueue
from lmq.remoting.commands import Command, answer, encode_json
from lmq.remoting.request_codes import RequestCode
from lmq.remoting.response_codes import ResponseCode
from lmq.running_info import (
    PASSIVE,
    describe_process_queue,
    encode_queues,
    encode_running_info,
    refuse_group,
    tell_stacks,
    wants_stacks,
)
from lmq.send_back import as_sent
from lmq.subscription import Subscription

ANY_QUEUE = -1


class ConsumerQuestions:
    """Answers 221, 307 and 309.

    Args:
        group: The consumer's group.
        consumption: What gives messages to its listener.
        wanted: What it wants now, by topic.
        queues: The queues that it has now.
        stats: How quickly it consumes.
        settings: Its settings, by RocketMQ's names.
    """

    def __init__(
        self,
        group: str,
        consumption: Consumption,
        *,
        wanted: Mapping[str, Subscription],
        queues: Mapping[MessageQueue, ProcessQueue],
        stats: ConsumeStats,
        settings: Mapping[str, str],
    ) -> None:
        self._group = group
        self._consumption = consumption
        self._wanted = wanted
        self._queues = queues
        self._stats = stats
        self._settings = {
            **settings,
            "PROP_CONSUMER_START_TIMESTAMP": str(time.time_ns() // 1_000_000),
            "PROP_CONSUME_TYPE": PASSIVE,
        }

    def answerers(self) -> dict[int, Callable[[str, Command], Answer]]:
        """Return what answers which request."""
        return {
            RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT: self._tell_offsets,
            RequestCode.GET_CONSUMER_RUNNING_INFO: self._tell_all,
            RequestCode.CONSUME_MESSAGE_DIRECTLY: self._consume,
        }

    def _tell_offsets(self, _server: str, request: Command) -> Command:
        """Tell how far the queues of a topic are."""
        topic = request.ext.get("topic", "")
        queues = self._queues if request.ext.get("group") == self._group else {}
        offsets = {queue: one.offset for queue, one in queues.items() if queue.topic == topic}
        body = b'{"consumerTable":{},"messageQueueTable":%b}' % encode_queues(offsets)
        return answer(request, ResponseCode.SUCCESS, body=body)

    def _tell_all(self, _server: str, request: Command) -> Command:
        if request.ext.get("consumerGroup") != self._group:
            return refuse_group(request)
        body = encode_running_info(
            self._settings,
            self._wanted.values(),
            {queue: describe_process_queue(one) for queue, one in self._queues.items()},
            {topic: self._stats.of(topic).describe() for topic in self._wanted},
            stacks=tell_stacks() if wants_stacks(request) else None,
        )
        return answer(request, ResponseCode.SUCCESS, body=body)

    def _consume(self, _server: str, request: Command) -> Command | Awaitable[Command]:
        if request.ext.get("consumerGroup") != self._group:
            return refuse_group(request)
        return self._consume_once(request)

    async def _consume_once(self, request: Command) -> Command:
        """Have the listener given the message in the request, beside those that it is given otherwise."""
        queue = MessageQueue("", request.ext.get("brokerName", ""), ANY_QUEUE)
        try:
            (found,) = read_messages(request, queue)
        except (SdkError, ValueError) as error:
            return answer(request, ResponseCode.SYSTEM_ERROR, f"the message cannot be read: {error}")
        found = as_sent(dataclasses.replace(found, queue=found.topic))
        once = await self._consumption.consume_once(found)
        return answer(request, ResponseCode.SUCCESS, body=encode_json(_describe(once)))


def _describe(once: Once) -> dict[str, object]:
    result = "CR_SUCCESS" if once.status is ConsumeStatus.SUCCESS else "CR_LATER"
    said: dict[str, object] = {
        "autoCommit": True,
        "consumeResult": result if once.error is None else "CR_THROW_EXCEPTION",
        "order": once.is_orderly,
        "spentTimeMills": once.took_ms,
    }
    if once.error is not None:
        said["remark"] = f"{type(once.error).__name__}: {once.error}"
    return said
