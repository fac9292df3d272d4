"""An AMQP 0-9-1 load that costs next to nothing: pre-encoded publishes out, deliveries of one size counted in."""

from __future__ import annotations

import asyncio
import struct
from typing import Any, TypeVar, cast

from pamqp import commands, frame, header

from tests.benchmarks.scenarios.load import Count, Probe, Result, drain, measure, no_probe

FRAME_HEAD = struct.Struct(">BHI")
ACK_FRAME = struct.Struct(">BHIHHQBB")
BASIC_ACK = (60, 80)
P = TypeVar("P", bound="AmqpPeer")


class AmqpPeer(asyncio.Protocol):
    """A connection with one open channel; `call` sends a method and waits for its answer."""

    def __init__(self, count: Count) -> None:
        self.count = count
        self.tail = b""
        self.is_raw = False
        self.answers: asyncio.Queue[Any] = asyncio.Queue()
        self.transport: asyncio.WriteTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.WriteTransport", transport)
        self.transport.write(b"AMQP\x00\x00\x09\x01")

    def data_received(self, data: bytes) -> None:
        data = self.tail + data if self.tail else data
        if self.is_raw:
            self.take(data)
            return
        while len(data) >= 7:
            size = FRAME_HEAD.unpack_from(data)[2] + 8
            if len(data) < size:
                break
            self.answers.put_nowait(frame.unmarshal(data[:size])[2])
            data = data[size:]
        self.tail = data

    def connection_lost(self, exc: Exception | None) -> None:
        self.count.closed += 1
        self.answers.put_nowait(exc or ConnectionError("closed"))

    def take(self, data: bytes) -> None:
        """Count what came in after the set-up; keep the unfinished end in `tail`."""

    def send(self, method: Any, channel: int = 1) -> None:
        """Send one method."""
        self.transport.write(frame.marshal(method, channel))

    async def call(self, method: Any, channel: int = 1) -> Any:
        """Send one method and return the answer."""
        self.send(method, channel)
        return await self.answer()

    async def answer(self) -> Any:
        """Return the next method; a closed connection or channel raises."""
        found = await asyncio.wait_for(self.answers.get(), 30)
        if isinstance(found, Exception):
            raise found
        if isinstance(found, (commands.Channel.Close, commands.Connection.Close)):
            raise ConnectionError(f"{found.reply_code} {found.reply_text}")
        return found

    async def set_up(self) -> None:
        """Log in as guest and open channel 1."""
        await self.answer()
        tune = await self.call(commands.Connection.StartOk({}, "PLAIN", "\0guest\0guest", "en_US"), 0)
        self.send(commands.Connection.TuneOk(tune.channel_max, tune.frame_max, 0), 0)
        await self.call(commands.Connection.Open("/"), 0)
        await self.call(commands.Channel.Open())


class Confirms:
    """Counts confirmed publishes; a server may confirm one by itself before others that it then confirms together."""

    def __init__(self) -> None:
        self.until = 0  # all tags up to this one
        self.beyond: set[int] = set()  # single ones after it

    def take(self, tag: int, *, is_multiple: bool) -> None:
        """Note one confirm."""
        if is_multiple or tag == self.until + 1:
            self.until = max(self.until, tag)
        elif tag > self.until:
            self.beyond.add(tag)
        if self.beyond:
            self._close_up()

    def _close_up(self) -> None:
        self.beyond = {tag for tag in self.beyond if tag > self.until}
        while self.until + 1 in self.beyond:
            self.until += 1
            self.beyond.remove(self.until)

    @property
    def count(self) -> int:
        """How many publishes were confirmed."""
        return self.until + len(self.beyond)


class AmqpPublisher(AmqpPeer):
    """Publishes one message over and over with `window` unconfirmed; 0 publishes without confirms."""

    def configure(self, exchange: str, key: str, body: bytes, window: int, *, is_persistent: bool = True) -> None:
        """Encode the message."""
        method = frame.marshal(commands.Basic.Publish(0, exchange, key), 1)
        properties = commands.Basic.Properties(delivery_mode=2 if is_persistent else 1)
        head = frame.marshal(header.ContentHeader(0, len(body), properties), 1)
        self.message = method + head + FRAME_HEAD.pack(3, 1, len(body)) + body + b"\xce"
        self.window = window
        self.block = self.message * max(window, 256)
        self.confirms = Confirms()
        self.is_running = False
        self.is_paused = False

    def start(self) -> None:
        """Begin to publish."""
        self.is_running = True
        self.is_raw = True
        self.tail = b""
        self.pump()

    def pump(self) -> None:
        """Write until the socket or the window is full."""
        if self.window:
            free = self.window - (self.count.sent - self.count.acked)
            if self.is_running and free > 0:
                self.transport.write(self.block[: free * len(self.message)])
                self.count.sent += free
            return
        if self.is_running and not self.is_paused:
            self.transport.write(self.block)
            self.count.sent += len(self.block) // len(self.message)
            asyncio.get_running_loop().call_soon(self.pump)

    def pause_writing(self) -> None:
        self.is_paused = True

    def resume_writing(self) -> None:
        self.is_paused = False
        if not self.window:
            self.pump()

    def take(self, data: bytes) -> None:
        whole = len(data) - len(data) % ACK_FRAME.size
        for place in range(0, whole, ACK_FRAME.size):
            _, _, _, class_id, method_id, tag, is_multiple, _ = ACK_FRAME.unpack_from(data, place)
            assert (class_id, method_id) == BASIC_ACK, data[place : place + 40]
            self.confirms.take(tag, is_multiple=bool(is_multiple))
        self.tail = data[whole:]
        self.count.acked = self.confirms.count
        self.pump()


