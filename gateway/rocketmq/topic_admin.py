"""What RocketMQ's tools set up and ask for: topics and consumer groups.

Source: docs/protocols/rocketmq.md, "Topics and groups".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import partial
from typing import Any, Protocol

from core.broker import Broker
from core.errors import LmqError
from gateway.auth.rule import GROUP, TOPIC
from gateway.events import Actor, Kind
from gateway.rocketmq.client_table import ClientTable, read_object
from gateway.rocketmq.errors import CommandRefusedError, response_code_of
from gateway.rocketmq.fields import check_group, flag_field, integer_field, text_field
from gateway.rocketmq.group_table import Group, GroupTable
from gateway.rocketmq.topic_table import MESSAGE_TYPES, RETRY_PREFIX, Topic, TopicTable, is_topic_name
from lmq.remoting.commands import Command, answer, encode_command, encode_json
from lmq.remoting.response_codes import ResponseCode

PERM_MAX = 7  # read, write, inherit
MESSAGE_TYPE = "message.type"  # the one attribute of topics that is kept


class AdminPeer(Protocol):
    """The connection that a request came in by."""

    def write(self, data: bytes) -> None:
        """Send `data`."""

    def may_configure(self, name: bytes, kind: str = TOPIC) -> bool:
        """Whether this client may make, change and remove a topic or group."""

    def actor(self) -> Actor:
        """By whose doing something happens."""


class TopicAdmin:
    """Answers 17, 200, 201, 206, 207, 215, 216, 351 and 352; what changes something, when it is written down.

    Args:
        broker: Knows when a change is kept.
        topics: The topics.
        groups: The groups.
        clients: The groups that have clients now.
    """

    def __init__(self, broker: Broker, topics: TopicTable, groups: GroupTable, clients: ClientTable) -> None:
        self._clients = clients
        self._broker = broker
        self._topics = topics
        self._groups = groups

    # Topics

    def set_topic(self, request: Command, peer: AdminPeer) -> None:
        """Make a topic, or change its queues and permissions."""
        name = _named(request, "topic", peer)
        known = self._topics.find(name)
        perm = integer_field(request, "perm")
        if not 0 <= perm <= PERM_MAX:
            raise CommandRefusedError(ResponseCode.INVALID_PARAMETER, f"the permission {perm} is not valid")
        topic = Topic(
            integer_field(request, "readQueueNums"),
            integer_field(request, "writeQueueNums"),
            perm,
            is_order=flag_field(request, "order", otherwise=False),
            sys_flag=integer_field(request, "topicSysFlag", 0) & 0x7FFFFFFF,
            message_type=_read_message_type(request, known.message_type if known else ""),
        )
        self._broker.check_room()
        self._topics.set(name, topic)
        told = {"read_queues": topic.read_queues, "write_queues": topic.write_queues, "perm": topic.perm}
        peer.actor().tell(Kind.TOPIC_CHANGED if known else Kind.TOPIC_CREATED, topic=name.decode(), **told)
        self._answer_kept(request, peer)

    def delete_topic(self, request: Command, peer: AdminPeer) -> None:
        """Forget a topic."""
        name = _named(request, "topic", peer)
        if self._topics.delete(name):
            peer.actor().tell(Kind.TOPIC_DELETED, topic=name.decode())
        self._answer_kept(request, peer)

    def get_topic(self, request: Command) -> Command:
        """Answer with what was set of a topic."""
        name = text_field(request, "topic")
        topic = self._topics.get(name.encode())
        return answer(request, ResponseCode.SUCCESS, body=encode_json(describe_topic(name, topic)))

    def list_topics(self, request: Command) -> Command:
        """Answer with the names of all topics; by its retry topic, tools find a group."""
        groups = {name for name, _ in self._groups.items()}  # noqa: PERF102 - a table has no `keys`
        groups |= {name.encode() for name, _ in self._clients.groups()}
        retries = {RETRY_PREFIX + group for group in groups if is_topic_name(RETRY_PREFIX + group)}
        names = sorted(name.decode() for name in retries.union(self._topics.names()))
        return answer(request, ResponseCode.SUCCESS, body=encode_json({"topicList": names}))

    # Groups

    def set_group(self, request: Command, peer: AdminPeer) -> None:
        """Set a consumer group up."""
        said = read_object(request)
        name = str(said.get("groupName", ""))
        if not name or not is_topic_name(RETRY_PREFIX + name.encode()):
            raise CommandRefusedError(ResponseCode.INVALID_PARAMETER, "the group's name is empty or impossible")
        if not peer.may_configure(name.encode(), GROUP):
            raise CommandRefusedError(ResponseCode.NO_PERMISSION, f"no permission to set {name} up")
        for unknown, plain in NOT_SUPPORTED.items():
            if (said.get(unknown) or plain) != plain:
                raise CommandRefusedError(ResponseCode.INVALID_PARAMETER, f"{unknown} of groups is not supported")
        self._broker.check_room()
        self._groups.set(name.encode(), _read_group(said))
        group = self._groups.get(name.encode())
        self._set_retry_queues(name.encode(), group)
        peer.actor().tell(Kind.GROUP_SET, group=name)
        self._answer_kept(request, peer)

    def _set_retry_queues(self, name: bytes, group: Group) -> None:
        """Let the retry topic have the queues that the group was given."""
        topic = self._topics.find(RETRY_PREFIX + name)
        if topic is not None and 0 < group.retryQueueNums != topic.write_queues:
            queues = group.retryQueueNums
            self._topics.set(RETRY_PREFIX + name, Topic(max(queues, topic.read_queues), queues, topic.perm))

    def get_group(self, request: Command) -> Command:
        """Answer with what was set of a group."""
        name = text_field(request, "group")
        check_group(name)
        return answer(request, ResponseCode.SUCCESS, body=encode_json(self._groups.get(name.encode()).as_body(name)))

    def list_groups(self, request: Command) -> Command:
        """Answer with all groups that were set up."""
        table = {name.decode(): group.as_body(name.decode()) for name, group in self._groups.items()}
        said = {"subscriptionGroupTable": table, "forbiddenTable": {}, "dataVersion": {"counter": 0, "timestamp": 0}}
        return answer(request, ResponseCode.SUCCESS, body=encode_json(said))

    def delete_group(self, request: Command, peer: AdminPeer, drop: Callable[[bytes], None]) -> None:
        """Forget what was set of a group, and where it is on its queues if the request says so.

        Args:
            request: Names it.
            peer: Is answered.
            drop: Forgets what the group took by POP. Called once the rest is kept: a process that is killed before
                leaves the group where it is, and gives nothing again that was acknowledged.
        """
        name = _named(request, "groupName", peer)
        self._broker.check_commits()  # else `drop` could come hours later, when the group is in use again
        self._groups.delete(name)
        peer.actor().tell(Kind.GROUP_DELETED, group=name.decode())
        if flag_field(request, "cleanOffset", otherwise=False):
            self._forget_offsets(name)
            self._broker.when_kept(partial(self._clean, request, peer, name, drop))
        else:
            self._answer_kept(request, peer)

    def _clean(
        self,
        request: Command,
        peer: AdminPeer,
        name: bytes,
        drop: Callable[[bytes], None],
        error: LmqError | None,
    ) -> None:
        if error is not None:
            _write_outcome(request, peer, error)
            return
        drop(name)
        self._forget_offsets(name)  # which consumers noted meanwhile
        self._answer_kept(request, peer)

    def _forget_offsets(self, name: bytes) -> None:
        offsets = self._broker.consumer_offsets
        for group, key, _ in [item for item in offsets.items() if item[0] == name]:
            offsets.forget(group, key)
            self._broker.lasting_endings.trim((key, group), 0)
            self._broker.pop.acknowledgers.forget((key, group))

    def _answer_kept(self, request: Command, peer: AdminPeer) -> None:
        if not request.is_one_way:
            self._broker.when_kept(partial(_write_outcome, request, peer))


def describe_topic(name: str, topic: Topic) -> dict[str, Any]:
    """Return what is set of a topic, as RocketMQ's tools read it."""
    return {
        "attributes": {MESSAGE_TYPE: topic.message_type} if topic.message_type else {},
        "order": topic.is_order,
        "perm": topic.perm,
        "readQueueNums": topic.read_queues,
        "topicFilterType": "SINGLE_TAG",
        "topicName": name,
        "topicSysFlag": topic.sys_flag,
        "writeQueueNums": topic.write_queues,
    }


