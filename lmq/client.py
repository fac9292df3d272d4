"""One connection to one address: requests matched with their answers, made again after it was lost."""

from __future__ import annotations

import asyncio
import functools
import inspect
import itertools
import logging
import os
import random
import socket
import ssl
import time
from collections.abc import Awaitable, Callable
from typing import cast

from lmq.errors import ClosedError, ConnectFailedError, ConnectionLostError, RequestTimeoutError
from lmq.remoting.commands import FLAG_ONE_WAY, HEADER_BINARY, HEADER_JSON, Command, answer, encode_command
from lmq.remoting.errors import FrameError
from lmq.remoting.frames import FrameInput, Frames
from lmq.remoting.response_codes import ResponseCode
from lmq.remoting.signature import AccessKeys, sign

LOGGER = logging.getLogger(__name__)

FAREWELL_S = 1.0  # what the other side gets to end TLS, before the connection is cut; chosen: it answers at once

FRAME_BYTES_MAX = 64 << 20  # of an answer; chosen, four times what official brokers take
FRAMES_AT_A_TIME = 64  # cut from one read; answers come a few at a time
BACK_OFF_FIRST_S = 0.05  # chosen: a broker that was started again is back in some tries
BACK_OFF_MAX_S = 5.0  # chosen: how late a client notes that a broker is back
LANGUAGE_PYTHON = 3  # its place in LANGUAGES
OPAQUE_MAX = 0x7FFFFFFF  # Java's int
PORT_MAX = 65_535  # TCP has two bytes for it
ANSWERS_MAX = 64  # to questions of one broker that are under way at the same time; chosen: brokers ask seldom
BINARY_CODE_MAX = 0x7FFF  # a binary header has 16 bits for it, which the codes of POP do not fit into
_INSTANCES = itertools.count(1)

Answer = Command | Awaitable[Command] | None
"""What a request of the broker is answered with, at once or later; None: it is not known."""
Answerer = Callable[[Command], Answer]


def parse_server(text: str) -> tuple[str, int]:
    """Return host and port of `HOST:PORT` or `[HOST]:PORT`; all before the last colon is the host.

    Raises:
        ValueError: The text is neither, or the port is not in 0..65535.
    """
    host, separator, port = text.rpartition(":")
    if not separator or "/" in host or not port.isascii() or not port.isdigit() or int(port) > PORT_MAX:
        raise ValueError(f"{text!r} is not HOST:PORT")
    return host.removeprefix("[").removesuffix("]"), int(port)


def make_client_id() -> str:
    """Return an identifier that no other client has now: our address, `@`, and what tells us apart there."""
    return f"{find_own_address()}@{os.getpid()}#{next(_INSTANCES)}#{time.time_ns():x}"


