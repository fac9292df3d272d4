"""Properties of MQTT 5 packets: which there are, where they may stand, and their bytes.

Those of PUBLISH on the data path are read and written by the run, in `publish_properties.py`; here is what all other
packets, and wills, carry.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum

from gateway.mqtt.errors import MalformedPacketError, ProtocolViolationError
from gateway.mqtt.topics import check_text

PROPERTIES_BYTES_MAX = 65_536  # of one packet off the data path: nobody needs more, and it is walked by Python


class Property(IntEnum):
    """The identifier of a property."""

    PAYLOAD_FORMAT = 0x01
    MESSAGE_EXPIRY = 0x02
    CONTENT_TYPE = 0x03
    RESPONSE_TOPIC = 0x08
    CORRELATION = 0x09
    SUBSCRIPTION_ID = 0x0B
    SESSION_EXPIRY = 0x11
    ASSIGNED_CLIENT_ID = 0x12
    SERVER_KEEP_ALIVE = 0x13
    AUTH_METHOD = 0x15
    AUTH_DATA = 0x16
    REQUEST_PROBLEM = 0x17
    WILL_DELAY = 0x18
    REQUEST_RESPONSE = 0x19
    RESPONSE_INFORMATION = 0x1A
    SERVER_REFERENCE = 0x1C
    REASON = 0x1F
    RECEIVE_MAX = 0x21
    TOPIC_ALIAS_MAX = 0x22
    TOPIC_ALIAS = 0x23
    QOS_MAX = 0x24
    RETAIN_AVAILABLE = 0x25
    USER = 0x26
    PACKET_BYTES_MAX = 0x27
    WILDCARDS_AVAILABLE = 0x28
    SUBSCRIPTION_IDS_AVAILABLE = 0x29
    SHARED_AVAILABLE = 0x2A


class _Kind(IntEnum):
    BYTE = 1
    U16 = 2
    U32 = 4
    VARINT = 5
    TEXT = 6
    BINARY = 7
    PAIR = 8


_KINDS = {
    _Kind.BYTE: "PAYLOAD_FORMAT REQUEST_PROBLEM REQUEST_RESPONSE QOS_MAX RETAIN_AVAILABLE WILDCARDS_AVAILABLE"
    " SUBSCRIPTION_IDS_AVAILABLE SHARED_AVAILABLE",
    _Kind.U16: "SERVER_KEEP_ALIVE RECEIVE_MAX TOPIC_ALIAS_MAX TOPIC_ALIAS",
    _Kind.U32: "MESSAGE_EXPIRY SESSION_EXPIRY WILL_DELAY PACKET_BYTES_MAX",
    _Kind.VARINT: "SUBSCRIPTION_ID",
    _Kind.TEXT: "CONTENT_TYPE RESPONSE_TOPIC ASSIGNED_CLIENT_ID AUTH_METHOD RESPONSE_INFORMATION SERVER_REFERENCE"
    " REASON",
    _Kind.BINARY: "CORRELATION AUTH_DATA",
    _Kind.PAIR: "USER",
}
_KIND_OF = {Property[name]: kind for kind, names in _KINDS.items() for name in names.split()}


def _named(names: str) -> frozenset[Property]:
    return frozenset(Property[name] for name in names.split())


# Where a client may send them: section 2.2.2.2 of MQTT 5.
OF_CONNECT = _named(
    "SESSION_EXPIRY RECEIVE_MAX PACKET_BYTES_MAX TOPIC_ALIAS_MAX REQUEST_RESPONSE REQUEST_PROBLEM USER AUTH_METHOD"
    " AUTH_DATA"
)
OF_WILL = _named("WILL_DELAY PAYLOAD_FORMAT MESSAGE_EXPIRY CONTENT_TYPE RESPONSE_TOPIC CORRELATION USER")
OF_PUBLISH = _named("PAYLOAD_FORMAT MESSAGE_EXPIRY TOPIC_ALIAS RESPONSE_TOPIC CORRELATION USER CONTENT_TYPE")
OF_SUBSCRIBE = _named("SUBSCRIPTION_ID USER")
OF_UNSUBSCRIBE = _named("USER")
OF_ACK = _named("REASON USER")
OF_DISCONNECT = _named("SESSION_EXPIRY REASON USER")
OF_AUTH = _named("AUTH_METHOD AUTH_DATA REASON USER")

_FLAGS = _named("PAYLOAD_FORMAT REQUEST_PROBLEM REQUEST_RESPONSE")  # bytes that are 0 or 1
_NOT_ZERO = _named("RECEIVE_MAX PACKET_BYTES_MAX TOPIC_ALIAS SUBSCRIPTION_ID")

Value = int | bytes | tuple[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Properties:
    """What a packet carries: numbers, and texts and binary data as bytes; user properties in their order."""

    numbers: dict[Property, int]
    texts: dict[Property, bytes]
    users: tuple[tuple[bytes, bytes], ...] = ()

    def number(self, name: Property, default: int) -> int:
        """Return a number, or what it is where the packet does not say."""
        return self.numbers.get(name, default)

    def items(self) -> Iterator[tuple[Property, Value]]:
        """Give all of them, as `encode_properties` takes them."""
        yield from self.numbers.items()
        yield from self.texts.items()
        for pair in self.users:
            yield Property.USER, pair


NO_PROPERTIES = Properties({}, {})


def read_varint(body: bytes, pos: int) -> tuple[int, int]:
    """Return a variable byte integer and the position after it.

    Raises:
        MalformedPacketError: It is not all there, has more than four bytes, or more than it needs.
    """
    value = 0
    for k in range(4):
        if pos + k >= len(body):
            raise MalformedPacketError("MQTT-1.5.5-1", "a packet ends inside a variable byte integer")
        value |= (body[pos + k] & 0x7F) << 7 * k
        if body[pos + k] < 0x80:
            if k and not body[pos + k]:
                raise MalformedPacketError("MQTT-1.5.5-1", "a variable byte integer is longer than it needs to be")
            return value, pos + k + 1
    raise MalformedPacketError("MQTT-1.5.5-1", "a variable byte integer has more than four bytes")


def write_varint(value: int) -> bytes:
    """Return a variable byte integer, which is at most 268,435,455."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def decode_properties(body: bytes, pos: int, allowed: frozenset[Property]) -> tuple[Properties, int]:
    """Return the properties at `pos`, whose length comes first, and the position after them.

    Raises:
        MalformedPacketError: They are cut off, or one is unknown or may not stand in this packet.
        ProtocolViolationError: One is there twice, or has a value that it may not have.
    """
    size, pos = read_varint(body, pos)
    end = pos + size
    if end > len(body):
        raise MalformedPacketError("MQTT-2.2.2-1", "properties run past the end of their packet")
    if not size:
        return NO_PROPERTIES, pos
    if size > PROPERTIES_BYTES_MAX:
        raise MalformedPacketError("MQTT-2.2.2-1", f"properties of {size} bytes")
    found = Properties({}, {})
    users: list[tuple[bytes, bytes]] = []
    block = body[:end]
    while pos < end:
        number, pos = read_varint(block, pos)
        if number not in _KIND_OF or Property(number) not in allowed:
            raise MalformedPacketError("MQTT-2.2.2-2", f"property {number:#04x} may not stand in this packet")
        name = Property(number)
        if name in found.numbers or name in found.texts:
            raise ProtocolViolationError("MQTT-2.2.2-2", f"property {number:#04x} appears twice")
        value, pos = _read_value(block, pos, name)
        if isinstance(value, int):
            found.numbers[name] = value
        elif isinstance(value, bytes):
            found.texts[name] = value
        else:
            users.append(value)
    return Properties(found.numbers, found.texts, tuple(users)), pos


