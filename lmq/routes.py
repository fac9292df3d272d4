"""Where topics are: the name server's routes, remembered for a while, and a client for each broker."""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lmq.client import Answer, Client
from lmq.errors import ClosedError, ConnectFailedError, NotFoundError, SdkError, response_error
from lmq.queues import LIGHT_PREFIX, MessageQueue
from lmq.remoting.commands import Command
from lmq.remoting.request_codes import RequestCode
from lmq.remoting.response_codes import ResponseCode
from lmq.remoting.signature import AccessKeys

TEMPLATE_TOPIC = "TBW102"
NEW_TOPIC_QUEUES = 4  # of a topic that a send makes, at most
ROUTE_S = 30.0  # a route is asked for again after it, as other clients do
STALE_S = 5.0  # and so soon after a name server that did not answer
NEXT_S = 0.3  # until the next name server is asked as well
MASTER_ID = "0"
PERM_WRITE, PERM_READ = 2, 4
_BARE_KEY = re.compile(rb"([{,])(\d+):")


@dataclass(slots=True, frozen=True)
class Route:
    """One broker of a topic, and its queues."""

    broker_name: str
    server: str
    read_queues: int
    write_queues: int


BrokerAnswerer = Callable[[str, Command], Answer]
"""Answers a request of the broker at an address."""


