"""Control packets off the data path: their types, what they say, and their bytes.

Bodies are what follows the fixed header. PUBLISH and PUBACK are the codec's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from core import octets
from gateway.mqtt.errors import MalformedPacketError, ProtocolViolationError
from gateway.mqtt.topics import check_text, check_topic, check_topic_filter

CONNECT = 1
CONNACK = 2
PUBLISH = 3
PUBACK = 4
PUBREC = 5
PUBREL = 6
PUBCOMP = 7
SUBSCRIBE = 8
SUBACK = 9
UNSUBSCRIBE = 10
UNSUBACK = 11
PINGREQ = 12
PINGRESP = 13
DISCONNECT = 14

PINGRESP_BYTES = b"\xd0\x00"
CONNECT_BYTES_MAX = 2 + 6 + 4 + 5 * 65_537  # protocol name, flags and keep-alive, and five strings of full length

OLD_LEVEL = 3  # MQTT 3.1
LEVEL_BY_PROTOCOL = {b"MQTT": 4, b"MQIsdp": OLD_LEVEL}  # the levels that are spoken here

_PACKET_ID_BYTES = 2
_RESERVED_FLAG = 0x01
_CLEAN_FLAG = 0x02
_WILL_FLAG = 0x04
_WILL_RETAIN_FLAG = 0x20
_PASSWORD_FLAG = 0x40
_USER_FLAG = 0x80


@dataclass(frozen=True, slots=True)
class Will:
    """What is published for a client that goes without a DISCONNECT."""

    topic: bytes
    body: bytes
    qos: int
    is_retained: bool


@dataclass(frozen=True, slots=True)
class Connect:
    """A client introduces itself; where its protocol level is not spoken here, `level` is 0 and nothing else holds."""

    level: int
    client_id: bytes
    is_clean: bool
    keep_alive_s: int
    will: Will | None
    user: bytes | None
    password: bytes | None


@dataclass(frozen=True, slots=True)
class Subscribe:
    """A client asks for filters: pairs of filter and the highest QoS it wants.

    They are decoded as they are asked for, as there may be thousands; a malformed one raises MalformedPacketError then.
    """

    packet_id: int
    filters: Iterator[tuple[bytes, int]]


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """A client gives filters up, which are decoded as those of `Subscribe`."""

    packet_id: int
    filters: Iterator[bytes]


@dataclass(frozen=True, slots=True)
class Disconnect:
    """A client takes its leave; its will is not wanted any more."""


Packet = Connect | Subscribe | Unsubscribe | Disconnect

_UNKNOWN_LEVEL = Connect(0, b"", is_clean=True, keep_alive_s=0, will=None, user=None, password=None)


def _read_field(body: bytes, pos: int) -> tuple[bytes, int]:
    if pos + 2 > len(body):
        raise MalformedPacketError("MQTT-4.8.0-1", "a packet ends before the length of a field")
    end = pos + 2 + octets.read_u16(body, pos)
    if end > len(body):
        raise MalformedPacketError("MQTT-4.8.0-1", "a field runs past the end of its packet")
    return body[pos + 2 : end], end


def _read_packet_id(body: bytes) -> int:
    if len(body) < 2:
        raise MalformedPacketError("MQTT-4.8.0-1", "a packet has no packet identifier")
    packet_id = octets.read_u16(body, 0)
    if not packet_id:
        raise MalformedPacketError("MQTT-2.3.1-1", "a packet identifier is 0")
    return packet_id


def decode_connect(body: bytes) -> Connect:
    """Return what a CONNECT says; `level` 0 where it can only be answered that the protocol is not spoken here.

    Raises:
        MalformedPacketError: Another protocol altogether, or bytes that break a rule of CONNECT.
    """
    protocol, pos = _read_field(body, 0)
    if protocol not in LEVEL_BY_PROTOCOL:
        raise MalformedPacketError("MQTT-3.1.2-1", "the protocol name is not MQTT")
    if pos >= len(body):
        raise MalformedPacketError("MQTT-4.8.0-1", "a CONNECT ends before its flags")
    level = body[pos]
    if level != LEVEL_BY_PROTOCOL[protocol]:
        return _UNKNOWN_LEVEL
    if pos + 4 > len(body):
        raise MalformedPacketError("MQTT-4.8.0-1", "a CONNECT ends before its flags")
    flags = body[pos + 1]
    _check_connect_flags(flags)
    return _decode_connect_payload(body, pos + 4, level, flags, octets.read_u16(body, pos + 2))


def _check_connect_flags(flags: int) -> None:
    qos = (flags >> 3) & 3
    if flags & _RESERVED_FLAG:
        raise MalformedPacketError("MQTT-3.1.2-3", "the reserved flag of a CONNECT is set")
    if qos == 3:
        raise MalformedPacketError("MQTT-3.1.2-14", "a will has QoS 3")
    if not flags & _WILL_FLAG and qos:
        raise MalformedPacketError("MQTT-3.1.2-13", "a QoS for a will that there is not")
    if not flags & _WILL_FLAG and flags & _WILL_RETAIN_FLAG:
        raise MalformedPacketError("MQTT-3.1.2-15", "a retain flag for a will that there is not")
    if flags & _PASSWORD_FLAG and not flags & _USER_FLAG:
        raise MalformedPacketError("MQTT-3.1.2-22", "a password without a user name")


def _decode_connect_payload(body: bytes, pos: int, level: int, flags: int, keep_alive_s: int) -> Connect:
    client_id, pos = _read_field(body, pos)
    check_text(client_id, "MQTT-3.1.3-4")
    will = user = password = None
    if flags & _WILL_FLAG:
        topic, pos = _read_field(body, pos)
        check_topic(topic)
        will_body, pos = _read_field(body, pos)
        will = Will(topic, will_body, (flags >> 3) & 3, bool(flags & _WILL_RETAIN_FLAG))
    if flags & _USER_FLAG:
        user, pos = _read_field(body, pos)
        check_text(user, "MQTT-3.1.3-11")
    if flags & _PASSWORD_FLAG:
        password, pos = _read_field(body, pos)
    if pos != len(body):
        raise MalformedPacketError("MQTT-3.1.3-1", "a CONNECT has bytes that its flags do not announce")
    return Connect(level, client_id, bool(flags & _CLEAN_FLAG), keep_alive_s, will, user, password)


def decode_subscribe(body: bytes) -> Subscribe:
    """Return what a SUBSCRIBE asks for.

    Raises:
        MalformedPacketError: It has no packet identifier, or no filter.
    """
    packet_id = _read_packet_id(body)
    if len(body) == _PACKET_ID_BYTES:
        raise MalformedPacketError("MQTT-3.8.3-3", "a SUBSCRIBE without a filter")
    return Subscribe(packet_id, _read_wanted(body))


def _read_wanted(body: bytes) -> Iterator[tuple[bytes, int]]:
    pos = _PACKET_ID_BYTES
    while pos < len(body):
        topic_filter, pos = _read_field(body, pos)
        check_topic_filter(topic_filter)
        if pos == len(body) or body[pos] > 2:
            raise MalformedPacketError("MQTT-3.8.3-4", "a requested QoS is missing or none of 0, 1, 2")
        yield topic_filter, body[pos]
        pos += 1


def decode_unsubscribe(body: bytes) -> Unsubscribe:
    """Return what an UNSUBSCRIBE gives up.

    Raises:
        MalformedPacketError: It has no packet identifier, or no filter.
    """
    packet_id = _read_packet_id(body)
    if len(body) == _PACKET_ID_BYTES:
        raise MalformedPacketError("MQTT-3.10.3-2", "an UNSUBSCRIBE without a filter")
    return Unsubscribe(packet_id, _read_filters(body))


def _read_filters(body: bytes) -> Iterator[bytes]:
    pos = _PACKET_ID_BYTES
    while pos < len(body):
        topic_filter, pos = _read_field(body, pos)
        check_topic_filter(topic_filter)
        yield topic_filter


def decode_packet(packet_type: int, body: bytes) -> Packet:
    """Return a control packet other than PUBLISH, PUBACK and PINGREQ.

    Raises:
        MalformedPacketError: The bytes break a rule of their packet.
        ProtocolViolationError: Only a server sends that, or QoS 2 would need it.
    """
    if packet_type == SUBSCRIBE:
        return decode_subscribe(body)
    if packet_type == UNSUBSCRIBE:
        return decode_unsubscribe(body)
    if packet_type == CONNECT:
        return decode_connect(body)
    if packet_type not in {PINGREQ, DISCONNECT}:  # a PINGREQ that comes here has a body
        raise ProtocolViolationError("MQTT-4.8.0-1", f"a client may not send a packet of type {packet_type} here")
    if body or packet_type == PINGREQ:
        raise MalformedPacketError("MQTT-4.8.0-1", "a PINGREQ or DISCONNECT has a body")
    return Disconnect()


def encode_connack(code: int, *, session_present: bool) -> bytes:
    """Return a CONNACK."""
    return bytes((CONNACK << 4, 2, session_present, code))


def encode_suback(packet_id: int, codes: list[int]) -> bytes:
    """Return a SUBACK; one code for each filter, in their order."""
    return bytes((SUBACK << 4,)) + encode_length(2 + len(codes)) + packet_id.to_bytes(2, "big") + bytes(codes)


def encode_unsuback(packet_id: int) -> bytes:
    """Return an UNSUBACK."""
    return bytes((UNSUBACK << 4, 2)) + packet_id.to_bytes(2, "big")


def encode_length(length: int) -> bytes:
    """Return a remaining length, at most 268,435,455, in one to four bytes."""
    encoded = bytearray()
    while length > 0x7F:
        encoded.append(length & 0x7F | 0x80)
        length >>= 7
    encoded.append(length)
    return bytes(encoded)
