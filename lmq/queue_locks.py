"""Locks on queues, by which a member that consumes in order has a queue for itself."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable

from lmq.errors import SdkError
from lmq.queues import MessageQueue
from lmq.remoting.commands import Command, encode_json
from lmq.remoting.request_codes import RequestCode
from lmq.remoting.response_codes import ResponseCode
from lmq.routes import Routes

LOGGER = logging.getLogger(__name__)


class QueueLocks:
    """Locks of one member at all brokers; a broker keeps one for 60 s unless it is renewed.

    Args:
        routes: Where brokers are.
        group: The member's group.
        client_id: The member.
    """

    def __init__(self, routes: Routes, group: str, client_id: str) -> None:
        self._routes = routes
        self._said = {"consumerGroup": group, "clientId": client_id}

    async def lock(self, queues: Iterable[MessageQueue]) -> dict[MessageQueue, bool]:
        """Lock queues, or renew their locks; return, of those whose broker answered, whether the member holds them."""
        is_held: dict[MessageQueue, bool] = {}
        for broker_queues in _by_broker(queues):
            try:
                client = await self._routes.broker_of(broker_queues[0])
                response = await client.request(self._command(RequestCode.LOCK_BATCH_MQ, broker_queues))
            except SdkError as error:
                LOGGER.warning("queues cannot be locked broker=%s cause=%s", broker_queues[0].broker_name, error)
                continue
            held = _read_held(bytes(response.body)) if response.code == ResponseCode.SUCCESS else ()
            is_held |= {queue: queue in held for queue in broker_queues}
        return is_held

    async def unlock(self, queues: Iterable[MessageQueue]) -> None:
        """Give locks back, so that others need not wait for their end."""
        for broker_queues in _by_broker(queues):
            try:
                client = await self._routes.broker_of(broker_queues[0])
                await client.request(self._command(RequestCode.UNLOCK_BATCH_MQ, broker_queues))
            except SdkError as error:
                LOGGER.debug("queues cannot be unlocked broker=%s cause=%s", broker_queues[0].broker_name, error)

    def _command(self, code: int, queues: list[MessageQueue]) -> Command:
        described = [
            {"topic": queue.topic, "brokerName": queue.broker_name, "queueId": queue.queue_id} for queue in queues
        ]
        return Command(code, body=encode_json({**self._said, "onlyThisBroker": False, "mqSet": described}))


def _by_broker(queues: Iterable[MessageQueue]) -> Iterable[list[MessageQueue]]:
    brokers: dict[str, list[MessageQueue]] = {}
    for queue in queues:
        brokers.setdefault(queue.broker_name, []).append(queue)
    return brokers.values()


def _read_held(body: bytes) -> list[MessageQueue]:
    try:
        said = json.loads(body)
        return [MessageQueue(one["topic"], one["brokerName"], int(one["queueId"])) for one in said["lockOKMQSet"] or ()]
    except (ValueError, KeyError, TypeError):
        return []
