"""What members of producer and consumer groups have in common: they come, greet brokers, and say goodbye."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from types import NoneType, TracebackType
from typing import Self

from lmq.arguments import check_group, check_is, check_seconds
from lmq.client import Answer, make_client_id
from lmq.errors import SdkError
from lmq.remoting.commands import Command, encode_json
from lmq.remoting.request_codes import RequestCode
from lmq.remoting.signature import AccessKeys
from lmq.routes import BrokerAnswerer, Routes


class Member:
    """One member of a group. Use it as an async context manager, or call `start` and `stop`.

    Args:
        namesrv: The name server's `HOST:PORT`, several with `;` between.
        group: The group.
        greeting: What a heartbeat says of the group.
        farewell: What a farewell says of it.
        timeout_s: How long to wait for each answer.
        client_id: How brokers see this member; made up if not given.
        tls: What connections to the name server and to brokers are secured by; without it, they are not.
        access_key: The user that requests are sent as; empty: as nobody.
        secret_key: The secret that this user shares with the broker.

    Raises:
        TypeError: An argument is of another type.
        ValueError: A broker would not take the group's name, or an argument is none of those that there can be.
    """

    def __init__(
        self,
        namesrv: str,
        group: str,
        *,
        greeting: Mapping[str, object],
        farewell: Mapping[str, str],
        timeout_s: float,
        client_id: str | None,
        tls: ssl.SSLContext | None = None,
        access_key: str = "",
        secret_key: str = "",
    ) -> None:
        check_group(group)
        check_seconds("timeout_s", timeout_s)
        for name, text in (("namesrv", namesrv), ("access_key", access_key), ("secret_key", secret_key)):
            check_is(name, text, str)
        check_is("client_id", client_id, str, NoneType)
        check_is("tls", tls, ssl.SSLContext, NoneType)
        self.group = group
        self.client_id = client_id or make_client_id()
        self._greeting: Mapping[str, object] = greeting
        self._farewell = farewell
        self._timeout_s = timeout_s
        self._answerers: dict[int, BrokerAnswerer] = {}  # by request code: what this kind of member is asked
        keys = AccessKeys(access_key, secret_key) if access_key else None
        self._routes = Routes(
            namesrv, timeout_s=timeout_s, greeting=self._greet, tls=tls, keys=keys, answerer=self._answer
        )

    async def start(self) -> None:
        """Nothing yet: connections are made when they are needed."""

    async def stop(self) -> None:
        """Say goodbye and close all connections."""
        try:
            await self._say_goodbye()
        finally:
            await self._routes.close()

    async def __aenter__(self) -> Self:
        try:
            await self.start()
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def _say_goodbye(self) -> None:
        """Tell the brokers that this member goes; whether they hear it does not matter."""
        for client in self._routes.clients():
            if not client.is_open:
                continue
            ext = {"clientID": self.client_id, **self._farewell}
            try:
                await client.send_one_way(Command(RequestCode.UNREGISTER_CLIENT, ext=ext))
            except SdkError:
                continue

    def _answer(self, server: str, request: Command) -> Answer:
        """Answer what the broker at `server` asks, by the answerer of its code."""
        answerer = self._answerers.get(request.code)
        return answerer(server, request) if answerer is not None else None

    def _greet(self) -> Command:
        said = {"clientID": self.client_id, "producerDataSet": [], "consumerDataSet": [], **self._greeting}
        return Command(RequestCode.HEART_BEAT, body=encode_json(said))
