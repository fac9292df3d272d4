"""Assigns queues of a topic to consumers, where the clients leave that to the broker, and says how to consume them.

Source: docs/protocols/rocketmq.md, "Topics and groups".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from core.lmq.queue_name import is_light
from gateway.auth.rule import GROUP, TOPIC
from gateway.events import Actor, Kind
from gateway.rocketmq.client_table import ClientTable, read_object
from gateway.rocketmq.errors import CommandRefusedError
from gateway.rocketmq.fields import check_group
from gateway.rocketmq.request_modes import POP, RequestMode, RequestModes
from gateway.rocketmq.topic_table import TopicTable
from lmq.remoting.commands import Command, answer, encode_json
from lmq.remoting.response_codes import ResponseCode

ALL_QUEUES = -1
Share = Callable[[list[int], int, int], list[int]]


class Operator(Protocol):
    """The connection that a request came in by."""

    def may_configure(self, name: bytes, kind: str = TOPIC) -> bool:
        """Whether this client may make, change and remove a topic or group."""

    def actor(self) -> Actor:
        """By whose doing something happens."""


class Assignment:
    """Answers QUERY_ASSIGNMENT and SET_MESSAGE_REQUEST_MODE.

    Args:
        topics: The topics.
        clients: The groups' members.
        modes: How groups consume.
        broker_name: Our name in queues.
    """

    def __init__(self, topics: TopicTable, clients: ClientTable, modes: RequestModes, broker_name: str) -> None:
        self._topics = topics
        self._clients = clients
        self._modes = modes
        self._broker_name = broker_name

    def query(self, request: Command) -> Command:
        """Answer with the queues that a client is to consume; with none at all where it cannot be said."""
        said = read_object(request)
        topic, group = (str(said.get(name, "")) for name in ("topic", "consumerGroup"))
        found = self._topics.find(topic.encode())
        mode = self._modes.get(topic, group)
        queues: list[int] | None = None
        if found is not None:
            queues = [0] if is_light(topic.encode()) else list(range(found.read_queues))
            if said.get("messageModel") != "BROADCASTING":
                queues = self._share_out(queues, said, group, mode)
        if queues is None:
            return answer(request, ResponseCode.SUCCESS, body=b"{}")
        assignments = [
            {
                "messageQueue": {"topic": topic, "brokerName": self._broker_name, "queueId": queue_id},
                "mode": mode.mode,
            }
            for queue_id in queues
        ]
        return answer(request, ResponseCode.SUCCESS, body=encode_json({"messageQueueAssignments": assignments}))

    def _share_out(self, queues: list[int], said: dict[str, Any], group: str, mode: RequestMode) -> list[int] | None:
        """Return the queues of one member, None where it is none or wants an order that is not known here."""
        members = self._clients.members_of(group)
        client_id = str(said.get("clientId", ""))
        share = STRATEGIES.get(str(said.get("strategyName", "")))
        if client_id not in members or share is None:
            return None
        index = members.index(client_id)
        if mode.mode == POP:
            return share_for_pop(share, queues, index, len(members), mode.share_queues)
        return share(queues, index, len(members))

    def set_mode(self, request: Command, peer: Operator) -> Command:
        """Note how a group is to consume a topic: its members learn it when they ask for their queues.

        Raises:
            CommandRefusedError: The topic is not there, the mode impossible, or the group not this client's to set.
        """
        said = read_object(request)
        topic, group = (str(said.get(name, "")) for name in ("topic", "consumerGroup"))
        self._topics.get(topic.encode())
        check_group(group)
        if not peer.may_configure(group.encode(), GROUP):
            raise CommandRefusedError(ResponseCode.NO_PERMISSION, f"no permission to set {group} up")
        share_queues = said.get("popShareQueueNum", 0)
        if type(share_queues) is not int:
            raise CommandRefusedError(ResponseCode.INVALID_PARAMETER, "popShareQueueNum is not a number")
        mode = RequestMode(str(said.get("mode", "")), share_queues)
        self._modes.set(topic, group, mode)
        peer.actor().tell(Kind.GROUP_SET, group=group, topic=topic, mode=mode.mode)
        return answer(request, ResponseCode.SUCCESS)


def share_evenly(queues: list[int], index: int, members: int) -> list[int]:
    """Return the share of member `index`: neighbouring queues, the first members one more where there is a rest."""
    size, more = divmod(len(queues), members)
    start = index * size + min(index, more)
    return queues[start : start + size + (index < more)]


def share_by_circle(queues: list[int], index: int, members: int) -> list[int]:
    """Return the share of member `index`: every queue that is its turn."""
    return queues[index::members]


STRATEGIES: dict[str, Share] = {"AVG": share_evenly, "AVG_BY_CIRCLE": share_by_circle}


def share_for_pop(share: Share, queues: list[int], index: int, members: int, share_queues: int) -> list[int]:
    """Return what member `index` takes from by POP: all queues, or its share and those of the `share_queues` next."""
    if share_queues <= 0 or share_queues >= members - 1:
        return [ALL_QUEUES]
    if members > len(queues):
        return queues[index % len(queues) :][:1] if queues else []
    found = [queue for step in range(share_queues + 1) for queue in share(queues, (index + step) % members, members)]
    return list(dict.fromkeys(found))
