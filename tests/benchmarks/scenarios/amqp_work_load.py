"""What services do with AMQP queues: share work, get, reject, call one another, and have very many queues."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any

from pamqp import commands, frame, header

from tests.benchmarks.scenarios.amqp_load import (
    ACK_FRAME,
    BASIC_ACK,
    FRAME_HEAD,
    AmqpConsumer,
    AmqpPeer,
    AmqpPublisher,
    delivery_size,
    open_consumer,
    open_peer,
)
from tests.benchmarks.scenarios.load import Count, Probe, Result, drain, in_groups, measure, no_probe
from tests.benchmarks.scenarios.mqtt_latency_load import percentile

BASIC_NACK = (60, 120)
QUEUE, DEAD = "bench-work", "bench-dead"
REPLY_TO = "amq.rabbitmq.reply-to"
PREFETCH = 500
DECLARED_AT_ONCE = 500
ROUNDS_EACH = 50  # confirms at one exchange before those at the other


def encode(exchange: str, key: str, body: bytes, **properties: Any) -> bytes:
    """Return the frames of one publish on channel 1."""
    block = commands.Basic.Properties(delivery_mode=2, **properties)
    head = frame.marshal(header.ContentHeader(0, len(body), block), 1)
    return frame.marshal(commands.Basic.Publish(0, exchange, key), 1) + head + _body(body)


def _body(body: bytes) -> bytes:
    return FRAME_HEAD.pack(3, 1, len(body)) + body + b"\xce"


class SharingPublisher(AmqpPublisher):
    """One of several publishers that count together."""

    own_sent = 0

    def configure_as(self, message: bytes, window: int) -> None:
        """Publish this message over and over."""
        self.configure("", "", b"", window)
        self.message = message
        self.block = message * window

    def pump(self) -> None:
        free = self.window - (self.own_sent - self.confirms.count)
        if self.is_running and free > 0:
            self.transport.write(self.block[: free * len(self.message)])
            self.own_sent += free
            self.count.sent += free

    def take(self, data: bytes) -> None:
        others = self.count.acked - self.confirms.count
        super().take(data)
        self.count.acked = others + self.confirms.count


class Rejecter(AmqpConsumer):
    """Rejects all deliveries so far at each read."""

    def take(self, data: bytes) -> None:
        write = self.transport.write
        if self.size or delivery_size(data):
            self.size = self.size or delivery_size(data)
            got, rest = divmod(len(data), self.size)
            self.tail = data[len(data) - rest :] if rest else b""
            self.got += got
            if got:
                write(ACK_FRAME.pack(1, 1, 13, *BASIC_NACK, self.got, 1, 0xCE))
        else:
            self.tail = data


async def run_shared(
    host: str,
    port: int,
    *,
    secs: float,
    publishers: int = 8,
    consumers: int = 8,
    window: int = 250,
    priorities: int = 0,
    is_rejecting: bool = False,
    payload_bytes: int = 256,
    probe: Probe = no_probe,
) -> Result:
    """Publish to one durable queue and consume it, by many; or reject all, and consume its dead letters.

    Args:
        host: The server's.
        port: The server's.
        secs: To measure.
        publishers: How many.
        consumers: How many, of the queue that is counted.
        window: Unconfirmed messages of one publisher.
        priorities: Levels of the queue; publishers take them in turn.
        is_rejecting: Whether as many consumers reject what comes, and the dead letters are counted.
        payload_bytes: Of a message.
        probe: The CPU seconds of the server.
    """
    count = Count()
    terms: dict[str, Any] = {"x-max-priority": priorities} if priorities else {}
    if is_rejecting:
        terms = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": DEAD}
    control = await open_peer(host, port, AmqpPeer(Count()))
    names = {QUEUE: terms, DEAD: {}} if is_rejecting else {QUEUE: terms}
    await _declare_anew(control, names)
    made = [await open_consumer(host, port, count, DEAD if is_rejecting else QUEUE, PREFETCH) for _ in range(consumers)]
    for _ in range(consumers if is_rejecting else 0):
        rejecter = await open_peer(host, port, Rejecter(Count()))
        await rejecter.call(commands.Basic.Qos(0, PREFETCH, False))
        await rejecter.call(commands.Basic.Consume(0, QUEUE, "c"))
        rejecter.start()
        made.append(rejecter)
    senders = []
    for number in range(publishers):
        sender = await open_peer(host, port, SharingPublisher(count))
        priority = {"priority": number % priorities} if priorities else {}
        sender.configure_as(encode("", QUEUE, b"x" * payload_bytes, **priority), window)
        await sender.call(commands.Confirm.Select())
        senders.append(sender)
    for sender in senders:
        sender.start()
    result = await measure(count, secs, probe=probe)
    for sender in senders:
        sender.is_running = False
    await drain(count, lambda: count.acked == count.sent and count.received >= count.sent)
    result.lost = count.acked - count.received
    for peer in (control, *made, *senders):
        peer.transport.abort()
    return result


async def _declare_anew(control: AmqpPeer, names: Mapping[str, Mapping[str, Any]]) -> None:
    for name, terms in names.items():
        await control.call(commands.Queue.Delete(0, name))
        await control.call(commands.Queue.Declare(0, name, durable=True, arguments=dict(terms)))


async def run_queues(
    host: str,
    port: int,
    *,
    queues: int,
    memory: Callable[[], float],
    connections: int = 10,
    probe: Probe = no_probe,
) -> Result:
    """Declare durable queues, each with a consumer; the rate is declarations, `more` has the memory of one."""
    count = Count()
    control = await open_peer(host, port, AmqpPeer(Count()))
    await control.call(commands.Queue.Declare(0, "bench-first", durable=True))  # what any first queue makes it touch
    before, cpu, server_cpu = memory(), time.process_time(), probe()
    peers = [await open_peer(host, port, AmqpPeer(Count())) for _ in range(connections)]
    started = time.perf_counter()

    async def declare(peer: AmqpPeer, first: int) -> None:
        for number in range(first, queues, connections):
            await peer.call(commands.Queue.Declare(0, f"bench-many-{number}", durable=True))
            count.received += 1

    await asyncio.gather(*(declare(peer, first) for first, peer in enumerate(peers)))
    took = time.perf_counter() - started
    declared = memory()

    async def consume(peer: AmqpPeer, first: int) -> None:
        for number in range(first, queues, connections):
            await peer.call(commands.Basic.Consume(0, f"bench-many-{number}", f"c{number}"))

    await asyncio.gather(*(consume(peer, first) for first, peer in enumerate(peers)))
    cpus = time.process_time() - cpu, probe() - server_cpu
    result = Result(took, queues, queues, count.received, *cpus, count)
    result.more = {"bytes_each": (declared - before) / queues, "consumed_bytes_each": (memory() - before) / queues}
    result.lost = queues - count.received
    for peer in (control, *peers):
        peer.transport.abort()
    return result


class Confirmed(AmqpPublisher):
    """Publishes one message, and the next when it is confirmed."""

    def __init__(self, count: Count) -> None:
        super().__init__(count)
        self.arrived = asyncio.Event()

    def take(self, data: bytes) -> None:
        self.tail = data
        if len(data) >= ACK_FRAME.size:
            self.tail = data[ACK_FRAME.size :]
            self.arrived.set()

    async def publish(self, message: bytes) -> int:
        """Return how many nanoseconds the confirm took."""
        self.arrived.clear()
        started = time.perf_counter_ns()
        self.transport.write(message)
        await asyncio.wait_for(self.arrived.wait(), 30)
        return time.perf_counter_ns() - started


async def run_confirms(
    host: str, port: int, *, secs: float, queues: int, payload_bytes: int = 256, probe: Probe = no_probe
) -> Result:
    """Publish one by one to one bound queue and to `queues` of them in turns; `more` has the times beside another."""
    count = Count()
    publisher = await open_peer(host, port, Confirmed(count))
    for exchange, bound in (("bench-one", 1), ("bench-many", queues)):
        await publisher.call(commands.Exchange.Declare(0, exchange, "fanout", durable=True))
        await _declare_bound(publisher, exchange, bound)
    await publisher.call(commands.Confirm.Select())
    publisher.is_raw = True
    messages = [encode(exchange, "", b"x" * payload_bytes) for exchange in ("bench-one", "bench-many")]
    for message in messages:
        await publisher.publish(message)
    taken: tuple[list[int], list[int]] = ([], [])
    cpu, server_cpu, started = time.process_time(), probe(), time.perf_counter()
    while not taken[1] or time.perf_counter() - started < secs:
        for message, times in zip(messages, taken, strict=True):
            times += [await publisher.publish(message) for _ in range(ROUNDS_EACH)]
    took = time.perf_counter() - started
    done = len(taken[0]) + len(taken[1])
    result = Result(took, done, done, done, time.process_time() - cpu, probe() - server_cpu, count)
    one, many = (sorted(times) for times in taken)
    result.more = {f"p{share * 100:g}_us": percentile(many, share) / 1e3 for share in (0.5, 0.99)}
    result.more["beside_one"] = percentile(many, 0.5) / percentile(one, 0.5)
    publisher.transport.abort()
    return result


async def _declare_bound(peer: AmqpPeer, exchange: str, count: int) -> None:
    """Make durable queues that are bound to an exchange, many in one write: one by one each would wait for a sync."""
    for first in range(0, count, DECLARED_AT_ONCE):
        names = [f"{exchange}-{number}" for number in range(first, min(first + DECLARED_AT_ONCE, count))]
        for name in names:
            peer.send(commands.Queue.Declare(0, name, durable=True))
            peer.send(commands.Queue.Bind(0, name, exchange, ""))
        for _ in range(2 * len(names)):
            await peer.answer()


class Getter(AmqpPeer):
    """Gets a message, acknowledges it and publishes one instead, again and again."""

    got = 0
    size = 0
    is_running = True

    def start(self, message: bytes) -> None:
        """Begin."""
        self.get = frame.marshal(commands.Basic.Get(0, QUEUE), 1)
        self.message = message
        self.is_raw = True
        self.transport.write(self.get)

    def take(self, data: bytes) -> None:
        self.size = self.size or delivery_size(data)
        if not self.size or len(data) < self.size:
            self.tail = data
            return
        self.tail = data[self.size :]
        self.got += 1
        self.count.received += 1
        if self.is_running:
            self.count.sent += 1
        again = self.message + self.get if self.is_running else b""
        self.transport.write(ACK_FRAME.pack(1, 1, 13, *BASIC_ACK, self.got, 0, 0xCE) + again)


async def run_gets(
    host: str, port: int, *, secs: float, getters: int = 8, payload_bytes: int = 256, probe: Probe = no_probe
) -> Result:
    """Get and acknowledge by several connections, each of which publishes what it got again."""
    count = Count()
    control = await open_peer(host, port, AmqpPeer(Count()))
    await _declare_anew(control, {QUEUE: {}})
    message = encode("", QUEUE, b"x" * payload_bytes)
    control.transport.write(message * 2 * getters)
    while (await control.call(commands.Queue.Declare(0, QUEUE, durable=True))).message_count < 2 * getters:
        await asyncio.sleep(0.01)
    peers = [await open_peer(host, port, Getter(count)) for _ in range(getters)]
    for peer in peers:
        peer.start(message)
    result = await measure(count, secs, probe=probe)
    for peer in peers:
        peer.is_running = False
    await drain(count, lambda: count.received >= count.sent + getters)
    for peer in peers:
        peer.transport.abort()
    left = (await control.call(commands.Queue.Declare(0, QUEUE, durable=True))).message_count
    result.lost = 2 * getters + count.sent - count.received - left
    control.transport.abort()
    return result


class Caller(AmqpConsumer):
    """Sends a request for each answer that comes."""

    request = b""
    is_running = True

    def take(self, data: bytes) -> None:
        self.size = self.size or delivery_size(data)
        if not self.size:
            self.tail = data
            return
        got, rest = divmod(len(data), self.size)
        self.tail = data[len(data) - rest :] if rest else b""
        self.count.received += got
        if self.is_running and got:
            self.count.sent += got
            self.transport.write(self.request * got)


class Server(AmqpConsumer):
    """Answers each request; all come from one caller, so all answers are alike."""

    answer_frames = b""

    def take(self, data: bytes) -> None:
        self.size = self.size or delivery_size(data)
        if not self.size:
            self.tail = data
            return
        if not self.answer_frames:
            at = frame.unmarshal(data)[0]
            reply_to = frame.unmarshal(data[at:])[2].properties.reply_to
            self.answer_frames = encode("", reply_to, b"x" * 16)
        got, rest = divmod(len(data), self.size)
        self.tail = data[len(data) - rest :] if rest else b""
        self.transport.write(self.answer_frames * got)


async def run_calls(
    host: str, port: int, *, secs: float, in_flight: int = 16, payload_bytes: int = 256, probe: Probe = no_probe
) -> Result:
    """Ask a service and have its answers by direct reply-to, some at a time; the rate is of round trips."""
    count = Count()
    caller = await open_peer(host, port, Caller(count))
    server = await open_peer(host, port, Server(Count()))
    await _declare_anew(server, {QUEUE: {}})
    await server.call(commands.Basic.Consume(0, QUEUE, "c", no_ack=True))
    await caller.call(commands.Basic.Consume(0, REPLY_TO, "c", no_ack=True))
    server.start()
    caller.start()
    caller.request = encode("", QUEUE, b"x" * payload_bytes, reply_to=REPLY_TO)
    count.sent = in_flight
    caller.transport.write(caller.request * in_flight)
    result = await measure(count, secs, probe=probe)
    caller.is_running = False
    await drain(count, lambda: count.received >= count.sent)
    result.lost = count.sent - count.received
    caller.transport.abort()
    server.transport.abort()
    return result


async def run_channels(
    host: str,
    port: int,
    *,
    connections: int,
    memory: Callable[[], float],
    channels: int = 10,
    probe: Probe = no_probe,
) -> Result:
    """Open connections with some channels each; the rate is channels, `more` has the memory of one connection."""
    first = await open_peer(host, port, AmqpPeer(Count()))  # what any connection makes it touch
    await first.call(commands.Channel.Open(), 2)
    before, cpu, server_cpu, started = memory(), time.process_time(), probe(), time.perf_counter()

    async def connect() -> AmqpPeer:
        peer = await open_peer(host, port, AmqpPeer(Count()))
        for number in range(2, channels + 1):
            await peer.call(commands.Channel.Open(), number)
        return peer

    peers = await in_groups([connect] * connections, 50)
    took = time.perf_counter() - started
    opened = connections * channels
    result = Result(took, opened, opened, opened, time.process_time() - cpu, probe() - server_cpu, Count())
    result.more = {"bytes_each": (memory() - before) / connections}
    for peer in (first, *peers):
        peer.transport.abort()  # type: ignore[attr-defined]
    return result