def _read_value(block: bytes, pos: int, name: Property) -> tuple[Value, int]:
    kind = _KIND_OF[name]
    if kind is _Kind.TEXT or kind is _Kind.BINARY:
        return _read_field(block, pos, is_text=kind is _Kind.TEXT)
    if kind is _Kind.PAIR:
        key, pos = _read_field(block, pos, is_text=True)
        value, pos = _read_field(block, pos, is_text=True)
        return (key, value), pos
    if kind is _Kind.VARINT:
        number, pos = read_varint(block, pos)
    elif pos + kind > len(block):
        raise MalformedPacketError("MQTT-2.2.2-1", "properties end inside a number")
    else:
        number, pos = int.from_bytes(block[pos : pos + kind], "big"), pos + kind
    if (name in _FLAGS and number > 1) or (name in _NOT_ZERO and not number):
        raise ProtocolViolationError("MQTT-2.2.2-2", f"property {name:#04x} may not be {number}")
    return number, pos


def _read_field(block: bytes, pos: int, *, is_text: bool) -> tuple[bytes, int]:
    end = pos + 2 + int.from_bytes(block[pos : pos + 2], "big")
    if pos + 2 > len(block) or end > len(block):
        raise MalformedPacketError("MQTT-2.2.2-1", "properties end inside a text")
    field = block[pos + 2 : end]
    if is_text:
        check_text(field, "MQTT-1.5.4-1")
    return field, end


def encode_properties(items: Iterable[tuple[Property, Value]]) -> bytes:
    """Return properties with their length before them, in the order of `items`."""
    encoded = bytearray()
    for name, value in items:
        encoded.append(name)
        encoded += _write_value(name, value)
    return write_varint(len(encoded)) + bytes(encoded)


def _write_value(name: Property, value: Value) -> bytes:
    kind = _KIND_OF[name]
    if isinstance(value, tuple):
        return _write_field(value[0]) + _write_field(value[1])
    if isinstance(value, bytes):
        return _write_field(value)
    return write_varint(value) if kind is _Kind.VARINT else value.to_bytes(kind, "big")


def _write_field(field: bytes) -> bytes:
    return len(field).to_bytes(2, "big") + field
