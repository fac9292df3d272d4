"""An MQTT load that costs next to nothing: pre-encoded bytes out, packets of one size counted in.

It speaks version 3.1.1, or version 5 where properties are given, be they empty.
"""

from __future__ import annotations

import asyncio
import ssl
import struct
from collections.abc import Mapping
from contextvars import ContextVar
from itertools import compress
from typing import Any, TypeVar, cast

from tests.benchmarks.scenarios.load import Count, Probe, Result, drain, in_groups, measure, no_probe
from tests.benchmarks.scenarios.websocket_client import Carried

CHUNK_PACKETS = 256  # packets in one write of a QoS 0 publisher
PUBREC, PUBREL = 0x50, 0x62
IS_PUBREC = bytes(first == PUBREC for first in range(256))
P = TypeVar("P", bound="Peer")
secured_by: ContextVar[ssl.SSLContext | None] = ContextVar("secured_by", default=None)  # by which new connections are

by_websocket: ContextVar[bool] = ContextVar("by_websocket", default=False)  # whether new connections are


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


def user_properties(pairs: Mapping[str, str]) -> bytes:
    """Return the properties of a version 5 PUBLISH with these user properties."""
    return b"".join(b"\x26" + _string(name) + _string(value) for name, value in pairs.items())


def _properties(encoded: bytes | None) -> bytes:
    """Return properties behind their length; None, for version 3.1.1, is nothing at all."""
    return b"" if encoded is None else _packet(0, encoded)[1:]


def connect_packet(client_id: str, *, clean: bool = True, version: int = 4) -> bytes:
    """Return a CONNECT whose keep-alive outlasts any run; rumqttd refuses none."""
    flags = bytes([version, 2 if clean else 0, 0xFF, 0xFF])
    return _packet(0x10, _string("MQTT") + flags + (b"\x00" if version == 5 else b"") + _string(client_id))


def publish_packet(
    topic: str, payload: bytes, packet_id: int | None = None, *, qos: int = 1, properties: bytes | None = None
) -> bytes:
    """Return a PUBLISH, QoS 0 where there is no packet identifier; of version 5 where there are properties."""
    identifier = b"" if packet_id is None else struct.pack(">H", packet_id)
    first = 0x30 if packet_id is None else 0x30 | qos << 1
    return _packet(first, _string(topic) + identifier + _properties(properties) + payload)


def subscribe_packet(filters: list[str], qos: int, version: int = 4) -> bytes:
    """Return a SUBSCRIBE with packet identifier 1."""
    head = b"\x00\x01\x00" if version == 5 else b"\x00\x01"
    return _packet(0x82, head + b"".join(_string(f) + bytes([qos]) for f in filters))