class Routes:
    """Routes and clients of one producer or consumer.

    Args:
        namesrv: `HOST:PORT`, several with `;` between.
        timeout_s: How long to wait for an answer.
        greeting: Gives the heartbeat for brokers.
        tls: What connections are secured by; without it, they are not.
        keys: The user that requests are sent as; without it, as nobody.
        answerer: Answers what brokers ask; it is told which of them does.
    """

    def __init__(
        self,
        namesrv: str,
        *,
        timeout_s: float,
        greeting: Callable[[], Command],
        tls: ssl.SSLContext | None = None,
        keys: AccessKeys | None = None,
        answerer: BrokerAnswerer | None = None,
    ) -> None:
        servers = [server for server in namesrv.split(";") if server.strip()]
        if not servers:
            raise ValueError("no name server was given")
        self._timeout_s = timeout_s
        self._greeting = greeting
        self._tls = tls
        self._keys = keys
        self._answerer = answerer
        self._namesrvs = [Client(server, timeout_s=timeout_s, tls=tls, keys=keys) for server in servers]
        self._brokers: dict[str, Client] = {}
        self._routes: dict[str, tuple[list[Route], float]] = {}
        self._asking: dict[str, asyncio.Task[list[Route]]] = {}
        self._is_closed = False

    async def find(self, topic: str) -> list[Route]:
        """Return the brokers of a topic; a light queue may be on any.

        All that ask while the name server is being asked get its one answer. If there is none, what it said before
        holds for a while more.

        Raises:
            NotFoundError: The name server knows no such topic.
            ClosedError: `close` was called before it answered.
            SdkError: It could not be asked.
        """
        known = self._routes.get(topic)
        if known is not None and known[1] > time.monotonic():
            return known[0]
        asking = self._asking.get(topic)
        if asking is None:
            if self._is_closed:
                raise ClosedError
            asking = self._asking[topic] = asyncio.create_task(self._refresh(topic))
            asking.add_done_callback(lambda asked: self._on_asked(topic, asked))
        await asyncio.wait((asking,))  # goes on when one that waits is cancelled
        if asking.cancelled():
            raise ClosedError  # `close` did it
        return asking.result()

    def _on_asked(self, topic: str, asked: asyncio.Task[list[Route]]) -> None:
        del self._asking[topic]
        if not asked.cancelled():
            asked.exception()  # is no news to the loop, even where nobody waits any more

    async def _refresh(self, topic: str) -> list[Route]:
        holds_s = ROUTE_S
        try:
            routes = await (self._ask_cluster() if topic.startswith(LIGHT_PREFIX) else self._ask_topic(topic))
        except NotFoundError:
            self._routes.pop(topic, None)
            raise
        except SdkError:
            known = self._routes.get(topic)
            if known is None:
                raise
            routes, holds_s = known[0], STALE_S
        self._routes[topic] = (routes, time.monotonic() + holds_s)
        return routes

    def forget(self, topic: str) -> None:
        """Ask the name server again the next time."""
        known = self._routes.get(topic)
        if known is not None:
            self._routes[topic] = (known[0], 0.0)

    async def find_for_send(self, topic: str) -> list[Route]:
        """Return the brokers of a topic. Where a send would make the topic, return the brokers that would make it."""
        try:
            return await self.find(topic)
        except NotFoundError:
            routes = await self.find(TEMPLATE_TOPIC)
        return [replace(route, write_queues=min(route.write_queues, NEW_TOPIC_QUEUES)) for route in routes]

    async def queues(self, topic: str) -> list[MessageQueue]:
        """Return all queues of a topic that can be read, on all brokers, sorted."""
        routes = await self.find(topic)
        return sorted(MessageQueue(topic, route.broker_name, i) for route in routes for i in range(route.read_queues))

    async def broker_of(self, queue: MessageQueue) -> Client:
        """Return the client of a queue's broker.

        Raises:
            ConnectFailedError: The name server does not know it at present.
        """
        for route in await self.find(queue.topic):
            if route.broker_name == queue.broker_name:
                return self.client_of(route)
        raise ConnectFailedError(f"broker {queue.broker_name}", f"the name server has it not for {queue.topic}")

    def client_of(self, route: Route) -> Client:
        """Return the client of a route's broker."""
        if self._is_closed:
            raise ClosedError
        client = self._brokers.get(route.server)
        if client is None:
            client = self._brokers[route.server] = Client(
                route.server,
                timeout_s=self._timeout_s,
                greeting=self._greeting,
                tls=self._tls,
                keys=self._keys,
                answerer=lambda request: self._answerer(route.server, request) if self._answerer else None,
            )
        return client

    async def _ask_topic(self, topic: str) -> list[Route]:
        ext = {"topic": topic, "acceptStandardJsonOnly": "true"}
        said = await self._ask(Command(RequestCode.GET_ROUTEINFO_BY_TOPIC, ext=ext))
        servers = {
            str(broker["brokerName"]): str(broker["brokerAddrs"][MASTER_ID])
            for broker in _dicts(said, "brokerDatas")
            if MASTER_ID in broker.get("brokerAddrs", {})
        }
        routes = [
            Route(str(queues["brokerName"]), servers[str(queues["brokerName"])], *_counts(queues))
            for queues in _dicts(said, "queueDatas")
            if str(queues.get("brokerName")) in servers
        ]
        return _checked(routes, topic)

    async def _ask_cluster(self) -> list[Route]:
        said = await self._ask(Command(RequestCode.GET_BROKER_CLUSTER_INFO))
        table = said.get("brokerAddrTable")
        brokers = table if isinstance(table, dict) else {}
        routes = [
            Route(str(name), str(broker["brokerAddrs"][MASTER_ID]), 1, 1)
            for name, broker in sorted(brokers.items())
            if isinstance(broker, dict) and MASTER_ID in broker.get("brokerAddrs", {})
        ]
        return _checked(routes, "light queues")

    async def _ask(self, command: Command) -> dict[str, Any]:
        response = await self._ask_one_of_all(command)
        if response.code != ResponseCode.SUCCESS:
            raise response_error(response.code, response.remark)
        return _parse(bytes(response.body))

    async def _ask_one_of_all(self, command: Command) -> Command:
        """Return the first answer of a name server: the one that answered last is asked first.

        The next is asked where one fails, and also where it says nothing for a moment.
        """
        left = list(self._namesrvs)
        asked: dict[asyncio.Task[Command], Client] = {}
        error: BaseException = ConnectFailedError("the name server", "none was given")
        try:
            while left or asked:
                if left:
                    client = left.pop(0)
                    one = Command(command.code, ext=command.ext)
                    asked[asyncio.create_task(client.request(one))] = client
                done, _ = await asyncio.wait(
                    asked, timeout=NEXT_S if left else None, return_when=asyncio.FIRST_COMPLETED
                )
                for task in done:
                    client = asked.pop(task)
                    failed = task.exception()
                    if failed is None:
                        self._namesrvs.remove(client)
                        self._namesrvs.insert(0, client)
                        return task.result()
                    error = failed
                    if not isinstance(error, SdkError) or isinstance(error, ClosedError):
                        raise error
            raise error
        finally:
            for task in asked:
                task.cancel()
            await asyncio.gather(*asked, return_exceptions=True)

    async def close(self) -> None:
        """Close all connections; what waits for a route gets `ClosedError` at once."""
        self._is_closed = True
        asking = tuple(self._asking.values())
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
        await asyncio.gather(*(client.close() for client in (*self._namesrvs, *self._brokers.values())))

    def clients(self) -> Sequence[Client]:
        """Return the clients of all brokers that were asked so far."""
        return list(self._brokers.values())


def _parse(body: bytes) -> dict[str, Any]:
    """Return the object in an answer; name servers write some numbers as keys without quotes."""
    try:
        said = json.loads(_BARE_KEY.sub(rb'\1"\2":', body))
    except ValueError as error:
        raise SdkError(f"the name server's answer cannot be read: {error}") from error
    return said if isinstance(said, dict) else {}


def _dicts(said: dict[str, Any], name: str) -> list[dict[str, Any]]:
    value = said.get(name)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _counts(queues: dict[str, Any]) -> tuple[int, int]:
    """Return how many queues can be read, and how many written."""
    perm = int(queues.get("perm", PERM_READ | PERM_WRITE))
    read = int(queues.get("readQueueNums", 1)) if perm & PERM_READ else 0
    return read, int(queues.get("writeQueueNums", 1)) if perm & PERM_WRITE else 0


def _checked(routes: list[Route], topic: str) -> list[Route]:
    if not routes:
        raise NotFoundError(ResponseCode.TOPIC_NOT_EXIST, f"no broker serves {topic}")
    return routes