@functools.cache
def find_own_address() -> str:
    """Return the address that this machine is reached at from outside, or 127.0.0.1 where it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect(("192.0.2.1", 9))  # an address of nobody: a route is looked up, and nothing is sent
            address: str = asking.getsockname()[0]
        except OSError:
            return "127.0.0.1"
    return address


class Link(asyncio.Protocol):
    """An open connection. Answers go to what waits for their opaque number, requests of the broker to `answerer`."""

    def __init__(self, address: str, on_lost: Callable[[Link], None], answerer: Answerer | None = None) -> None:
        self.pending: dict[int, asyncio.Future[Command]] = {}
        self.is_open = False
        self.opened_s = 0.0  # by the loop's clock
        self.heard_s = 0.0  # when something came last, by the loop's clock
        self._address = address
        self._on_lost = on_lost
        self._answerer = answerer
        self._input = FrameInput(Frames(FRAMES_AT_A_TIME), FRAME_BYTES_MAX)
        self._transport: asyncio.Transport | None = None
        self._room = asyncio.Event()
        self._room.set()
        self._lost = asyncio.Event()
        self._answering: set[asyncio.Future[Command]] = set()  # that take their time

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The loop: connected."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one without saying so
        self.opened_s = asyncio.get_running_loop().time()
        self.is_open = True

    def data_received(self, data: bytes) -> None:
        """The loop: bytes came."""
        self.heard_s = asyncio.get_running_loop().time()
        self._input.receive_data(data)
        try:
            while self._input.cut():
                for i in range(self._input.frames.count):
                    self._take(self._input.decode(i))
        except FrameError as error:
            LOGGER.warning("closing connection: malformed frame address=%s reason=%s", self._address, error.reason)
            self.close()

    def _take(self, command: Command) -> None:
        if not command.is_response:
            self._answer(command)
            return
        waiting = self.pending.pop(command.opaque, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(command)

    def _answer(self, request: Command) -> None:
        response = self._answerer(request) if self._answerer is not None else None
        if isinstance(response, Awaitable):
            if len(self._answering) < ANSWERS_MAX:
                self._answer_later(request, response)
                return
            if inspect.iscoroutine(response):
                response.close()
            response = answer(request, ResponseCode.SYSTEM_BUSY, f"{ANSWERS_MAX} requests are under way already")
        self._write_answer(request, response)

    def _answer_later(self, request: Command, response: Awaitable[Command]) -> None:
        def write(answered: asyncio.Future[Command]) -> None:
            self._answering.discard(answered)
            if answered.cancelled():
                return
            error = answered.exception()
            if error is not None:
                LOGGER.error("a question of a broker failed code=%d", request.code, exc_info=error)
                self._write_answer(request, answer(request, ResponseCode.SYSTEM_ERROR, str(error)))
            else:
                self._write_answer(request, answered.result())

        answering = asyncio.ensure_future(response)
        self._answering.add(answering)
        answering.add_done_callback(write)

    def _write_answer(self, request: Command, response: Command | None) -> None:
        if request.is_one_way:
            return
        if response is None:
            remark = f"request type {request.code} not supported"
            response = answer(request, ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark)
        response.language = LANGUAGE_PYTHON
        self.write(encode_command(response))

    def connection_lost(self, exc: Exception | None) -> None:
        """The loop: the connection is gone; so are the answers that were waited for."""
        if exc is not None:
            LOGGER.debug("connection lost address=%s cause=%s", self._address, exc)
        self.is_open = False
        self._room.set()
        self._lost.set()
        pending, self.pending = self.pending, {}
        for waiting in pending.values():
            if not waiting.done():
                waiting.set_exception(ConnectionLostError(self._address))
        for answering in self._answering:
            answering.cancel()
        self._on_lost(self)

    def pause_writing(self) -> None:
        """The loop: the output is full."""
        self._room.clear()

    def resume_writing(self) -> None:
        """The loop: the output has room again."""
        self._room.set()

    async def wait_for_room(self, until_s: float) -> None:
        """Wait until the output has room; TimeoutError where it has none by `until_s`, of the loop's clock."""
        if not self._room.is_set():
            async with asyncio.timeout_at(until_s):
                await self._room.wait()

    def write(self, data: bytes) -> None:
        """Send a frame; a connection that is being lost takes none, and says so to each that waits for an answer."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def close(self) -> None:
        """Close the connection."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Cut the connection, whatever waits to be sent."""
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()

    async def finish(self) -> None:
        """Close the connection, and wait until it is: nothing of it is left to the loop then."""
        if self._transport is None:
            return
        self._transport.close()
        try:
            await asyncio.wait_for(self._lost.wait(), FAREWELL_S)
        except TimeoutError:
            self._transport.abort()
            await self._lost.wait()


