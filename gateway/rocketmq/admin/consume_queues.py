"""Queues as an operator looks into them: where each message lies, and the hash of its tag.

Source: docs/protocols/rocketmq.md, "Tools".
"""

from __future__ import annotations

from collections.abc import Generator

from core.broker import Broker
from core.message import AWAY, StoredBatch
from core.properties import TAGS, decode_properties
from gateway.rocketmq.admin.group_figures import describe_subscription, java_hash
from gateway.rocketmq.admin.works import TRIES_MAX, AdminPeer, Steps, check_size
from gateway.rocketmq.client_table import ClientTable
from gateway.rocketmq.errors import CommandRefusedError
from gateway.rocketmq.fields import integer_field, text_field
from gateway.rocketmq.opened import opened
from gateway.rocketmq.topic_table import TopicTable, queue_key
from lmq.remoting.commands import Command, answer, encode_json
from lmq.remoting.response_codes import ResponseCode

COUNT_MAX = 10_000  # of one answer; chosen: each is a line of JSON, and a frame has 16 MiB
READ_COUNT = 32  # messages of one step
READ_BYTES = 1 << 20  # of their records, where they are large


class ConsumeQueues:
    """Answers 321."""

    def __init__(self, broker: Broker, topics: TopicTable, clients: ClientTable) -> None:
        self._broker = broker
        self._topics = topics
        self._clients = clients
        self._found = StoredBatch(READ_COUNT)

    def tell(self, request: Command, peer: AdminPeer) -> Steps:
        """Answer with a stretch of a queue, and what a group wants of it."""
        name = text_field(request, "topic")
        queue_id, first = integer_field(request, "queueId"), integer_field(request, "index")
        count = min(integer_field(request, "count"), COUNT_MAX)
        if not peer.may_read(queue_key(name.encode(), queue_id)):
            raise CommandRefusedError(ResponseCode.NO_PERMISSION, f"no permission to read {name}")
        ref = self._broker.find_queue(queue_key(name.encode(), queue_id)) if queue_id >= 0 else -1
        if ref < 0 or self._topics.find(name.encode()) is None:
            raise CommandRefusedError(ResponseCode.SYSTEM_ERROR, f"{queue_id}@{name} is not exist!")
        if not (yield from opened(self._broker, ref)):
            raise CommandRefusedError(ResponseCode.SYSTEM_BUSY, "the queue's ends cannot be told now")
        said: dict[str, object] = {
            "maxQueueIndex": self._broker.max_offset(ref),
            "minQueueIndex": self._broker.min_offset(ref),
        }
        group_name = request.ext.get("consumerGroup")
        if group_name:
            group = self._clients.find_group(group_name)
            wanted = group.subscriptions.get(name) if group is not None else None
            if wanted is None:
                said["filterData"] = f"{group_name}@{name} is not online!"
            else:
                said["subscriptionData"] = describe_subscription(name, wanted)
        said["queueData"] = yield from self._read(ref, max(first, 0), max(first, 0) + count)
        return answer(request, ResponseCode.SUCCESS, body=check_size(encode_json(said)))

    def _read(self, ref: int, offset: int, end: int) -> Generator[None, None, list[dict[str, object]]]:
        """Return what is known of the messages [offset, end), as far as they are kept."""
        rows: list[dict[str, object]] = []
        found = self._found
        tries = 0
        while offset < end and tries < TRIES_MAX:
            count = self._broker.read(ref, offset, found, min(READ_COUNT, end - offset), READ_BYTES)
            if count == AWAY:
                tries += 1
            elif count <= 0:
                break
            else:
                rows += [_describe(found, i) for i in range(count) if found.queue_offset[i] < end]
                offset = found.next_offset
                found.clear()
            yield
        return rows


def _describe(found: StoredBatch, i: int) -> dict[str, object]:
    properties = decode_properties(bytes(found.buf[found.properties_start[i] : found.properties_end[i]]))
    return {
        "eval": False,
        "physicOffset": found.physical_offset[i],
        "physicSize": found.record_end[i] - found.record_start[i],
        "tagsCode": java_hash(properties.get(TAGS, b"").decode(errors="replace")),
    }
