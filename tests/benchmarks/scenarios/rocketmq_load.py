"""A RocketMQ load: SEND_MESSAGE_V2 frames encoded before the run, answers counted by the length in front of each."""

from __future__ import annotations

import asyncio
import struct
from typing import TypeVar, cast

from lmq.remoting.commands import HEADER_JSON, Command, decode_header, encode_command
from tests.benchmarks.scenarios.load import Count, Probe, Result, drain, measure, no_probe

SEND_MESSAGE_V2, PULL_MESSAGE, GET_MAX_OFFSET = 310, 11, 30
HAS_SUBSCRIPTION = 4  # of a pull's sysFlag
FRAME_HEAD = struct.Struct(">iI")  # length without itself, header type and length
HEADERS = HEADER_JSON  # what the official Java client sends unless it is told otherwise
SUCCESS = b'{"code":0,'  # both brokers write the code first
TOPIC = "bench"
LOOK_S, LOOKS_MAX, LOOKS_STILL = 0.1, 100, 20  # how a queue is watched until it holds what was confirmed
P = TypeVar("P", bound="RemotingPeer")


class RefusedError(RuntimeError):
    """The broker answered with another code than success."""


def send_frame(opaque: int, body: bytes, properties: str = "") -> bytes:
    """Return a send to queue 0 of the topic."""
    ext = {"a": "bench", "b": TOPIC, "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "1700000000000", "h": "0"}
    ext |= {"i": properties, "j": "0", "k": "false", "l": "0", "m": "false", "n": "bench"}
    return encode_command(Command(SEND_MESSAGE_V2, opaque, ext=ext, body=body, header_type=HEADERS))


def pull_frame(offset: int, count_max: int) -> bytes:
    """Return a pull from queue 0 of the topic, which does not wait."""
    ext = {"consumerGroup": "bench", "topic": TOPIC, "queueId": "0", "queueOffset": str(offset)}
    ext |= {"maxMsgNums": str(count_max), "sysFlag": str(HAS_SUBSCRIPTION), "commitOffset": "0"}
    ext |= {"suspendTimeoutMillis": "0", "subVersion": "0", "subscription": "*", "expressionType": "TAG"}
    return encode_command(Command(PULL_MESSAGE, 0, ext=ext, header_type=HEADERS))


def max_offset_frame(topic: str) -> bytes:
    """Return the question for the next offset of a queue."""
    return encode_command(Command(GET_MAX_OFFSET, 0, ext={"topic": topic, "queueId": "0"}, header_type=HEADERS))


class RemotingPeer(asyncio.Protocol):
    """A connection; each whole answer goes to `take`."""

    def __init__(self, count: Count) -> None:
        self.count = count
        self.tail = b""
        self.failure = b""
        self.refused = 0
        self.is_running = False
        self.transport: asyncio.WriteTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.WriteTransport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.count.closed += 1

    def data_received(self, data: bytes) -> None:
        data = self.tail + data if self.tail else data
        at, end, head = 0, len(data) - FRAME_HEAD.size, FRAME_HEAD.unpack_from
        answers = 0
        while at <= end:
            length, header = head(data, at)
            if at + 4 + length > len(data):
                break
            if not data.startswith(SUCCESS, at + 8):
                self.failure = data[at + 8 : at + 208]
                self.refused += 1
            self.take(data, at + 8 + (header & 0xFFFFFF), at + 4 + length)
            at += 4 + length
            answers += 1
        self.tail = data[at:]
        self.took(answers)

    def take(self, data: bytes, body: int, end: int) -> None:
        """One answer, whose body begins at `body`."""

    def took(self, answers: int) -> None:
        """So many answers came at once."""


class Producer(RemotingPeer):
    """Keeps `window` sends in flight."""

    def configure(self, window: int, body: bytes, properties: str) -> None:
        """Encode them."""
        frames = [send_frame(i + 1_000, body, properties) for i in range(window)]
        self.size = len(frames[0])  # of each: all numbers have four digits
        self.ring = b"".join(frames) * 2
        self.window, self.place, self.refused_in_all = window, 0, 0

    def start(self) -> None:
        """Begin to send."""
        self.is_running = True
        self.send(self.window)

    def send(self, count: int) -> None:
        """Send the next `count` of the ring."""
        self.transport.write(self.ring[self.place * self.size : (self.place + count) * self.size])
        self.place = (self.place + count) % self.window
        self.count.sent += count

    def took(self, answers: int) -> None:
        self.count.acked += answers - self.refused
        self.count.sent -= self.refused
        self.refused_in_all += self.refused
        self.refused = 0
        if answers and self.is_running:
            self.send(answers)


class Puller(RemotingPeer):
    """Pulls one queue over and over from its start, one pull at a time."""

    def configure(self, count_max: int, max_offset: int) -> None:
        """Say how many at a time, and where to begin anew."""
        self.count_max, self.max_offset, self.offset = count_max, max_offset, 0

    def start(self) -> None:
        """Begin to pull."""
        self.is_running = True
        self.pull()

    def pull(self) -> None:
        """Ask for the next."""
        self.transport.write(pull_frame(self.offset, self.count_max))
        self.count.sent += 1

    def take(self, data: bytes, body: int, end: int) -> None:
        record_bytes = int.from_bytes(data[body : body + 4]) if end > body else 0
        got, rest = divmod(end - body, record_bytes) if record_bytes else (0, 0)
        assert rest == 0, "records of several sizes"
        self.count.received += got
        self.offset += got
        if self.offset >= self.max_offset:
            self.offset = 0

    def took(self, answers: int) -> None:
        if answers and self.is_running:
            self.pull()


class Asker(RemotingPeer):
    """Waits for one answer."""

    def ask(self, frame: bytes) -> asyncio.Future[bytes]:
        """Send a request; the future holds the whole answer."""
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.transport.write(frame)
        return self.answer

    def take(self, data: bytes, body: int, end: int) -> None:
        self.answer.set_result(data[:end])


async def open_peer(host: str, port: int, peer: P) -> P:
    """Connect `peer`."""
    await asyncio.get_running_loop().create_connection(lambda: peer, host, port)
    return peer


async def max_offset(asker: Asker, topic: str) -> int:
    """Return the next offset of queue 0 of `topic`, 0 where the broker does not know it."""
    answer = await asyncio.wait_for(asker.ask(max_offset_frame(topic)), 30)
    _, header = FRAME_HEAD.unpack_from(answer)
    return int(decode_header(HEADERS, answer[8 : 8 + (header & 0xFFFFFF)]).ext.get("offset", 0))


def check(peers: list[P]) -> None:
    """Raise RefusedError if any answer was not a success."""
    for peer in peers:
        if peer.failure:
            raise RefusedError(repr(peer.failure))


async def open_producers(
    host: str, port: int, count: Count, connections: int, window: int, body: bytes, properties: str = ""
) -> list[Producer]:
    """Connect producers; the topic is made by one send before."""
    asker = await open_peer(host, port, Asker(Count()))
    await asyncio.wait_for(asker.ask(send_frame(0, body, properties)), 30)
    asker.transport.abort()
    producers = [await open_peer(host, port, Producer(count)) for _ in range(connections)]
    for producer in producers:
        producer.configure(window, body, properties)
    return producers


async def fill(host: str, port: int, stored: int, payload_bytes: int) -> int:
    """Store so many messages at least; return how many there are."""
    filled = Count()
    producers = await open_producers(host, port, filled, 8, 64, b"x" * payload_bytes)
    asker = await open_peer(host, port, Asker(Count()))
    for producer in producers:
        producer.start()
    while await max_offset(asker, TOPIC) < stored:
        await asyncio.sleep(0.05)
    for producer in producers:
        producer.is_running = False
    await drain(filled, lambda: filled.acked >= filled.sent)
    there = await max_offset(asker, TOPIC)
    for peer in (*producers, asker):
        peer.transport.abort()
    return there


async def run_send(
    host: str,
    port: int,
    *,
    secs: float,
    connections: int = 8,
    window: int = 64,
    light_queues: int = 0,
    payload_bytes: int = 1_024,
    warm_s: float = 0.5,
    probe: Probe = no_probe,
) -> Result:
    """Produce; what counts is what the queues hold at the end of the stretch: the broker may confirm before that."""
    count, names = Count(), [f"%LMQ%q{i:04}" for i in range(light_queues)]
    properties = f"INNER_MULTI_DISPATCH\x01{','.join(names)}\x02" if names else ""
    producers = await open_producers(host, port, count, connections, window, b"x" * payload_bytes, properties)
    asker = await open_peer(host, port, Asker(Count()))
    last, copies = (names[-1], len(names)) if names else (TOPIC, 1)
    begin, _ = await settled_offset(asker, last, 1)  # the first message has made the queues
    for producer in producers:
        producer.start()
    await asyncio.sleep(warm_s)
    before = await max_offset(asker, last)
    result = await measure(count, secs, warm_s=0, probe=probe)
    result.received = (await max_offset(asker, last) - before) * copies
    for producer in producers:
        producer.is_running = False
    await drain(count, lambda: count.acked >= count.sent)
    if refused := sum(producer.refused_in_all for producer in producers):
        result.more["refused"] = refused  # the official broker's flow control; its clients send again
    end, is_behind = await settled_offset(asker, last, begin + count.acked)
    count.is_late |= is_behind
    result.lost = max(0, begin + count.acked - end) * copies
    for peer in (*producers, asker):
        peer.transport.abort()
    return result


async def settled_offset(asker: Asker, topic: str, expected: int) -> tuple[int, bool]:
    """Return the queue's next offset once it is `expected`, or after 10 s, and whether it still grew then."""
    before, grew_at = -1, 0
    for look in range(LOOKS_MAX):
        if (offset := await max_offset(asker, topic)) >= expected:
            return offset, False
        if offset > before:
            before, grew_at = offset, look
        await asyncio.sleep(LOOK_S)
    return before, grew_at > LOOKS_MAX - LOOKS_STILL


async def run_pull(
    host: str,
    port: int,
    *,
    secs: float,
    connections: int = 8,
    count_max: int = 32,
    stored: int = 50_000,
    payload_bytes: int = 1_024,
    warm_s: float = 0.5,
    probe: Probe = no_probe,
) -> Result:
    """Store `stored` messages, then pull them over and over."""
    offset, count = await fill(host, port, stored, payload_bytes), Count()
    pullers = [await open_peer(host, port, Puller(count)) for _ in range(connections)]
    for puller in pullers:
        puller.configure(count_max, offset)
        puller.start()
    result = await measure(count, secs, warm_s=warm_s, probe=probe)
    for puller in pullers:
        puller.is_running = False
    check(pullers)
    for puller in pullers:
        puller.transport.abort()
    return result