class AmqpConsumer(AmqpPeer):
    """Counts deliveries of one size and acknowledges all so far at each read."""

    size = 0
    got = 0

    def start(self) -> None:
        """Deliveries follow."""
        self.is_raw = True

    def take(self, data: bytes) -> None:
        if not self.size:
            self.size = delivery_size(data)
            if not self.size:
                self.tail = data
                return
        got, rest = divmod(len(data), self.size)
        self.tail = data[len(data) - rest :] if rest else b""
        if got:
            self.got += got
            self.count.received += got
            self.transport.write(ACK_FRAME.pack(1, 1, 13, *BASIC_ACK, self.got, 1, 0xCE))


def delivery_size(data: bytes) -> int:
    """Return the bytes of the first delivery (three frames), or 0 where it is not whole yet."""
    end = 0
    for _ in range(3):
        if len(data) < end + 7:
            return 0
        end += FRAME_HEAD.unpack_from(data, end)[2] + 8
    return end if len(data) >= end else 0


async def open_peer(host: str, port: int, peer: P) -> P:
    """Connect `peer`, log in and open its channel."""
    await asyncio.get_running_loop().create_connection(lambda: peer, host, port)
    await peer.set_up()
    return peer


async def open_consumer(host: str, port: int, count: Count, queue: str, prefetch: int) -> AmqpConsumer:
    """Consume from a queue that is there."""
    consumer = await open_peer(host, port, AmqpConsumer(count))
    await consumer.call(commands.Basic.Qos(0, prefetch, False))
    await consumer.call(commands.Basic.Consume(0, queue, "c"))
    consumer.start()
    return consumer


async def declare_queue(peer: AmqpPeer, queue: str, exchange: str, key: str = "") -> None:
    """Make an empty durable queue, bound to `exchange`."""
    await peer.call(commands.Queue.Declare(0, queue, durable=True))
    await peer.call(commands.Queue.Purge(0, queue))
    await peer.call(commands.Queue.Bind(0, queue, exchange, key))


async def ready_count(host: str, port: int, queue: str) -> int:
    """Return how many messages wait in `queue`, as the server says."""
    peer = await open_peer(host, port, AmqpPeer(Count()))
    answer = await peer.call(commands.Queue.Declare(0, queue, durable=True))
    peer.transport.abort()
    return answer.message_count


async def run(
    host: str,
    port: int,
    *,
    secs: float,
    queues: int = 1,
    consumers: int | None = None,
    window: int = 2_000,
    payload_bytes: int = 256,
    prefetch: int = 4_000,
    warm_s: float = 0.5,
    probe: Probe = no_probe,
) -> Result:
    """Publish through a fanout exchange to `queues` durable queues, `consumers` (default: all) of them consumed."""
    count, consumed = Count(), queues if consumers is None else consumers
    publisher = await open_peer(host, port, AmqpPublisher(count))
    await publisher.call(commands.Exchange.Declare(0, "bench", "fanout", durable=True))
    for i in range(queues):
        await declare_queue(publisher, f"bench{i}", "bench")
    made = [await open_consumer(host, port, count, f"bench{i}", prefetch) for i in range(consumed)]
    publisher.configure("bench", "", b"x" * payload_bytes, window)
    await publisher.call(commands.Confirm.Select())
    publisher.start()
    result = await measure(count, secs, warm_s=warm_s, probe=probe)
    publisher.is_running = False
    await drain(count, lambda: count.acked == count.sent and count.received >= count.sent * consumed)
    result.lost = count.acked * consumed - count.received
    if not consumed:  # stored is what counts: a confirmed message is in each queue
        result.received = result.acked * queues
        result.lost = queues * count.acked - queues * await ready_count(host, port, f"bench{queues - 1}")
    for peer in (publisher, *made):
        peer.transport.abort()
    return result
