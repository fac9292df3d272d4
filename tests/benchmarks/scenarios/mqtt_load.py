"""An MQTT 3.1.1 load that costs next to nothing: pre-encoded bytes out, packets of one size counted in."""

from __future__ import annotations

import asyncio
import struct
from typing import TypeVar, cast

from tests.benchmarks.scenarios.load import Count, Probe, Result, drain, in_groups, measure, no_probe

CHUNK_PACKETS = 256  # packets in one write of a QoS 0 publisher
P = TypeVar("P", bound="Peer")


def _string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack(">H", len(raw)) + raw


def _packet(first: int, body: bytes) -> bytes:
    size, length = len(body), b""
    while True:
        size, digit = divmod(size, 128)
        length += bytes([digit | (0x80 if size else 0)])
        if not size:
            return bytes([first]) + length + body


def connect_packet(client_id: str, *, clean: bool = True) -> bytes:
    """Return a CONNECT whose keep-alive outlasts any run; rumqttd refuses none."""
    return _packet(0x10, _string("MQTT") + bytes([4, 2 if clean else 0, 0xFF, 0xFF]) + _string(client_id))


def publish_packet(topic: str, payload: bytes, packet_id: int | None = None) -> bytes:
    """Return a PUBLISH, QoS 1 where there is a packet identifier."""
    identifier = b"" if packet_id is None else struct.pack(">H", packet_id)
    return _packet(0x30 if packet_id is None else 0x32, _string(topic) + identifier + payload)


def subscribe_packet(filters: list[str], qos: int) -> bytes:
    """Return a SUBSCRIBE with packet identifier 1."""
    return _packet(0x82, b"\x00\x01" + b"".join(_string(f) + bytes([qos]) for f in filters))


class Peer(asyncio.Protocol):
    """A connection that has sent its CONNECT; `ready` is met at the CONNACK (and the SUBACK)."""

    def __init__(self, client_id: str, count: Count, *, clean: bool = True) -> None:
        self.count = count
        self.ready = asyncio.get_running_loop().create_future()
        self.client_id = client_id
        self.clean = clean
        self.tail = b""
        self.answers = b""
        self.transport: asyncio.WriteTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.WriteTransport", transport)
        self.transport.write(connect_packet(self.client_id, clean=self.clean) + self.hello())

    def hello(self) -> bytes:
        """Return what follows the CONNECT at once."""
        return b""

    def answer_size(self) -> int:
        """Return how many bytes of answers come before the run."""
        return 4

    def data_received(self, data: bytes) -> None:
        if not self.ready.done():
            self.answers += data
            if len(self.answers) < self.answer_size():
                return
            assert self.answers[0] == 0x20, self.answers[:8]
            assert self.answers[3] == 0, f"refused: {self.answers[3]}"
            data = self.answers[self.answer_size() :]
            self.ready.set_result(None)
        if data:
            self.take(data)

    def take(self, data: bytes) -> None:
        """Count what came in."""

    def connection_lost(self, exc: Exception | None) -> None:
        self.count.closed += 1
        if not self.ready.done():
            self.ready.set_exception(exc or ConnectionError("closed before CONNACK"))


