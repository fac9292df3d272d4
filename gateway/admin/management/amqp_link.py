"""A client of our own AMQP door, in memory: what the API changes is asked for as clients ask, with their rights.

Nothing is called back from inside a call: what the door writes is read in a turn of its own.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from fastapi import HTTPException
from pamqp import base, body, commands, frame, header, heartbeat

from gateway.admin.login import Caller, not_in
from gateway.admin.management.any_names import Consume, Get, OpenConnection
from gateway.admin.management.failures import bad_request, busy, not_found
from gateway.admin.view import AdminView
from gateway.amqp.handler import AmqpHandler
from gateway.amqp.methods import encode_method
from gateway.amqp.reply_codes import ReplyCode
from gateway.amqp.table_writer import encode_table
from gateway.auth.credentials import GUEST, OWN_PEER
from gateway.net.protocol import Transport

WAIT_S = 10.0  # for one answer; publishers may be held back while the disk or the memory is low
CHANNEL = 1
TURNS_MAX = 1_000  # that are waited for what was sent last; chosen: mostly it takes one
Frame = base.Frame | body.ContentBody | header.ContentHeader | header.ProtocolHeader | heartbeat.Heartbeat
Answer = TypeVar("Answer", bound=base.Frame)


class Message:
    """A message with its method, `basic.get-ok`, `deliver` or `return`; `origin` is the `LMQ_DIED` of what was got."""

    def __init__(
        self, method: base.Frame, properties: commands.Basic.Properties, content: bytes, origin: bytes
    ) -> None:
        self.method = method
        self.properties = properties
        self.body = content
        self.origin = origin


class AmqpLink(Transport):
    """One connection with one channel.

    Args:
        begin_read: Tells the moment.
        peer: Where the client of the API comes from.
        find_lack: Tells what publishers are held back for, empty where they are not.
    """

    __slots__ = (
        "_begin_read", "_buffer", "_find_lack", "_frames", "_handler", "_has_more", "_is_open", "_is_paused",
        "_is_pumping", "_outgoing", "_waiter", "payload_max",
    )  # fmt: skip

    def __init__(self, begin_read: Callable[[int], int], peer: str, find_lack: Callable[[], str]) -> None:
        super().__init__()
        self.peer = peer
        self.peer_host = b"\x7f\0\0\1\0\0\0\0"
        self.payload_max = 0
        self._begin_read = begin_read
        self._find_lack = find_lack
        self._handler: AmqpHandler | None = None
        self._buffer = bytearray()  # of what the door wrote
        self._frames: deque[Frame] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._outgoing = bytearray()
        self._is_open = True
        self._is_paused = self._is_pumping = self._has_more = False

    async def open(self, connect: Callable[[Transport], AmqpHandler], caller: Caller, vhost: str) -> None:
        """Come in, as the caller, and open a channel.

        Raises:
            HTTPException: The door does not let it in.
        """
        said, mechanism = f"\0{caller.user}\0{caller.password}", "PLAIN"
        if caller.scopes is not None:  # a token has let it in, which names its user
            said, mechanism, self.peer_name = "", "EXTERNAL", caller.user
            self.peer = OWN_PEER if caller.user == GUEST else self.peer
        self._handler = connect(self)
        self._send(header.ProtocolHeader())
        await self._expect(commands.Connection.Start)
        self._send(commands.Connection.StartOk({}, mechanism, said, "en_US"))
        tune = await self._expect(commands.Connection.Tune)
        self.payload_max = (tune.frame_max or 131_072) - 8
        self._send(commands.Connection.TuneOk(tune.channel_max, tune.frame_max, 0))
        self._send(OpenConnection(vhost))
        await self._expect(commands.Connection.OpenOk)
        await self.call(commands.Channel.Open(), commands.Channel.OpenOk)

    async def call(self, method: base.Frame, answer: type[Answer]) -> Answer:
        """Send a method, and return its answer.

        Raises:
            HTTPException: The door refuses it.
        """
        self._send(method)
        return await self._expect(answer)

    async def publish(
        self, method: commands.Basic.Publish, properties: commands.Basic.Properties, content: bytes
    ) -> bool:
        """Publish a message; return whether it went to a queue, once it is stored.

        Raises:
            HTTPException: The door refuses it.
        """
        await self.call(commands.Confirm.Select(), commands.Confirm.SelectOk)
        self._send(method)
        self._send(header.ContentHeader(0, len(content), properties))
        for first in range(0, len(content), self.payload_max):
            self._send(body.ContentBody(content[first : first + self.payload_max]))
        is_routed = True
        while True:
            frame_ = await self._next()
            if isinstance(frame_, commands.Basic.Return):
                is_routed = False
                await self._read_message(frame_)
            elif isinstance(frame_, commands.Basic.Nack):
                raise busy("a queue is full, or the disk is")
            elif isinstance(frame_, commands.Basic.Ack):
                return is_routed

    async def get(self, queue: str, *, no_ack: bool) -> Message | None:
        """Take a message from a queue; None where there is none.

        Raises:
            HTTPException: The door refuses it.
        """
        if self._handler is not None:
            self._handler.reading.notes_origin = True
        self._send(Get(0, queue, no_ack))
        frame_ = await self._next()
        return await self._read_message(frame_) if isinstance(frame_, commands.Basic.GetOk) else None

    async def consume(self, queue: str, prefetch: int, arguments: dict[str, Any]) -> None:
        """Begin to read a queue as a consumer that acknowledges.

        Raises:
            HTTPException: The door refuses it.
        """
        await self.call(commands.Basic.Qos(0, prefetch, False), commands.Basic.QosOk)  # noqa: FBT003 - not of the channel
        self._send(Consume(0, queue, "", False, False, False, False, arguments))  # noqa: FBT003
        await self._expect(commands.Basic.ConsumeOk)

    async def next_delivery(self) -> Message:
        """Return the next message that the door gives to the consumer.

        Raises:
            HTTPException: The door has closed the channel or the connection, or none comes.
        """
        return await self._read_message(await self._expect(commands.Basic.Deliver))

    def tell(self, method: base.Frame) -> None:
        """Send a method that has no answer."""
        self._send(method)

    async def _read_message(self, method: base.Frame) -> Message:
        head = await self._next()
        assert isinstance(head, header.ContentHeader)
        content = bytearray()
        while len(content) < head.body_size:
            part = await self._next()
            assert isinstance(part, body.ContentBody)
            content += part.value
        origin = b"" if self._handler is None else self._handler.reading.origin
        return Message(method, head.properties or commands.Basic.Properties(), bytes(content), origin)

    async def _expect(self, answer: type[Answer]) -> Answer:
        while True:
            frame_ = await self._next()
            if isinstance(frame_, answer):
                return frame_

    async def _next(self) -> Frame:
        """Return the next frame that the door sends."""
        while not self._frames:
            if not self._is_open:
                raise busy("the gateway closed the connection")
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                async with asyncio.timeout(WAIT_S):
                    await self._waiter
            except TimeoutError as error:
                lack = self._find_lack()
                raise busy(f"publishers are held back: {lack}" if lack else "no answer came in time") from error
        frame_ = self._frames.popleft()
        if isinstance(frame_, commands.Channel.Close | commands.Connection.Close):
            raise failure_of(frame_.reply_code or 0, frame_.reply_text)
        return frame_

    async def leave(self) -> None:
        """Let what was sent be done, and end the connection."""
        for _ in range(TURNS_MAX):
            if not self._is_open or self._is_paused or not (self._outgoing or self._has_more):
                break
            await asyncio.sleep(0)
        self._is_open = False
        handler, self._handler = self._handler, None
        if handler is not None:
            handler.on_closed(self._begin_read(0))

    # What the door calls

    @property
    def local_address(self) -> tuple[str, int]:
        """No address."""
        return "admin", 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Take what the door says."""
        self.bytes_out += len(data)
        if not self._buffer:
            asyncio.get_running_loop().call_soon(self._read)
        self._buffer += data

    def close(self) -> None:
        """The door closes the connection: what it said before is read."""
        asyncio.get_running_loop().call_soon(self._lose)

    finish = close
    part = close
    abort = close

    def pause_reading(self) -> None:
        """Keep what is sent."""
        self._is_paused = True

    def resume_reading(self) -> None:
        """Go on."""
        self._is_paused = False
        self._pump_soon()

    hold_reading = pause_reading
    release_reading = resume_reading

    def request_turn(self) -> None:
        """Let the handler go on."""
        self._has_more = True
        self._pump_soon()

    def fileno(self) -> int:
        """No socket."""
        return -1

    def deadline_changed(self) -> None:
        """There is no deadline: an answer is waited for some seconds only."""

    # Turns of its own

    def _send(self, frame_: Frame) -> None:
        is_of_connection = isinstance(
            frame_, commands.Connection.StartOk | commands.Connection.TuneOk | commands.Connection.Open
        )
        try:
            channel = 0 if is_of_connection else CHANNEL
            if isinstance(frame_, base.Frame):
                self._outgoing += encode_method(frame_, channel, encode_table)
            else:
                self._outgoing += frame.marshal(frame_, channel)
        except (TypeError, ValueError, OverflowError) as error:  # a name, a property or a number that is too long
            raise bad_request(str(error)) from error
        self._pump_soon()

    def _pump_soon(self) -> None:
        if not self._is_pumping and self._is_open:
            self._is_pumping = True
            asyncio.get_running_loop().call_soon(self._pump)

    def _pump(self) -> None:
        """Hand to the door what waits for it."""
        self._is_pumping = False
        handler = self._handler
        if handler is None or not self._is_open or self._is_paused:
            return
        if self._has_more:
            self._has_more = handler.go_on(self._begin_read(0))
        elif self._outgoing:
            data, self._outgoing = bytes(self._outgoing), bytearray()
            self.bytes_in += len(data)
            self._has_more = handler.on_data(data, self._begin_read(len(data)))
        if self._has_more or self._outgoing:
            self._pump_soon()

    def _read(self) -> None:
        """Read what the door wrote."""
        data, self._buffer = bytes(self._buffer), bytearray()
        pos = 0
        while pos < len(data):
            count, _, frame_ = frame.unmarshal(data[pos:])
            pos += count
            self._frames.append(frame_)
        self._wake()

    def _lose(self) -> None:
        self._is_open = False
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def failure_of(code: int, text: str) -> HTTPException:
    """Return what the API answers where the door refused with a reply code."""
    reason = text.partition(" - ")[2] or text
    if code == ReplyCode.NOT_FOUND:
        return not_found(reason)
    if code in {ReplyCode.ACCESS_REFUSED, ReplyCode.NOT_ALLOWED}:
        return not_in(reason)
    return bad_request(reason)


@asynccontextmanager
async def open_link(view: AdminView, caller: Caller, vhost: str) -> AsyncIterator[AmqpLink]:
    """Connect to the AMQP door as `caller`, in a virtual host.

    Raises:
        HTTPException: The door does not let it in, or refuses what is asked for meanwhile.
    """
    if view.vhosts.find(vhost) is not None:
        verdict = caller.may.explain("enter", b"", vhost.encode())
        is_allowed = caller.may.may_enter(vhost.encode())
        caller.check(f"access to vhost '{vhost}'", is_allowed=is_allowed, verdict=verdict, vhost=vhost)
    link = AmqpLink(view.begin_read, caller.peer, lambda: view.broker.room.lack)
    try:
        await link.open(view.amqp.connect, caller, vhost)
        yield link
    finally:
        await link.leave()
