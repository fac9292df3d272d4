"""What the gateway says on a connection besides PUBLISH packets and what acknowledges them."""

from __future__ import annotations

from collections.abc import Iterable

from gateway.mqtt.packets import AUTH, CONNACK, DISCONNECT, LEVEL_5, PUBLISH, SUBACK, UNSUBACK
from gateway.mqtt.properties import Property, Value, encode_properties, write_varint

PINGRESP_BYTES = b"\xd0\x00"
_NO_PROPERTIES = b"\x00"

Items = Iterable[tuple[Property, Value]]


def _packet(packet_type: int, body: bytes) -> bytes:
    return bytes((packet_type << 4,)) + write_varint(len(body)) + body


def encode_connack(code: int, *, session_present: bool, level: int = 4, properties: Items = ()) -> bytes:
    """Return a CONNACK; properties are those of MQTT 5 alone."""
    if level != LEVEL_5:
        return bytes((CONNACK << 4, 2, session_present, code))
    return _packet(CONNACK, bytes((session_present, code)) + encode_properties(properties))


def encode_suback(packet_id: int, codes: list[int], level: int = 4, reason: str = "") -> bytes:
    """Return a SUBACK; one code for each filter, in their order, and why some are failures, for MQTT 5 alone."""
    properties = b""
    if level == LEVEL_5:
        properties = encode_properties([(Property.REASON, reason.encode())]) if reason else _NO_PROPERTIES
    return _packet(SUBACK, packet_id.to_bytes(2, "big") + properties + bytes(codes))


def encode_unsuback(packet_id: int, codes: list[int], level: int = 4) -> bytes:
    """Return an UNSUBACK; it has codes, one for each filter, in MQTT 5 alone."""
    codes_5 = _NO_PROPERTIES + bytes(codes) if level == LEVEL_5 else b""
    return _packet(UNSUBACK, packet_id.to_bytes(2, "big") + codes_5)


def encode_disconnect(code: int, properties: Items = ()) -> bytes:
    """Return a DISCONNECT of MQTT 5: before it, servers say nothing."""
    return _packet(DISCONNECT, bytes((code,)) + encode_properties(properties))


def encode_plain_publish(topic: bytes, body: bytes, level: int, identifier: int, *, retain: bool) -> bytes:
    """Return a PUBLISH at QoS 0 that has no properties but a subscription identifier, 0 for none."""
    head = len(topic).to_bytes(2, "big") + topic
    if level == LEVEL_5:
        head += encode_properties([(Property.SUBSCRIPTION_ID, identifier)] if identifier else ())
    return bytes((PUBLISH << 4 | retain,)) + write_varint(len(head) + len(body)) + head + body


def encode_auth(code: int, properties: Items) -> bytes:
    """Return an AUTH."""
    return _packet(AUTH, bytes((code,)) + encode_properties(properties))