def end_of_packets(data: bytes, count: int) -> int:
    """Return where the first `count` packets end, 0 where they are not whole."""
    end = 0
    for _ in range(count):
        at, size, shift = end + 1, 0, 0
        while True:
            if at >= len(data):
                return 0
            size |= (data[at] & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if data[at - 1] < 0x80:
                break
        end = at + size
    return end if end <= len(data) else 0


class Peer(asyncio.Protocol):
    """A connection that has sent its CONNECT; `ready` is met at the CONNACK (and the SUBACK)."""

    answer_count = 1  # packets that come before the run

    def __init__(self, client_id: str, count: Count, *, clean: bool = True, version: int = 4) -> None:
        self.count = count
        self.version = version
        self.ready = asyncio.get_running_loop().create_future()
        self.client_id = client_id
        self.clean = clean
        self.tail = b""
        self.answers = b""
        self.transport: asyncio.WriteTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.WriteTransport", transport)
        packet = connect_packet(self.client_id, clean=self.clean, version=self.version)
        self.transport.write(packet + self.hello())

    def hello(self) -> bytes:
        """Return what follows the CONNECT at once."""
        return b""

    def data_received(self, data: bytes) -> None:
        if not self.ready.done():
            self.answers += data
            end = end_of_packets(self.answers, self.answer_count)
            if not end:
                return
            assert self.answers[0] == 0x20, self.answers[:8]
            assert self.answers[3] == 0, f"refused: {self.answers[3]}"
            data = self.answers[end:]
            self.ready.set_result(None)
        if data:
            self.take(data)

    def take(self, data: bytes) -> None:
        """Count what came in."""

    def connection_lost(self, exc: Exception | None) -> None:
        self.count.closed += 1
        if not self.ready.done():
            self.ready.set_exception(exc or ConnectionError("closed before CONNACK"))


def version_of(properties: bytes | None) -> int:
    """Return the protocol level of a client whose messages have these properties."""
    return 4 if properties is None else 5


class Publisher(Peer):
    """Publishes one packet over and over: QoS 0 as fast as the socket takes it, or QoS 1 with `window` in flight."""

    qos = 1  # with a window

    def __init__(
        self,
        client_id: str,
        count: Count,
        topic: str,
        payload: bytes,
        window: int = 0,
        properties: bytes | None = None,
    ) -> None:
        super().__init__(client_id, count, version=version_of(properties))
        self.properties = properties
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
            self.chunk = publish_packet(topic, payload, properties=properties) * CHUNK_PACKETS

    def make_packets(self, topic: str, payload: bytes) -> list[bytes]:
        """Return what is published with a window, over and over: packets of one size, a multiple of the window."""
        how: dict[str, Any] = {"qos": self.qos, "properties": self.properties}
        return [publish_packet(topic, payload, i + 1, **how) for i in range(self.window)]

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

    answer_count = 2

    def __init__(
        self,
        client_id: str,
        count: Count,
        filters: list[str],
        qos: int,
        size: int,
        id_at: int,
        *,
        clean: bool = True,
        version: int = 4,
    ) -> None:
        super().__init__(client_id, count, clean=clean, version=version)
        self.filters = filters
        self.qos = qos
        self.size = size
        self.id_at = id_at
        self.pending = 0

    def hello(self) -> bytes:
        return subscribe_packet(self.filters, self.qos, self.version)

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


class Publisher2(Publisher):
    """The same at QoS 2: a message is acknowledged when it is complete."""

    qos = 2

    def take(self, data: bytes) -> None:
        data = self.tail + data
        end = len(data) - len(data) % 4
        self.tail = data[end:]
        received = data[:end:4].translate(IS_PUBREC)
        if recs := sum(received):
            releases = bytearray(b"\x62\x02\x00\x00" * recs)
            releases[2::4] = bytes(compress(data[2:end:4], received))
            releases[3::4] = bytes(compress(data[3:end:4], received))
            self.transport.write(releases)
        completed = end // 4 - recs
        self.unacked -= completed
        self.count.acked += completed
        self.pump()


class Subscriber2(Subscriber):
    """The same at QoS 2: counts a message as it comes, of which the second copy is one too many."""

    def take(self, data: bytes) -> None:
        data = self.tail + data
        at, answers = 0, []
        while len(data) - at >= 4:
            if data[at] == PUBREL:
                answers.append(b"\x70\x02" + data[at + 2 : at + 4])
                at += 4
            elif len(data) - at >= self.size:
                answers.append(b"\x50\x02" + data[at + self.id_at : at + self.id_at + 2])
                self.count.received += 1
                at += self.size
            else:
                break
        if answers:
            self.transport.write(b"".join(answers))
        self.tail = data[at:]


async def connect(host: str, port: int, peer: P) -> P:
    """Connect `peer`, by TLS where `secured_by` says so, or by WebSocket, and wait until it is ready."""
    loop = asyncio.get_running_loop()
    context = secured_by.get()
    named = None if context is None else "localhost"
    carried = Carried(peer) if by_websocket.get() else peer
    await loop.create_connection(lambda: carried, host, port, ssl=context, server_hostname=named)
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
    properties: bytes | None = None,
    is_shared: bool = False,
    warm_s: float = 0.5,
    probe: Probe = no_probe,
) -> Result:
    """Run publishers against subscribers; count what arrives.

    Args:
        filters: Subscriber i takes filter i, from the start again where there are fewer; the topic where not given.
        topic: Of the same length for each publisher, `{i:04}` in it is the publisher's number.
        properties: Of each message, encoded: all speak version 5 then.
        is_shared: The subscribers share what comes: each message goes to one of them.
    """
    count, payload = Count(), b"x" * payload_bytes
    topics = [topic.format(i=i) for i in range(publishers)]
    delivered = publish_packet(topics[0], payload, 1 if qos else None, properties=properties)
    id_at = delivered.index(topics[0].encode()) + len(topics[0])
    chosen, copies = filters or topics[:1], 1 if is_shared else subscribers
    if is_shared:
        chosen = [f"$share/bench/{each}" for each in chosen]
    publisher, subscriber = (Publisher2, Subscriber2) if qos == 2 else (Publisher, Subscriber)
    takes: list[Any] = [qos, len(delivered), id_at]
    subs = [
        await connect(
            host, port,
            subscriber(f"s{i}", count, [chosen[i % len(chosen)]], *takes, version=version_of(properties)),
        )
        for i in range(subscribers)
    ]  # fmt: skip
    pubs = [publisher(f"p{i}", count, topics[i], payload, window if qos else 0, properties) for i in range(publishers)]
    await in_groups([lambda pub=pub: connect(host, port, pub) for pub in pubs])
    for pub in pubs:
        pub.start()
    result = await measure(count, secs, warm_s=warm_s, probe=probe)
    for pub in pubs:
        pub.stop()
    await drain(count, lambda: count.received >= count.sent * copies and (not qos or count.acked >= count.sent))
    result.lost = (count.acked if qos else count.sent) * copies - count.received
    for peer in (*pubs, *subs):
        peer.transport.abort()
    return result