def _read_message_type(request: Command, before: str) -> str:
    """Return what the attributes in a request, `+KEY=VALUE` and `-KEY` with commas between, make of a topic's type.

    Raises:
        CommandRefusedError: They are of another form, name another attribute, or a type that there is not.
    """
    found = before
    for change in filter(None, request.ext.get("attributes", "").split(",")):
        key, _, value = change[1:].partition("=")
        if change[0] not in "+-" or key != MESSAGE_TYPE:
            remark = f"the attribute {change} of topics is not supported; +{MESSAGE_TYPE}=TYPE is"
            raise CommandRefusedError(ResponseCode.INVALID_PARAMETER, remark)
        if change[0] == "+" and value not in MESSAGE_TYPES:
            remark = f"{MESSAGE_TYPE} is one of {', '.join(MESSAGE_TYPES)}, and not {value}"
            raise CommandRefusedError(ResponseCode.INVALID_PARAMETER, remark)
        found = value if change[0] == "+" else ""
    return found


def _write_outcome(request: Command, peer: AdminPeer, error: LmqError | None) -> None:
    """Answer that the change is kept, or why not."""
    if error is None:
        peer.write(encode_command(answer(request, ResponseCode.SUCCESS)))
    else:
        peer.write(encode_command(answer(request, response_code_of(error), str(error))))


def _named(request: Command, field: str, peer: AdminPeer) -> bytes:
    """Return what the request is about.

    Raises:
        CommandRefusedError: This client may not set it up.
    """
    name = text_field(request, field)
    if not peer.may_configure(name.encode(), GROUP if field == "groupName" else TOPIC):
        raise CommandRefusedError(ResponseCode.NO_PERMISSION, f"no permission to set {name} up")
    return name.encode()


NOT_SUPPORTED: dict[str, Any] = {"groupSysFlag": 0, "attributes": {}}
"""What would change how a group consumes and is not built, each with what may be said of it all the same."""


def _read_group(said: dict[str, Any]) -> Group:
    """Return the group that a body describes.

    Raises:
        CommandRefusedError: A value is of another kind.
    """
    given: dict[str, Any] = {}
    for field in fields(Group):
        value = said.get(field.name)
        if value is None:
            continue
        if type(value) is not type(field.default):
            raise CommandRefusedError(ResponseCode.INVALID_PARAMETER, f"{field.name} is of another kind")
        given[field.name] = value
    return Group(**given)