class Client:
    """Requests to one address. It connects when it is first needed, and again, with back-off, after a loss.

    Args:
        server: `HOST:PORT` or `[HOST]:PORT`.
        timeout_s: How long to wait for an answer, and for a connection, where a request does not say.
        greeting: Gives the request that each new connection begins with, and that is repeated as a heartbeat.
        heartbeat_s: How often.
        tls: What the connection is secured by; without it, it is not.
        keys: The user that requests are sent as; without it, as nobody.
        answerer: Answers what the broker asks.

    Raises:
        ValueError: `server` is no address.
    """

    def __init__(
        self,
        server: str,
        *,
        timeout_s: float = 3.0,
        greeting: Callable[[], Command] | None = None,
        heartbeat_s: float = 30.0,
        tls: ssl.SSLContext | None = None,
        keys: AccessKeys | None = None,
        answerer: Answerer | None = None,
    ) -> None:
        self.server = server
        self._host, self._port = parse_server(server.strip())
        self._timeout_s = timeout_s
        self._greeting = greeting
        self._heartbeat_s = heartbeat_s
        self._tls = tls
        self._keys = keys
        self._answerer = answerer
        self._link: Link | None = None
        self._connecting = asyncio.Lock()
        self._opaque = 0
        self._failures = 0
        self._next_try_at_s = 0.0  # of the loop's clock
        self._refusal = "no answer"  # the last
        self._is_closed = False
        self._heart: asyncio.Task[None] | None = None

    async def request(self, command: Command, timeout_s: float | None = None) -> Command:
        """Send a request and return its answer, whatever its code.

        Raises:
            ConnectFailedError, ConnectionLostError, RequestTimeoutError: There is no answer.
        """
        return await self.wait_for(await self.start_request(command, timeout_s), timeout_s)

    async def start_request(self, command: Command, timeout_s: float | None = None) -> asyncio.Future[Command]:
        """Send a request and return what its answer will be; many may be on their way.

        Raises:
            ConnectFailedError, RequestTimeoutError: It cannot be sent in time.
        """
        link = await self._open_writable(timeout_s or self._timeout_s)
        self._opaque = self._opaque + 1 if self._opaque < OPAQUE_MAX else 1
        command.opaque = self._opaque
        waiting: asyncio.Future[Command] = asyncio.get_running_loop().create_future()
        if not link.is_open:
            waiting.set_exception(ConnectionLostError(self.server))
            return waiting
        link.pending[command.opaque] = waiting
        link.write(self._encode(command))
        return waiting

    async def wait_for(self, waiting: asyncio.Future[Command], timeout_s: float | None = None) -> Command:
        """Wait for an answer. Where nothing at all came meanwhile, the connection is given up: its other end is gone.

        Raises:
            ConnectionLostError, RequestTimeoutError: It does not come.
        """
        limit_s = timeout_s or self._timeout_s
        began_s = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(limit_s):
                return await waiting
        except TimeoutError:
            self._give_up_silent(began_s)
            raise RequestTimeoutError(self.server, limit_s) from None

    def _give_up_silent(self, since_s: float) -> None:
        """Cut the connection if it is as old as that and nothing came by it; the next request makes another."""
        link = self._find_link()
        if link is not None and link.opened_s <= since_s and link.heard_s < since_s:
            LOGGER.debug("giving up a silent connection address=%s", self.server)
            link.abort()

    async def send_one_way(self, command: Command) -> None:
        """Send a request that is not answered."""
        link = await self._open_writable(self._timeout_s)
        command.flag |= FLAG_ONE_WAY
        link.write(self._encode(command))

    @property
    def is_open(self) -> bool:
        """Whether there is a connection now."""
        return self._find_link() is not None

    async def close(self) -> None:
        """Close the connection; nothing can be asked any more."""
        self._is_closed = True
        heart, self._heart = self._heart, None
        if heart is not None:
            heart.cancel()
            await asyncio.gather(heart, return_exceptions=True)
        link, self._link = self._link, None
        if link is not None:
            await link.finish()

    async def _open_writable(self, timeout_s: float) -> Link:
        """Return the connection once its output has room; one that takes nothing for so long is given up."""
        began_s = asyncio.get_running_loop().time()
        link = await self._open_link(timeout_s)
        try:
            await link.wait_for_room(began_s + timeout_s)
        except TimeoutError:
            self._give_up_silent(began_s)
            raise RequestTimeoutError(self.server, timeout_s) from None
        return link

    async def _open_link(self, timeout_s: float) -> Link:
        link = self._find_link()
        if link is not None:
            return link
        until_s = asyncio.get_running_loop().time() + timeout_s
        try:
            async with asyncio.timeout_at(until_s):
                await self._connecting.acquire()
        except TimeoutError:
            raise ConnectFailedError(self.server, self._refusal) from None
        try:
            if self._is_closed:
                raise ClosedError
            link = self._find_link()  # another request may have made it
            if link is None:
                link = self._link = await self._connect(until_s)
            return link
        finally:
            self._connecting.release()

    def _find_link(self) -> Link | None:
        """Return the connection if it is open."""
        return self._link if self._link is not None and self._link.is_open else None

    async def _connect(self, until_s: float) -> Link:
        """Connect, trying again with back-off until the time is over.

        The moment of the next try is kept from one request to the next: a back-off that is longer than a request may
        take would else begin anew with each, and nothing be tried ever again.
        """
        clock = asyncio.get_running_loop().time
        while self._next_try_at_s < until_s:
            await asyncio.sleep(self._next_try_at_s - clock())
            try:
                async with asyncio.timeout_at(until_s):
                    return await self._connect_once()
            except (OSError, UnicodeError) as error:  # no answer in time, and a host that no name can be
                self._failures += 1
                self._next_try_at_s = clock() + self._back_off_s()
                self._refusal = getattr(error, "strerror", None) or str(error) or "no answer"
        await asyncio.sleep(until_s - clock())
        raise ConnectFailedError(self.server, self._refusal)

    async def _connect_once(self) -> Link:
        loop = asyncio.get_running_loop()
        _, link = await loop.create_connection(
            lambda: Link(self.server, self._forget, self._answerer), self._host, self._port, ssl=self._tls
        )
        if self._is_closed:  # meanwhile
            link.close()
            raise ClosedError
        self._failures = 0
        self._next_try_at_s = 0.0
        if self._greeting is not None:
            link.write(self._encode(self._make_greeting(self._greeting)))
            if self._heart is None:
                self._heart = loop.create_task(self._beat(self._greeting))
        return link

    def _back_off_s(self) -> float:
        longest_s: float = min(BACK_OFF_FIRST_S * 2 ** min(self._failures - 1, 16), BACK_OFF_MAX_S)
        return longest_s * (0.5 + random.random() / 2)  # noqa: S311 - spreads clients out, guards nothing

    def _forget(self, link: Link) -> None:
        if self._link is link:
            self._link = None

    def _make_greeting(self, greeting: Callable[[], Command]) -> Command:
        command = greeting()
        command.flag |= FLAG_ONE_WAY
        return command

    async def _beat(self, greeting: Callable[[], Command]) -> None:
        while True:
            await asyncio.sleep(self._heartbeat_s)
            link = self._find_link()
            if link is not None:
                link.write(self._encode(self._make_greeting(greeting)))

    def _encode(self, command: Command) -> bytes:
        command.language = LANGUAGE_PYTHON
        command.header_type = HEADER_BINARY if command.code <= BINARY_CODE_MAX else HEADER_JSON
        if self._keys is not None:
            sign(command, self._keys)
        return encode_command(command)
