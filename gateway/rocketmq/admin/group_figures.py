"""Consumer groups in figures: how far each is, its members, and what it wants.

Source: docs/protocols/rocketmq.md, "Tools".
"""

from __future__ import annotations

from collections.abc import Generator

from core.broker import Broker
from core.message import StoredBatch
from gateway.rocketmq.admin.queue_tables import encode_queue, encode_table, topic_of
from gateway.rocketmq.admin.works import AdminPeer, Steps, check_size, read_store_ms, stepwise
from gateway.rocketmq.client import Client
from gateway.rocketmq.client_table import ClientTable, ConsumerGroup
from gateway.rocketmq.errors import CommandRefusedError
from gateway.rocketmq.fields import text_field
from gateway.rocketmq.filters.subscription import Subscription
from gateway.rocketmq.opened import opened
from gateway.rocketmq.topic_table import TopicTable, queue_key
from lmq.remoting.commands import LANGUAGES, Command, answer, encode_json
from lmq.remoting.response_codes import ResponseCode


class GroupFigures:
    """Answers 203, 208, 300, 303, 343 and 345."""

    def __init__(self, broker: Broker, topics: TopicTable, clients: ClientTable, broker_name: str) -> None:
        self._broker = broker
        self._topics = topics
        self._clients = clients
        self._broker_name = broker_name
        self._one = StoredBatch(1)

    # Who

    def connections(self, request: Command) -> Command:
        """Answer with the clients of a group, and what it wants."""
        name = text_field(request, "consumerGroup")
        group = self._clients.find_group(name)
        if group is None:
            remark = f"the consumer group[{name}] not online"
            raise CommandRefusedError(ResponseCode.CONSUMER_NOT_ONLINE, remark)
        said = {
            "connectionSet": [describe_client(member) for member in group.members.values()],
            "consumeFromWhere": group.starts_at,
            "consumeType": group.kind,
            "messageModel": "BROADCASTING" if group.is_broadcast else "CLUSTERING",
            "subscriptionTable": _describe_all(group),
        }
        return answer(request, ResponseCode.SUCCESS, body=check_size(encode_json(said)))

    def subscription(self, request: Command) -> Command:
        """Answer with what a group wants of a topic."""
        group = self._clients.find_group(text_field(request, "group"))
        topic = text_field(request, "topic")
        found = group.subscriptions.get(topic) if group is not None else None
        said = {
            "group": text_field(request, "group"),
            "subscriptionData": None if found is None else describe_subscription(topic, found),
            "topic": topic,
        }
        return answer(request, ResponseCode.SUCCESS, body=encode_json(said))

    def groups_of(self, request: Command) -> Steps:
        """Answer with the groups that consume a topic: by their clients, and by the offsets that they left."""
        topic = text_field(request, "topic")
        found: set[str] = set()
        for (name, group), is_end in stepwise(self._clients.groups()):
            if topic in group.subscriptions:
                found.add(name)
            if is_end:
                yield
        for (group_name, key, _), is_end in stepwise(self._broker.consumer_offsets.items()):
            if topic_of(key)[0] == topic.encode():
                found.add(group_name.decode(errors="replace"))
            if is_end:
                yield
        return answer(request, ResponseCode.SUCCESS, body=check_size(encode_json({"groupList": sorted(found)})))

    def topics_of(self, request: Command) -> Steps:
        """Answer with the topics on which a group left offsets."""
        names = yield from self._consumed(text_field(request, "group"))
        body = encode_json({"brokerAddr": None, "topicList": sorted(names)})
        return answer(request, ResponseCode.SUCCESS, body=check_size(body))

    def _consumed(self, group: str) -> Generator[None, None, set[str]]:
        """Return the topics on which a group left offsets."""
        wanted = group.encode()
        names: set[str] = set()
        for (name, key, _), is_end in stepwise(self._broker.consumer_offsets.items()):
            if name == wanted:
                names.add(topic_of(key)[0].decode(errors="replace"))
            if is_end:
                yield
        return names

    # How far

    def progress(self, request: Command, peer: AdminPeer) -> Steps:
        """Answer with how far a group is on each queue of its topics, or of one."""
        group = text_field(request, "consumerGroup")
        only = request.ext.get("topic", "")
        names = {only} if only else (yield from self._consumed(group))
        live = self._clients.find_group(group)
        if live is not None and live.subscriptions:
            names &= live.subscriptions.keys()
        rows: list[tuple[bytes, object]] = []
        for name in sorted(names):
            topic = self._topics.find(name.encode())
            if topic is None or not peer.may_read(name.encode()):
                continue
            for queue_id, is_end in stepwise(range(topic.read_queues)):
                figures = yield from self.progress_on(group, name, queue_id)
                rows.append((encode_queue(self._broker_name, name, queue_id), figures))
                if is_end:
                    yield
        body = encode_table("offsetTable", rows, {"consumeTps": 0.0})
        return answer(request, ResponseCode.SUCCESS, body=check_size(body))

    def progress_on(self, group: str, topic: str, queue_id: int) -> Generator[None, None, dict[str, int]]:
        """Return how far a group is on one queue."""
        broker = self._broker
        key = queue_key(topic.encode(), queue_id)
        offset = max(broker.consumer_offsets.get(group.encode(), key) or 0, 0)
        ref = broker.find_queue(key)
        stored_ms = end = 0
        if ref >= 0 and (yield from opened(broker, ref)):
            end = broker.max_offset(ref)
            if broker.min_offset(ref) < offset <= end:
                stored_ms = yield from read_store_ms(broker, self._one, ref, offset - 1)
        return {
            "brokerOffset": end,
            "consumerOffset": offset,
            "lastTimestamp": stored_ms,
            "pullOffset": offset,
        }

    def spans(self, request: Command, peer: AdminPeer, now_ms: int) -> Steps:
        """Answer with the moments of the first, the last and the next message of a group on each queue of a topic."""
        group, name = text_field(request, "group"), text_field(request, "topic")
        topic = self._topics.get(name.encode())
        if not peer.may_read(name.encode()):
            raise CommandRefusedError(ResponseCode.NO_PERMISSION, f"no permission to read {name}")
        found: list[dict[str, object]] = []
        for queue_id in range(topic.write_queues):
            found.append((yield from self._span_of(group, name, queue_id, now_ms)))
            yield
        body = encode_json({"consumeTimeSpanSet": found})
        return answer(request, ResponseCode.SUCCESS, body=check_size(body))

    def _span_of(self, group: str, topic: str, queue_id: int, now_ms: int) -> Generator[None, None, dict[str, object]]:
        broker = self._broker
        key = queue_key(topic.encode(), queue_id)
        ref = broker.find_queue(key)
        first_ms = last_ms = done_ms = delay_ms = 0
        if ref >= 0 and (yield from opened(broker, ref)) and broker.min_offset(ref) < broker.max_offset(ref):
            first, last = broker.min_offset(ref), broker.max_offset(ref)
            offset = max(broker.consumer_offsets.get(group.encode(), key) or 0, first)
            first_ms = yield from read_store_ms(broker, self._one, ref, first)
            last_ms = yield from read_store_ms(broker, self._one, ref, last - 1)
            done_ms = yield from read_store_ms(broker, self._one, ref, max(offset - 1, first))
            if offset < last:
                next_ms = yield from read_store_ms(broker, self._one, ref, offset)
                delay_ms = max(now_ms - next_ms, 0)
        return {
            "consumeTimeStamp": done_ms,
            "delayTime": delay_ms,
            "maxTimeStamp": last_ms,
            "messageQueue": {"brokerName": self._broker_name, "queueId": queue_id, "topic": topic},
            "minTimeStamp": first_ms,
        }


def describe_client(client: Client) -> dict[str, object]:
    """Return a client as RocketMQ's tools show it."""
    return {
        "clientAddr": client.output.peer,
        "clientId": client.client_id,
        "language": LANGUAGES[client.language],
        "version": client.version,
    }


def _describe_all(group: ConsumerGroup) -> dict[str, object]:
    return {topic: describe_subscription(topic, found) for topic, found in group.subscriptions.items()}


def describe_subscription(topic: str, found: Subscription) -> dict[str, object]:
    """Return what a group wants of a topic as RocketMQ's tools show it."""
    tags = sorted(tag.decode(errors="replace") for tag in found.wanted) if isinstance(found.wanted, frozenset) else []
    return {
        "classFilterMode": False,
        "codeSet": [java_hash(tag) for tag in tags],
        "expressionType": found.kind,
        "subString": found.text,
        "subVersion": found.version,
        "tagsSet": tags,
        "topic": topic,
    }


def java_hash(text: str) -> int:
    """Return the hash of a text as Java has it, of 32 bits with a sign."""
    value = 0
    units = text.encode("utf-16-be", errors="replace")
    for at in range(0, len(units), 2):
        value = (value * 31 + int.from_bytes(units[at : at + 2], "big")) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value
