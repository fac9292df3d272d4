"""The clients that are connected: what they said in their heartbeats, their groups, and their locks on queues."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from gateway.rocketmq.client import Client
from gateway.rocketmq.errors import CommandRefusedError
from gateway.rocketmq.fields import text_field
from gateway.rocketmq.filters.matching import parse_filter
from gateway.rocketmq.filters.subscription import Subscription, read_subscription
from gateway.rocketmq.producer_table import ProducerTable
from gateway.rocketmq.queue_locks import QueueLocks
from gateway.rocketmq.topic_table import RETRY_PREFIX
from lmq.remoting.commands import FLAG_ONE_WAY, Command, answer, encode_json
from lmq.remoting.request_codes import RequestCode
from lmq.remoting.response_codes import ResponseCode

GROUPS_MAX = 256  # of one client, as producer and consumer each
SUBSCRIPTIONS_MAX = 1024  # of one client in one group; chosen: each heartbeat names all of them
OBJECT_BYTES_MAX = 1 << 20  # thousands of subscriptions, which take some 10 ms to parse
MayRead = Callable[[bytes], bool]
"""Whether a client may read a topic, or consume as a group."""


def anybody(_name: bytes) -> bool:
    """Return that a client may."""
    return True


class Rights(NamedTuple):
    """What a client may do of what it says in a heartbeat."""

    may_read: MayRead
    may_consume: MayRead


class ConsumerGroup:
    """The live members of one group and their subscriptions."""

    def __init__(self) -> None:
        self.members: dict[int, Client] = {}  # by connection
        self.subscriptions: dict[str, Subscription] = {}  # by topic
        self.is_broadcast = False  # each member gets all messages
        self.kind = ""  # how it consumes, and where it begins: as its clients say, to be shown
        self.starts_at = ""


class Beat:
    """A heartbeat, which may name thousands of subscriptions, and what is left of taking it in."""

    __slots__ = ("answer", "request", "steps")

    def __init__(self, request: Command, steps: Iterator[None]) -> None:
        self.request = request
        self.answer = answer(
            request, ResponseCode.SUCCESS, ext={"IS_SUPPORT_HEART_BEAT_V2": "false", "IS_SUB_CHANGE": "false"}
        )
        self.steps = steps


class ClientTable:
    """All clients that sent a heartbeat.

    Args:
        notifies: Whether the members of a group are told when they change.
    """

    def __init__(self, notifies: Callable[[bytes], bool] = lambda _name: True) -> None:
        self._notifies = notifies
        self.producers = ProducerTable()
        self._groups: dict[str, ConsumerGroup] = {}
        self._by_id: dict[str, Client] = {}  # the client with the latest heartbeat of that identifier
        self._locks = QueueLocks()

    def find_subscription(self, group: str, topic: str) -> Subscription:
        """Return what the group wants of the topic, by its members' heartbeats.

        Raises:
            CommandRefusedError: The group has no member, or they did not subscribe to the topic.
        """
        found = self._groups.get(group)
        if found is None:
            raise CommandRefusedError(ResponseCode.SUBSCRIPTION_NOT_EXIST, "the consumer's group info not exist")
        subscription = found.subscriptions.get(topic)
        if subscription is None:
            raise CommandRefusedError(ResponseCode.SUBSCRIPTION_NOT_EXIST, "the consumer's subscription not exist")
        if subscription.refusal is not None:
            raise CommandRefusedError(ResponseCode.FILTER_DATA_NOT_EXIST, subscription.refusal)
        return subscription

    def find_group(self, name: str) -> ConsumerGroup | None:
        """Return the group of that name, None where it has no member."""
        return self._groups.get(name)

    def groups(self) -> list[tuple[str, ConsumerGroup]]:
        """Return the groups that have members, with their names."""
        return list(self._groups.items())

    def is_broadcast(self, group: str) -> bool:
        """Return whether each member of the group gets all messages, by the newest heartbeat."""
        found = self._groups.get(group)
        return found is not None and found.is_broadcast

    # Heartbeats

    def heart_beat(
        self, client: Client, request: Command, may_read: MayRead, may_consume: MayRead = anybody
    ) -> Iterator[None]:
        """Return the steps that note the client and its groups, and tell the others of a group that changed.

        The client is no member of a group that it names with a topic that it may not read, but for the group's retries.

        Raises:
            CommandRefusedError: The body is no JSON object.
        """
        rights = Rights(may_read, may_consume)
        return self._heart_beat(client, request, read_object(request), rights)

    def _heart_beat(self, client: Client, request: Command, said: dict[str, Any], rights: Rights) -> Iterator[None]:
        self._name(client, str(said.get("clientID", "")))
        client.language, client.version = request.language, request.version
        producers = _objects(said, "producerDataSet")[:GROUPS_MAX]
        # a heartbeat names them all
        self.producers.set_groups(client, {str(data.get("groupName", "")) for data in producers})
        for data in _objects(said, "consumerDataSet")[:GROUPS_MAX]:
            yield from self._join(client, data, rights)

    def _name(self, client: Client, client_id: str) -> None:
        self._forget_name(client)
        client.client_id = client_id
        if client_id:
            self._by_id[client_id] = client

    def _forget_name(self, client: Client) -> None:
        if self._by_id.get(client.client_id) is client:
            del self._by_id[client.client_id]

    def find_client(self, client_id: str) -> Client | None:
        """Return the connected client of that identifier, or None."""
        return self._by_id.get(client_id)

    def _join(self, client: Client, data: dict[str, Any], rights: Rights) -> Iterator[None]:
        name = str(data.get("groupName", ""))
        if not name or (name not in client.consumer_groups and len(client.consumer_groups) >= GROUPS_MAX):
            return
        if not rights.may_consume(name.encode(errors="replace")):
            return
        own_retries = RETRY_PREFIX.decode() + name  # without that right, what comes again is another member's
        subscriptions: dict[str, Subscription] = {}
        for topic, wanted in _read_subscriptions(data):
            if topic != own_retries and not rights.may_read(topic.encode(errors="replace")):
                return
            subscriptions[topic] = wanted
            yield
        group = self._groups.setdefault(name, ConsumerGroup())
        client.consumer_groups.add(name)
        group.is_broadcast = data.get("messageModel") == "BROADCASTING"
        group.kind, group.starts_at = str(data.get("consumeType", "")), str(data.get("consumeFromWhere", ""))
        is_new = client.output.conn_id not in group.members
        group.members[client.output.conn_id] = client
        is_changed = subscriptions.keys() != group.subscriptions.keys()
        for topic, subscription in subscriptions.items():
            known = group.subscriptions.get(topic)
            if known is not None and known.version >= subscription.version:
                subscriptions[topic] = known
        group.subscriptions = subscriptions
        if is_new or is_changed:
            self._notify(name, group)
        yield

    def _notify(self, name: str, group: ConsumerGroup) -> None:
        if not self._notifies(name.encode()):
            return
        change = Command(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, flag=FLAG_ONE_WAY, ext={"consumerGroup": name})
        for member in list(group.members.values()):
            member.send(change)

    def unregister(self, client: Client, request: Command) -> Command:
        """Take the client out of the groups that it names."""
        group = request.ext.get("consumerGroup", "")
        if group in client.consumer_groups:
            self._leave(client, group)
        self.producers.set_groups(client, client.producer_groups - {request.ext.get("producerGroup", "")})
        return answer(request, ResponseCode.SUCCESS)

    def drop(self, client: Client) -> None:
        """The client's connection is gone."""
        for group in list(client.consumer_groups):
            self._leave(client, group)
        self.producers.set_groups(client, set())
        self._forget_name(client)

    def _leave(self, client: Client, name: str) -> None:
        client.consumer_groups.discard(name)
        group = self._groups.get(name)
        if group is None or group.members.pop(client.output.conn_id, None) is None:
            return
        if group.members:
            self._notify(name, group)
        else:
            del self._groups[name]

    # Questions about groups

    def members_of(self, group: str) -> list[str]:
        """Return the client identifiers of a group, sorted."""
        found = self._groups.get(group)
        return sorted({member.client_id for member in found.members.values()}) if found is not None else []

    def list_members(self, request: Command) -> Command:
        """Answer with the client identifiers of a group, which share out its queues among themselves."""
        name = text_field(request, "consumerGroup")
        ids = self.members_of(name)
        if not ids:
            return answer(request, ResponseCode.SYSTEM_ERROR, f"no consumer for this group, {name}")
        return answer(request, ResponseCode.SUCCESS, body=encode_json({"consumerIdList": ids}))

    def check_config(self, request: Command) -> Command:
        """Say whether we can filter as the client wants.

        Raises:
            CommandRefusedError: Not so; the remark says why.
        """
        said = read_object(request).get("subscriptionData")
        if isinstance(said, dict):
            parse_filter(str(said.get("expressionType") or ""), str(said.get("subString") or ""))
        return answer(request, ResponseCode.SUCCESS)

    # Locks of ordered consumers

    def lock_queues(
        self, request: Command, may_read: MayRead, now_ms: int, *, may_consume: MayRead = anybody
    ) -> Command:
        """Lock queues of a group for one client that may read them; answer with those that it holds now."""
        said = read_object(request)
        group, client = str(said.get("consumerGroup", "")), str(said.get("clientId", ""))
        held = []
        queues = _objects(said, "mqSet")[:SUBSCRIPTIONS_MAX] if may_consume(group.encode(errors="replace")) else []
        for queue in queues:
            key = _lock_key(queue)
            if may_read(key[0].encode()) and self._locks.take(group, client, key, now_ms):
                held.append(queue)
        return answer(request, ResponseCode.SUCCESS, body=encode_json({"lockOKMQSet": held}))

    def unlock_queues(self, request: Command, may_read: MayRead) -> Command:
        """Give locks back, of queues that the client may read."""
        said = read_object(request)
        group, client = str(said.get("consumerGroup", "")), str(said.get("clientId", ""))
        for queue in _objects(said, "mqSet")[:SUBSCRIPTIONS_MAX]:
            key = _lock_key(queue)
            if may_read(key[0].encode()):
                self._locks.give_back(group, client, key)
        return answer(request, ResponseCode.SUCCESS)

    def holds_locks(self, group: str, now_ms: int) -> bool:
        """Return whether a member of the group has a queue locked: the group consumes in order."""
        return self._locks.is_held(group, now_ms)


