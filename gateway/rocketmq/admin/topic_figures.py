"""Topics in figures and lists: where their queues begin and end, and what is set of each.

Source: docs/protocols/rocketmq.md, "Tools".
"""

from __future__ import annotations

from core.broker import Broker
from core.message import StoredBatch
from core.reserved import RESERVED_TOPICS
from gateway.rocketmq.admin.queue_tables import encode_queue, encode_table
from gateway.rocketmq.admin.works import AdminPeer, Steps, check_size, read_store_ms, stepwise
from gateway.rocketmq.errors import CommandRefusedError
from gateway.rocketmq.fields import text_field
from gateway.rocketmq.opened import opened
from gateway.rocketmq.topic_admin import describe_topic
from gateway.rocketmq.topic_table import NOT_SENDABLE, TEMPLATE, TopicTable, queue_key
from lmq.remoting.commands import Command, answer, encode_json
from lmq.remoting.response_codes import ResponseCode

NO_VERSION = {"counter": 0, "stateVersion": 0, "timestamp": 0}  # of a table: nobody copies ours


class TopicFigures:
    """Answers 21, 202, 224, 304 and 305."""

    def __init__(self, broker: Broker, topics: TopicTable, broker_name: str, cluster: str) -> None:
        self._broker = broker
        self._topics = topics
        self._broker_name = broker_name
        self._cluster = cluster
        self._one = StoredBatch(1)

    def stats(self, request: Command, peer: AdminPeer) -> Steps:
        """Answer with the first and the next offset of each queue, and when its last message was stored."""
        name = text_field(request, "topic")
        topic = self._topics.get(name.encode())
        if not peer.may_read(name.encode()):
            raise CommandRefusedError(ResponseCode.NO_PERMISSION, f"no permission to read {name}")
        broker = self._broker
        rows: list[tuple[bytes, object]] = []
        for queue_id, is_end in stepwise(range(max(topic.read_queues, topic.write_queues))):
            ref = broker.find_queue(queue_key(name.encode(), queue_id))
            first = last = stored_ms = 0
            if ref >= 0 and (yield from opened(broker, ref)):
                first, last = broker.min_offset(ref), broker.max_offset(ref)
            if last > first:
                stored_ms = yield from read_store_ms(broker, self._one, ref, last - 1)
            figures = {"lastUpdateTimestamp": stored_ms, "maxOffset": last, "minOffset": first}
            rows.append((encode_queue(self._broker_name, name, queue_id), figures))
            if is_end:
                yield
        body = encode_table("offsetTable", rows, {"topicPutTps": 0.0})
        return answer(request, ResponseCode.SUCCESS, body=check_size(body))

    def all_settings(self, request: Command) -> Steps:
        """Answer with what is set of all topics."""
        pieces: list[bytes] = []
        for name, is_end in stepwise(sorted(self._topics.names())):
            topic = self._topics.find(name)
            if topic is not None:
                said = describe_topic(name.decode(), topic)
                pieces.append(b"%b:%b" % (encode_json(name.decode()), encode_json(said)))
            if is_end:
                yield
        body = b'{"dataVersion":%b,"topicConfigTable":{%b}}' % (encode_json(NO_VERSION), b",".join(pieces))
        return answer(request, ResponseCode.SUCCESS, body=check_size(body))

    def of_cluster(self, request: Command) -> Command:
        """Answer with the names of all topics, for the cluster that we are."""
        is_ours = text_field(request, "cluster") == self._cluster
        names = sorted(name.decode() for name in self._topics.names()) if is_ours else []
        return answer(request, ResponseCode.SUCCESS, body=encode_json({"topicList": names}))

    def system(self, request: Command, address: str) -> Command:
        """Answer with the topics that belong to the broker."""
        names = sorted(name.decode() for name in (NOT_SENDABLE - RESERVED_TOPICS) | {TEMPLATE})
        said = {"brokerAddr": address, "topicList": [*names, self._cluster, self._broker_name]}
        return answer(request, ResponseCode.SUCCESS, body=encode_json(said))
