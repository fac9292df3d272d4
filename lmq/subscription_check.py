"""Asks a broker whether it understands a subscription, before the group gets nothing in silence."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator

from lmq.errors import ResponseError, SdkError, response_error
from lmq.remoting.commands import Command, encode_json
from lmq.remoting.request_codes import RequestCode
from lmq.remoting.response_codes import ResponseCode
from lmq.routes import Routes
from lmq.subscription import SQL, Subscription

LOGGER = logging.getLogger(__name__)


class Subscribed:
    """What `subscribe` returns. Await it to wait until a broker has confirmed that it understands the subscription.

    Nobody needs to: a subscription that is refused is given up and logged in any case.
    """

    def __init__(self, checking: asyncio.Task[None] | None = None) -> None:
        self._checking = checking

    def __await__(self) -> Generator[object, None, None]:
        if self._checking is not None:
            yield from asyncio.shield(self._checking).__await__()


class SubscriptionCheck:
    """Checks subscriptions of one member.

    Args:
        routes: Where brokers are.
        group: The group.
        client_id: The member.
    """

    def __init__(self, routes: Routes, group: str, client_id: str) -> None:
        self._routes = routes
        self._group = group
        self._client_id = client_id
        self._tasks: set[asyncio.Task[None]] = set()

    async def check(self, subscription: Subscription) -> None:
        """Return where a broker of the topic understands the subscription, or where there is nothing to understand.

        Raises:
            ResponseError: It does not, or does not filter by SQL.
            SdkError: It could not be asked.
        """
        if subscription.kind != SQL:
            return
        described = {"clientId": self._client_id, "group": self._group, "subscriptionData": subscription.describe()}
        routes = await self._routes.find_for_send(subscription.topic)
        command = Command(RequestCode.CHECK_CLIENT_CONFIG, body=encode_json(described))
        response = await self._routes.client_of(routes[0]).request(command)
        if response.code != ResponseCode.SUCCESS:
            raise response_error(response.code, response.remark)

    def begin(self, subscription: Subscription, on_refused: Callable[[Subscription], None]) -> Subscribed:
        """Check a subscription by and by; `on_refused` is called where a broker refuses it."""
        if subscription.kind != SQL:
            return Subscribed()
        task = asyncio.get_running_loop().create_task(self._check(subscription, on_refused))
        self._tasks.add(task)
        task.add_done_callback(self._end)
        return Subscribed(task)

    async def _check(self, subscription: Subscription, on_refused: Callable[[Subscription], None]) -> None:
        try:
            await self.check(subscription)
        except ResponseError as error:
            if error.code != ResponseCode.TOPIC_NOT_EXIST:  # one that comes later is checked by its broker then
                LOGGER.warning("subscription given up topic=%s cause=%s", subscription.topic, error)
                on_refused(subscription)
            raise

    def _end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            level = logging.DEBUG if isinstance(error, SdkError) else logging.ERROR
            LOGGER.log(level, "subscription not checked cause=%s", error)

    async def stop(self) -> None:
        """Check nothing any more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
