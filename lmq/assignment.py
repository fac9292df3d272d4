"""Which queues of the subscribed topics a member of a group has now."""

from __future__ import annotations

import json
import logging

from lmq.allocation import Allocate
from lmq.errors import SdkError, response_error
from lmq.queues import MessageQueue
from lmq.remoting.commands import Command
from lmq.remoting.request_codes import RequestCode
from lmq.remoting.response_codes import ResponseCode
from lmq.routes import Routes

LOGGER = logging.getLogger(__name__)


class Assignment:
    """Finds a member's share of a topic.

    Args:
        routes: Where brokers are.
        group: The group.
        client_id: The member.
        allocate: How members share out queues; None: each has all.
    """

    def __init__(self, routes: Routes, group: str, client_id: str, allocate: Allocate | None) -> None:
        self._routes = routes
        self._group = group
        self._client_id = client_id
        self._allocate = allocate
        self._first_seen: dict[str, set[MessageQueue]] = {}

    async def share_of(self, topic: str) -> list[MessageQueue] | None:
        """Return the member's queues, or None where no broker knows the member yet.

        Raises:
            SdkError: There is no such topic, or nobody can be asked.
        """
        queues = await self._routes.queues(topic)
        self._first_seen.setdefault(topic, set(queues))
        if self._allocate is None:
            return queues
        members = await self._members(topic)
        if self._client_id not in members:
            return None
        return list(self._allocate(self._client_id, queues, members))

    def is_new(self, queue: MessageQueue) -> bool:
        """Whether the topic got the queue after the member had come."""
        return queue not in self._first_seen.get(queue.topic, ())

    def note_missing(self, topic: str) -> None:
        """Note that there is no such topic yet: all that is ever in it is new."""
        self._first_seen.setdefault(topic, set())

    async def _members(self, topic: str) -> list[str]:
        """Return the client identifiers of the group's members, sorted, as one of the topic's brokers knows them."""
        error: SdkError | None = None
        for route in await self._routes.find(topic):
            command = Command(RequestCode.GET_CONSUMER_LIST_BY_GROUP, ext={"consumerGroup": self._group})
            try:
                response = await self._routes.client_of(route).request(command)
            except SdkError as caught:
                error = caught
                continue
            if response.code == ResponseCode.SUCCESS:
                return _read_members(bytes(response.body))
            error = response_error(response.code, response.remark)
        assert error is not None  # a topic has a broker
        raise error


def _read_members(body: bytes) -> list[str]:
    try:
        said = json.loads(body)
        return sorted({str(one) for one in said["consumerIdList"] or ()})
    except (ValueError, KeyError, TypeError) as error:
        raise SdkError(f"the broker's answer cannot be read: {error}") from error