def read_object(request: Command) -> dict[str, Any]:
    """Return the JSON object that is the request's body.

    Raises:
        CommandRefusedError: The body is anything else, or too large.
    """
    if len(request.body) > OBJECT_BYTES_MAX:
        raise CommandRefusedError(ResponseCode.SYSTEM_ERROR, f"the body has more than {OBJECT_BYTES_MAX} bytes")
    try:
        text = bytes(request.body).decode()
        said = json.loads(text, strict=False)
        if "\\u" in text:
            json.dumps(said, ensure_ascii=False).encode()  # a lone half of a surrogate pair raises ValueError
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        raise CommandRefusedError(ResponseCode.SYSTEM_ERROR, "the body is not a JSON object")
    return said


def _objects(said: dict[str, Any], name: str) -> list[dict[str, Any]]:
    value = said.get(name)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _read_subscriptions(data: dict[str, Any]) -> Iterator[tuple[str, Subscription]]:
    for item in _objects(data, "subscriptionDataSet")[:SUBSCRIPTIONS_MAX]:
        yield str(item.get("topic", "")), read_subscription(item)


def _lock_key(queue: dict[str, Any]) -> tuple[str, int]:
    queue_id = queue.get("queueId")
    return (str(queue.get("topic", "")), queue_id if isinstance(queue_id, int) else 0)
