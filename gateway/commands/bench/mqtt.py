"""Peers that speak MQTT 3.1.1, which every broker takes."""

from __future__ import annotations

import secrets
import struct
import time
from array import array

from gateway.commands.bench.figures import Tally, stamp
from gateway.commands.bench.peers import Consumer, Pace, Peer, Publisher
from gateway.commands.bench.plan import Plan
from gateway.commands.doors.place import Place
from gateway.commands.refusing import EXIT_DENIED

CONNACK, PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP, SUBACK, PINGRESP = 2, 3, 4, 5, 6, 7, 9, 13
REFUSED = 0x80
RETAINED = 1  # the bit of a PUBLISH that was kept from before the subscription
ID_MAX = 65_535  # packet identifiers have two bytes
_ID = struct.Struct(">H")
_REASONS = ("", "its version", "the client identifier", "unavailable", "user name or password", "not allowed")


def text(value: str) -> bytes:
    """Return a string behind its length."""
    raw = value.encode()
    return _ID.pack(len(raw)) + raw


def packet(first: int, *parts: bytes) -> bytes:
    """Return a packet."""
    body = b"".join(parts)
    return bytes([first]) + encode_length(len(body)) + body


def encode_length(size: int) -> bytes:
    """Return the remaining length of a packet."""
    length = b""
    while True:
        size, digit = divmod(size, 128)
        length += bytes([digit | (0x80 if size else 0)])
        if not size:
            return length


def next_packet(data: bytes, at: int) -> tuple[int, int]:
    """Return where the body of the packet at `at` begins and ends; (0, 0) where it is not whole."""
    size, shift, pos = 0, 0, at + 1
    while pos < len(data):
        digit = data[pos]
        pos += 1
        size |= (digit & 0x7F) << shift
        shift += 7
        if digit < REFUSED:
            return (pos, pos + size) if pos + size <= len(data) else (0, 0)
    return 0, 0


class _MqttPeer(Peer):
    def greet(self) -> None:
        place = self.place
        flags, fields = 2, [text((place.client and f"{place.client}-{id(self)}") or f"bench-{secrets.token_hex(6)}")]
        if place.user is not None:
            flags |= 0x80
            fields.append(text(place.user))
        if place.user is not None and place.password is not None:
            flags |= 0x40
            fields.append(text(place.password))
        self.transport.write(packet(0x10, text("MQTT"), bytes((4, flags, 0, 0)), *fields))

    def note_connack(self, code: int) -> bool:
        """Return whether the login was taken."""
        if code:
            why = _REASONS[code] if code < len(_REASONS) else f"code {code}"
            self.fail(f"mqtt {self.place.address} refuses the login: {why}", EXIT_DENIED)
        return not code


class MqttPublisher(_MqttPeer, Publisher):
    """Publishes to one topic at a QoS."""

    def __init__(self, place: Place, tally: Tally, pace: Pace, plan: Plan) -> None:
        super().__init__(place, tally, pace, is_answered=plan.qos > 0)
        self._topic = text(plan.name)
        size = self._size = plan.size
        qos = self._qos = plan.qos
        head = len(self._topic) + (2 if qos else 0)
        self._head = bytes([0x30 | qos << 1]) + encode_length(head + size) + self._topic
        self._pad = b"x" * (size - len(stamp(size)))
        self._next_id = 1
        self._sent_ns = array("q", bytes(8 * (ID_MAX + 1)))

    @property
    def size(self) -> int:
        """How many bytes a body has."""
        return self._size

    def question(self) -> bytes:
        """Return a PINGREQ."""
        return b"\xc0\x00"

    def make(self, count: int) -> bytes:
        """Return PUBLISH packets."""
        if not self._qos:
            return (self._head + stamp(self._size) + self._pad) * count
        now_ns = time.perf_counter_ns()
        parts: list[bytes] = []
        begun = stamp(self._size)
        for _ in range(count):
            number = self._next_id
            self._next_id = number % ID_MAX + 1
            self._sent_ns[number] = now_ns
            parts += (self._head, _ID.pack(number), begun, self._pad)
        return b"".join(parts)

    def take(self, data: bytes) -> int:
        """Take answers."""
        at = answered = 0
        releases: list[bytes] = []
        now_ns = time.perf_counter_ns()
        while at < len(data):
            start, end = next_packet(data, at)
            if not end:
                break
            kind = data[at] >> 4
            if kind in {PUBACK, PUBCOMP}:
                answered += 1
                self.tally.note_latency(now_ns - self._sent_ns[_ID.unpack_from(data, start)[0]])
            elif kind == PUBREC:
                releases += (b"\x62\x02", data[start : start + 2])
            elif kind == PINGRESP:
                self.end()
            elif kind == CONNACK and self.note_connack(data[start + 1]):
                self.ready.set_result(None)
            at = end
        if releases:
            self.transport.write(b"".join(releases))
        if answered:
            self.answer(answered)
        return at


class MqttConsumer(_MqttPeer, Consumer):
    """Subscribes to one filter."""

    def __init__(self, place: Place, tally: Tally, topic_filter: str, qos: int) -> None:
        super().__init__(place, tally)
        self._filter = topic_filter
        self._qos = qos

    def take(self, data: bytes) -> int:
        """Count and acknowledge messages."""
        at = 0
        bodies: list[bytes] = []
        answers: list[bytes] = []
        while at < len(data):
            start, end = next_packet(data, at)
            if not end:
                break
            kind = data[at] >> 4
            if kind == PUBLISH:
                qos = data[at] >> 1 & 3
                body = start + 2 + (data[start] << 8 | data[start + 1])
                if qos:
                    answers += (b"\x40\x02" if qos == 1 else b"\x50\x02", data[body : body + 2])
                    body += 2
                if not data[at] & RETAINED:  # not one of those that are measured
                    bodies.append(data[body:end])
            elif kind == PUBREL:
                answers += (b"\x70\x02", data[start : start + 2])
            else:
                self._take_rare(kind, data[start:end])
            at = end
        if answers:
            self.transport.write(b"".join(answers))
        self.count(bodies)
        return at

    def _take_rare(self, kind: int, body: bytes) -> None:
        if kind == CONNACK and self.note_connack(body[1]):
            self.transport.write(packet(0x82, b"\x00\x01", text(self._filter), bytes([self._qos])))
        elif kind == SUBACK and body[2] >= REFUSED:
            self.fail(f"mqtt refuses the filter {self._filter!r}", EXIT_DENIED)
        elif kind == SUBACK:
            self.ready.set_result(None)