class Publisher(Peer):
    """Publishes one packet over and over: QoS 0 as fast as the socket takes it, or QoS 1 with `window` in flight."""

    def __init__(self, client_id: str, count: Count, topic: str, payload: bytes, window: int = 0) -> None:
        super().__init__(client_id, count)
        self.window = window
        self.is_running = False
        self.is_paused = False
        self.unacked = 0
        if window:
            self.packets = self.make_packets(topic, payload)
            self.size = len(self.packets[0])
            self.ring = b"".join(self.packets) * 2
            self.place = 0
        else:
            self.chunk = publish_packet(topic, payload) * CHUNK_PACKETS

    def make_packets(self, topic: str, payload: bytes) -> list[bytes]:
        """Return what is published at QoS 1, over and over: packets of one size, a multiple of the window."""
        return [publish_packet(topic, payload, i + 1) for i in range(self.window)]

    def start(self) -> None:
        """Begin to publish."""
        self.is_running = True
        self.pump()

    def stop(self) -> None:
        """Publish no more; what is in flight is still counted."""
        self.is_running = False

    def pump(self) -> None:
        """Write until the socket or the window is full."""
        if self.window:
            free = self.window - self.unacked
            if self.is_running and free:
                start = self.place * self.size
                self.transport.write(self.ring[start : start + free * self.size])
                self.place = (self.place + free) % len(self.packets)
                self.unacked += free
                self.count.sent += free
            return
        rounds = 0
        while self.is_running and not self.is_paused and rounds < 16:
            self.transport.write(self.chunk)
            self.count.sent += CHUNK_PACKETS
            rounds += 1
        if self.is_running and not self.is_paused:
            asyncio.get_running_loop().call_soon(self.pump)

    def pause_writing(self) -> None:
        self.is_paused = True

    def resume_writing(self) -> None:
        self.is_paused = False
        if not self.window:
            self.pump()

    def take(self, data: bytes) -> None:
        data = self.tail + data
        acks, rest = divmod(len(data), 4)
        self.tail = data[len(data) - rest :]
        self.unacked -= acks
        self.count.acked += acks
        self.pump()


class Subscriber(Peer):
    """Counts packets of one size; acknowledges them where they are QoS 1."""

    def __init__(
        self, client_id: str, count: Count, filters: list[str], qos: int, size: int, id_at: int, *, clean: bool = True
    ) -> None:
        super().__init__(client_id, count, clean=clean)
        self.filters = filters
        self.qos = qos
        self.size = size
        self.id_at = id_at
        self.pending = 0

    def hello(self) -> bytes:
        return subscribe_packet(self.filters, self.qos)

    def answer_size(self) -> int:
        return 4 + 4 + len(self.filters)

    def take(self, data: bytes) -> None:
        if not self.qos:
            got, self.pending = divmod(self.pending + len(data), self.size)
            self.count.received += got
            return
        data = self.tail + data
        got = len(data) // self.size
        if got:
            acks = bytearray(b"\x40\x02\x00\x00" * got)
            end = got * self.size
            acks[2::4] = data[self.id_at : end : self.size]
            acks[3::4] = data[self.id_at + 1 : end : self.size]
            self.transport.write(acks)
            self.count.received += got
        self.tail = data[got * self.size :]


async def connect(host: str, port: int, peer: P) -> P:
    """Connect `peer` and wait until it is ready."""
    loop = asyncio.get_running_loop()
    await loop.create_connection(lambda: peer, host, port)
    await asyncio.wait_for(peer.ready, 30)
    return peer


async def run(
    host: str,
    port: int,
    *,
    secs: float,
    publishers: int = 1,
    subscribers: int = 1,
    qos: int = 0,
    window: int = 500,
    payload_bytes: int = 256,
    filters: list[str] | None = None,
    topic: str = "bench/a/b",
    warm_s: float = 0.5,
    probe: Probe = no_probe,
) -> Result:
    """Run publishers against subscribers; count what arrives.

    Args:
        filters: Subscriber i takes filter i, from the start again where there are fewer; the topic where not given.
        topic: Of the same length for each publisher, `{i:04}` in it is the publisher's number.
    """
    count, payload = Count(), b"x" * payload_bytes
    topics = [topic.format(i=i) for i in range(publishers)]
    delivered = publish_packet(topics[0], payload, 1 if qos else None)
    id_at = delivered.index(topics[0].encode()) + len(topics[0])
    chosen = filters or topics[:1]
    subs = [
        await connect(host, port, Subscriber(f"s{i}", count, [chosen[i % len(chosen)]], qos, len(delivered), id_at))
        for i in range(subscribers)
    ]
    pubs = [Publisher(f"p{i}", count, topics[i], payload, window if qos else 0) for i in range(publishers)]
    await in_groups([lambda pub=pub: connect(host, port, pub) for pub in pubs])
    for pub in pubs:
        pub.start()
    result = await measure(count, secs, warm_s=warm_s, probe=probe)
    for pub in pubs:
        pub.stop()
    await drain(count, lambda: count.received >= count.sent * subscribers and (not qos or count.acked >= count.sent))
    result.lost = (count.acked if qos else count.sent) * subscribers - count.received
    for peer in (*pubs, *subs):
        peer.transport.abort()
    return result
