"""Assigns queues of a topic to consumers, where the clients leave that to the broker.

Source: docs/protocols/rocketmq.md, "Groups".
"""

from __future__ import annotations

from core.lmq.queue_name import is_light
from gateway.rocketmq.client_table import ClientTable, read_object
from gateway.rocketmq.errors import CommandRefusedError
from gateway.rocketmq.topic_table import TopicTable
from lmq.remoting.commands import Command, answer, encode_json
from lmq.remoting.response_codes import ResponseCode

POP = "POP"
NO_POP = "POP is not supported by this broker: consume with PULL (clientRebalance, or message request mode PULL)"


class Assignment:
    """Answers QUERY_ASSIGNMENT and SET_MESSAGE_REQUEST_MODE: every group pulls.

    Args:
        topics: The topics.
        clients: The groups' members.
        broker_name: Our name in queues.
    """

    def __init__(self, topics: TopicTable, clients: ClientTable, broker_name: str) -> None:
        self._topics = topics
        self._clients = clients
        self._broker_name = broker_name

    def query(self, request: Command) -> Command:
        """Answer with the queues that a client is to pull; with none at all where it cannot be said."""
        said = read_object(request)
        topic, group, client_id = (str(said.get(name, "")) for name in ("topic", "consumerGroup", "clientId"))
        found = self._topics.find(topic.encode())
        if found is None:
            return answer(request, ResponseCode.SUCCESS, body=b"{}")
        queues = [0] if is_light(topic.encode()) else list(range(found.read_queues))
        if said.get("messageModel") != "BROADCASTING":
            members = self._clients.members_of(group)
            share = STRATEGIES.get(str(said.get("strategyName", "")))
            if client_id not in members or share is None:
                return answer(request, ResponseCode.SUCCESS, body=b"{}")
            queues = share(queues, members.index(client_id), len(members))
        assignments = [
            {
                "messageQueue": {"topic": topic, "brokerName": self._broker_name, "queueId": queue_id},
                "mode": "PULL",
            }
            for queue_id in queues
        ]
        return answer(request, ResponseCode.SUCCESS, body=encode_json({"messageQueueAssignments": assignments}))

    def set_mode(self, request: Command) -> Command:
        """Agree to PULL, the mode of all groups.

        Raises:
            CommandRefusedError: Another mode.
        """
        if read_object(request).get("mode") != "PULL":
            raise CommandRefusedError(ResponseCode.SYSTEM_ERROR, NO_POP)
        return answer(request, ResponseCode.SUCCESS)


def share_evenly(queues: list[int], index: int, members: int) -> list[int]:
    """Return the share of member `index`: neighbouring queues, the first members one more where there is a rest."""
    size, more = divmod(len(queues), members)
    start = index * size + min(index, more)
    return queues[start : start + size + (index < more)]


def share_by_circle(queues: list[int], index: int, members: int) -> list[int]:
    """Return the share of member `index`: every queue that is its turn."""
    return queues[index::members]


STRATEGIES = {"AVG": share_evenly, "AVG_BY_CIRCLE": share_by_circle}
