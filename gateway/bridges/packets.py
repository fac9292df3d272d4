"""MQTT 5 as a client writes it and reads it: the packets between a bridge and our own door."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from gateway.mqtt.properties import (
    OF_PUBLISH,
    Properties,
    Property,
    Value,
    decode_properties,
    encode_properties,
    read_varint,
    write_varint,
)

CONNACK = 2
PUBLISH = 3
PUBACK = 4
PUBREL = 6
SUBACK = 9
UNSUBACK = 11
DISCONNECT = 14
FAILURE = 0x80  # reason codes from here on say no
NEVER_S = 0xFFFFFFFF  # MQTT-5 3.1.2.11.2: the session does not expire
_LEVEL = 5  # MQTT 5.0
_QOS_SHIFT = 1
_OPTIONS = 0x04 | 0x08 | 0x10  # no local, retain as published, retained ones only for a new subscription
_OF_DELIVERY = OF_PUBLISH | {Property.SUBSCRIPTION_ID}
_LONGEST_LENGTH = 4  # MQTT-5 1.5.5: a length has one to four bytes


class Delivery(NamedTuple):
    """A PUBLISH that the door sent."""

    topic: bytes
    body: bytes
    qos: int
    packet_id: int
    is_retained: bool
    properties: Properties


def _text(value: bytes) -> bytes:
    return len(value).to_bytes(2, "big") + value


def _packet(first: int, body: bytes) -> bytes:
    return bytes((first,)) + write_varint(len(body)) + body


class Connect(NamedTuple):
    """A CONNECT, and of which client."""

    client_id: bytes
    data: bytes


def connect(client_id: bytes, receive_max: int) -> Connect:
    """Return the CONNECT of a lasting session that never times out, and takes so many messages at once."""
    items = [(Property.SESSION_EXPIRY, NEVER_S), (Property.RECEIVE_MAX, receive_max)]
    head = _text(b"MQTT") + bytes((_LEVEL, 0, 0, 0)) + encode_properties(items)
    return Connect(client_id, _packet(0x10, head + _text(client_id)))


def subscribe(packet_id: int, topic_filter: bytes, qos: int, identifier: int) -> bytes:
    """Return the SUBSCRIBE of one filter whose deliveries carry `identifier`."""
    properties = encode_properties([(Property.SUBSCRIPTION_ID, identifier)])
    return _packet(0x82, packet_id.to_bytes(2, "big") + properties + _text(topic_filter) + bytes((_OPTIONS | qos,)))


def unsubscribe(packet_id: int, topic_filter: bytes) -> bytes:
    """Return the UNSUBSCRIBE of one filter."""
    return _packet(0xA2, packet_id.to_bytes(2, "big") + b"\0" + _text(topic_filter))


def publish(
    topic: bytes, body: bytes, qos: int, packet_id: int, items: Iterable[tuple[Property, Value]], *, is_retained: bool
) -> bytes:
    """Return a PUBLISH."""
    number = packet_id.to_bytes(2, "big") if qos else b""
    return _packet(0x30 | qos << _QOS_SHIFT | is_retained, _text(topic) + number + encode_properties(items) + body)


def acknowledge(qos: int, packet_id: int) -> bytes:
    """Return what answers a PUBLISH that was taken."""
    return bytes((0x40 if qos == 1 else 0x50, 2)) + packet_id.to_bytes(2, "big")


def complete(packet_id: int) -> bytes:
    """Return what answers a PUBREL."""
    return b"\x70\x02" + packet_id.to_bytes(2, "big")


def cut(data: bytearray) -> list[bytes]:
    """Take the whole packets off the beginning of `data` and return them."""
    found = []
    pos = 0
    while (end := _end_of(data, pos)) > 0:
        found.append(bytes(data[pos:end]))
        pos = end
    del data[:pos]
    return found


def _end_of(data: bytearray, pos: int) -> int:
    """Return where the packet at `pos` ends, 0 where it is not all there."""
    size = 0
    for k in range(1, _LONGEST_LENGTH + 1):
        if pos + k >= len(data):
            return 0
        size |= (data[pos + k] & 0x7F) << 7 * (k - 1)
        if data[pos + k] < FAILURE:
            end = pos + k + 1 + size
            return end if end <= len(data) else 0
    return 0


def read_delivery(packet: bytes) -> Delivery:
    """Return what a PUBLISH of the door says."""
    _, pos = read_varint(packet, 1)
    qos = packet[0] >> _QOS_SHIFT & 3
    end = pos + 2 + int.from_bytes(packet[pos : pos + 2], "big")
    topic = packet[pos + 2 : end]
    packet_id = int.from_bytes(packet[end : end + 2], "big") if qos else 0
    properties, start = decode_properties(packet, end + (2 if qos else 0), _OF_DELIVERY)
    return Delivery(topic, packet[start:], qos, packet_id, bool(packet[0] & 1), properties)


def read_answer(packet: bytes) -> tuple[int, int]:
    """Return the packet identifier of a PUBACK, PUBREL, SUBACK or UNSUBACK and the worst reason code in it."""
    _, pos = read_varint(packet, 1)
    packet_id = int.from_bytes(packet[pos : pos + 2], "big")
    rest = packet[pos + 2 :]
    if packet[0] >> 4 in {SUBACK, UNSUBACK}:
        size, start = read_varint(rest, 0)
        rest = rest[start + size :]
        return packet_id, max(rest, default=0)
    return packet_id, rest[0] if rest else 0


def reason_of(packet: bytes) -> int:
    """Return the reason code of a CONNACK or a DISCONNECT."""
    _, pos = read_varint(packet, 1)
    at = pos + 1 if packet[0] >> 4 == CONNACK else pos
    return packet[at] if at < len(packet) else 0
