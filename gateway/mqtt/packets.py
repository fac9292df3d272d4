"""Control packets off the data path: their types, what they say, and their bytes.

Bodies are what follows the fixed header. PUBLISH and its acknowledgements are the codec's, what the gateway says is in
`answers.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from core import octets
from gateway.mqtt.errors import MalformedPacketError, ProtocolViolationError
from gateway.mqtt.properties import (
    NO_PROPERTIES,
    OF_AUTH,
    OF_CONNECT,
    OF_DISCONNECT,
    OF_SUBSCRIBE,
    OF_UNSUBSCRIBE,
    OF_WILL,
    PROPERTIES_BYTES_MAX,
    Properties,
    Property,
    decode_properties,
)
from gateway.mqtt.reason_codes import ReasonCode
from gateway.mqtt.topics import check_text, check_topic, check_topic_filter, is_shared

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
AUTH = 15

# Protocol name, flags and keep-alive, five strings of full length, and the properties of packet and will.
CONNECT_BYTES_MAX = 2 + 6 + 4 + 5 * 65_537 + 2 * (PROPERTIES_BYTES_MAX + 3)

OLD_LEVEL = 3  # MQTT 3.1
LEVEL_5 = 5  # MQTT 5
_BRIDGE_BIT = 0x80
_BRIDGE_OPTIONS = 0x04 | 0x08  # no local, retain as published
LEVELS_BY_PROTOCOL = {b"MQTT": (4, LEVEL_5), b"MQIsdp": (OLD_LEVEL,)}  # the levels that are spoken here

HEAD_OF_5 = b"\x00\x04MQTT\x05"  # what the body of a CONNECT of MQTT 5 begins with
_PACKET_ID_BYTES = 2  # MQTT 2.3.1: two bytes, the higher one first
_RESERVED_FLAG = 0x01
_CLEAN_FLAG = 0x02
_WILL_FLAG = 0x04
_WILL_RETAIN_FLAG = 0x20
_PASSWORD_FLAG = 0x40
_USER_FLAG = 0x80
_PLAIN_FLAGS = _CLEAN_FLAG | _USER_FLAG  # that cannot be wrong

# Options of a subscription.
QOS_MASK = 0x03
NO_LOCAL = 0x04
RETAIN_AS_PUBLISHED = 0x08
HANDLING_MASK = 0x30  # when retained messages are sent: 0x00 always, 0x10 for a new subscription, 0x20 never
HANDLING_NEW = 0x10
_RESERVED_OPTIONS = 0xC0

_CLIENT_REASONS = frozenset(
    (
        ReasonCode.SUCCESS,
        ReasonCode.DISCONNECT_WITH_WILL,
        ReasonCode.UNSPECIFIED_ERROR,
        ReasonCode.MALFORMED_PACKET,
        ReasonCode.PROTOCOL_ERROR,
        ReasonCode.IMPLEMENTATION_ERROR,
        ReasonCode.TOPIC_NAME_INVALID,
        ReasonCode.RECEIVE_MAXIMUM_EXCEEDED,
        ReasonCode.TOPIC_ALIAS_INVALID,
        ReasonCode.PACKET_TOO_LARGE,
        ReasonCode.MESSAGE_RATE_TOO_HIGH,
        ReasonCode.QUOTA_EXCEEDED,
        ReasonCode.ADMINISTRATIVE_ACTION,
        ReasonCode.PAYLOAD_FORMAT_INVALID,
    )
)
_AUTH_REASONS = frozenset((ReasonCode.SUCCESS, ReasonCode.CONTINUE_AUTHENTICATION, ReasonCode.REAUTHENTICATE))


@dataclass(frozen=True, slots=True)
class Will:
    """What is published for a client that goes without a DISCONNECT."""

    topic: bytes
    body: bytes
    qos: int
    is_retained: bool
    properties: Properties = NO_PROPERTIES


@dataclass(slots=True)
class Connect:
    """A client introduces itself; where its protocol level is not spoken here, `level` is 0 and nothing else holds."""

    level: int
    client_id: bytes
    is_clean: bool
    keep_alive_s: int
    will: Will | None
    user: bytes | None
    password: bytes | None
    properties: Properties = NO_PROPERTIES
    is_bridge: bool = False  # of 3.1 or 3.1.1, with the bit that Mosquitto's bridges set in the level


@dataclass(frozen=True, slots=True)
class Subscribe:
    """A client asks for filters: pairs of filter and options, the lowest two bits of which are the highest QoS wanted.

    They are decoded as they are asked for, as there may be thousands; a malformed one raises MalformedPacketError then.
    `identifier` is the subscription identifier, 0 for none.
    """

    packet_id: int
    filters: Iterator[tuple[bytes, int]]
    identifier: int = 0


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """A client gives filters up, which are decoded as those of `Subscribe`."""

    packet_id: int
    filters: Iterator[bytes]


@dataclass(frozen=True, slots=True)
class Disconnect:
    """A client takes its leave; its will is not wanted any more, unless `code` says so."""

    code: int = 0
    properties: Properties = NO_PROPERTIES


@dataclass(frozen=True, slots=True)
class Auth:
    """A step of an enhanced authentication."""

    code: int
    properties: Properties


Packet = Connect | Subscribe | Unsubscribe | Disconnect | Auth

_PLAIN_DISCONNECT = Disconnect()
_UNKNOWN_LEVEL = Connect(0, b"", is_clean=True, keep_alive_s=0, will=None, user=None, password=None)


def _read_field(body: bytes, pos: int) -> tuple[bytes, int]:
    if pos + 2 > len(body):
        raise MalformedPacketError("MQTT-4.8.0-1", "a packet ends before the length of a field")
    end = pos + 2 + (body[pos] << 8 | body[pos + 1])
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
        MqttError: Another protocol altogether, or bytes that break a rule of CONNECT.
    """
    protocol, pos = _read_field(body, 0)
    levels = LEVELS_BY_PROTOCOL.get(protocol)
    if levels is None:
        raise MalformedPacketError("MQTT-3.1.2-1", "the protocol name is not MQTT")
    if pos >= len(body):
        raise MalformedPacketError("MQTT-4.8.0-1", "a CONNECT ends before its flags")
    level = body[pos]
    is_bridge = level & ~_BRIDGE_BIT < LEVEL_5 and level & _BRIDGE_BIT != 0
    if is_bridge:
        level &= ~_BRIDGE_BIT
    if level not in levels:
        return _UNKNOWN_LEVEL
    if pos + 4 > len(body):
        raise MalformedPacketError("MQTT-4.8.0-1", "a CONNECT ends before its flags")
    flags = body[pos + 1]
    if flags & ~_PLAIN_FLAGS:
        _check_connect_flags(flags, level)
    connect = _decode_connect_payload(body, pos + 4, level, flags, body[pos + 2] << 8 | body[pos + 3])
    connect.is_bridge = is_bridge
    return connect


def subscribe_of_bridge(packet: Subscribe) -> Subscribe:
    """Return what a bridge of 3.1.1 means by its SUBSCRIBE: not its own messages, and retain flags as they were."""
    return replace(packet, filters=_bridge_filters(packet.filters))


def _bridge_filters(filters: Iterator[tuple[bytes, int]]) -> Iterator[tuple[bytes, int]]:
    for name, options in filters:
        yield name, options if is_shared(name) else options | _BRIDGE_OPTIONS


def _check_connect_flags(flags: int, level: int) -> None:
    qos = (flags >> 3) & 3
    if flags & _RESERVED_FLAG:
        raise MalformedPacketError("MQTT-3.1.2-3", "the reserved flag of a CONNECT is set")
    if qos == 3:
        raise MalformedPacketError("MQTT-3.1.2-14", "a will has QoS 3")
    if not flags & _WILL_FLAG and qos:
        raise MalformedPacketError("MQTT-3.1.2-13", "a QoS for a will without a will")
    if not flags & _WILL_FLAG and flags & _WILL_RETAIN_FLAG:
        raise MalformedPacketError("MQTT-3.1.2-15", "a will retain flag without a will")
    if flags & _PASSWORD_FLAG and not flags & _USER_FLAG and level < LEVEL_5:
        raise MalformedPacketError("MQTT-3.1.2-22", "a password without a user name")


def _decode_connect_payload(body: bytes, pos: int, level: int, flags: int, keep_alive_s: int) -> Connect:
    properties = NO_PROPERTIES
    if level == LEVEL_5:
        properties, pos = decode_properties(body, pos, OF_CONNECT)
        if Property.AUTH_DATA in properties.texts and Property.AUTH_METHOD not in properties.texts:
            raise ProtocolViolationError("MQTT-3.1.2-30", "authentication data without a method")
    client_id, pos = _read_field(body, pos)
    check_text(client_id, "MQTT-3.1.3-4")
    will = user = password = None
    if flags & _WILL_FLAG:
        will, pos = _decode_will(body, pos, level, flags)
    if flags & _USER_FLAG:
        user, pos = _read_field(body, pos)
        check_text(user, "MQTT-3.1.3-11")
    if flags & _PASSWORD_FLAG:
        password, pos = _read_field(body, pos)
    if pos != len(body):
        raise MalformedPacketError("MQTT-3.1.3-1", "a CONNECT has bytes that its flags do not announce")
    return Connect(level, client_id, bool(flags & _CLEAN_FLAG), keep_alive_s, will, user, password, properties)


def _decode_will(body: bytes, pos: int, level: int, flags: int) -> tuple[Will, int]:
    properties = NO_PROPERTIES
    if level == LEVEL_5:
        properties, pos = decode_properties(body, pos, OF_WILL)
        check_response_topic(properties)
    topic, pos = _read_field(body, pos)
    check_topic(topic)
    will_body, pos = _read_field(body, pos)
    return Will(topic, will_body, (flags >> 3) & 3, bool(flags & _WILL_RETAIN_FLAG), properties), pos


def check_response_topic(properties: Properties) -> None:
    """Check that the answers to a message have a topic that one can publish to.

    Raises:
        MqttError: They have not.
    """
    topic = properties.texts.get(Property.RESPONSE_TOPIC)
    if topic is not None:
        check_topic(topic)


def decode_subscribe(body: bytes, level: int = 4) -> Subscribe:
    """Return what a SUBSCRIBE asks for.

    Raises:
        MqttError: It has no packet identifier, no filter, or bad properties.
    """
    packet_id = _read_packet_id(body)
    pos, identifier = _PACKET_ID_BYTES, 0
    if level == LEVEL_5:
        properties, pos = decode_properties(body, pos, OF_SUBSCRIBE)
        identifier = properties.number(Property.SUBSCRIPTION_ID, 0)
    if len(body) == pos:
        raise ProtocolViolationError("MQTT-3.8.3-3", "a SUBSCRIBE without a filter")
    return Subscribe(packet_id, _read_wanted(body, pos, level), identifier)


def _read_wanted(body: bytes, pos: int, level: int) -> Iterator[tuple[bytes, int]]:
    while pos < len(body):
        topic_filter, pos = _read_field(body, pos)
        check_topic_filter(topic_filter)
        options = body[pos] if pos < len(body) else -1
        if options < 0 or options & QOS_MASK == 3 or (options > QOS_MASK and level < LEVEL_5):
            raise MalformedPacketError("MQTT-3.8.3-4", "a requested QoS is missing or none of 0, 1, 2")
        _check_options(topic_filter, options)
        yield topic_filter, options
        pos += 1


def _check_options(topic_filter: bytes, options: int) -> None:
    if options & _RESERVED_OPTIONS:
        raise MalformedPacketError("MQTT-3.8.3-5", "reserved bits of subscription options are set")
    if options & HANDLING_MASK == HANDLING_MASK:
        raise ProtocolViolationError("MQTT-3.8.3-4", "a retain handling of 3")
    if options & NO_LOCAL and is_shared(topic_filter):
        raise ProtocolViolationError("MQTT-3.8.3-4", "no local for a shared subscription")


def decode_unsubscribe(body: bytes, level: int = 4) -> Unsubscribe:
    """Return what an UNSUBSCRIBE gives up.

    Raises:
        MqttError: It has no packet identifier, no filter, or bad properties.
    """
    packet_id = _read_packet_id(body)
    pos = _PACKET_ID_BYTES
    if level == LEVEL_5:
        _, pos = decode_properties(body, pos, OF_UNSUBSCRIBE)
    if len(body) == pos:
        raise ProtocolViolationError("MQTT-3.10.3-2", "an UNSUBSCRIBE without a filter")
    return Unsubscribe(packet_id, _read_filters(body, pos))


def _read_filters(body: bytes, pos: int) -> Iterator[bytes]:
    while pos < len(body):
        topic_filter, pos = _read_field(body, pos)
        check_topic_filter(topic_filter)
        yield topic_filter


def _decode_reason(body: bytes, allowed: frozenset[Property]) -> tuple[int, Properties]:
    """Return reason code and properties of a DISCONNECT or AUTH, both of which may be left out."""
    code = body[0] if body else 0
    properties, pos = decode_properties(body, 1, allowed) if len(body) > 1 else (NO_PROPERTIES, len(body))
    if pos != len(body):
        raise MalformedPacketError("MQTT-2.2.2-1", "a packet has bytes behind its properties")
    return code, properties


def decode_disconnect(body: bytes, level: int = 4) -> Disconnect:
    """Return what a DISCONNECT says.

    Raises:
        MqttError: It has a body before MQTT 5, a reason that only servers give, or bad properties.
    """
    if level < LEVEL_5:
        if body:
            raise MalformedPacketError("MQTT-4.8.0-1", "a DISCONNECT has a body")
        return _PLAIN_DISCONNECT
    code, properties = _decode_reason(body, OF_DISCONNECT)
    if code not in _CLIENT_REASONS:
        raise ProtocolViolationError("MQTT-3.14.2-1", f"a client may not disconnect for reason {code:#04x}")
    return Disconnect(code, properties)


def decode_auth(body: bytes) -> Auth:
    """Return what an AUTH says.

    Raises:
        MqttError: It has a reason that there is not, or no method.
    """
    code, properties = _decode_reason(body, OF_AUTH)
    if code not in _AUTH_REASONS:
        raise ProtocolViolationError("MQTT-3.15.2-1", f"an AUTH for reason {code:#04x}")
    if body and Property.AUTH_METHOD not in properties.texts:
        raise ProtocolViolationError("MQTT-4.12.0-1", "an AUTH without a method")
    return Auth(code, properties)


def decode_packet(packet_type: int, body: bytes, level: int = 4) -> Packet:
    """Return a control packet other than PUBLISH, its acknowledgements and PINGREQ.

    Raises:
        MqttError: The bytes break a rule of their packet, or only a server sends that.
    """
    if packet_type == SUBSCRIBE:
        return decode_subscribe(body, level)
    if packet_type == UNSUBSCRIBE:
        return decode_unsubscribe(body, level)
    if packet_type == CONNECT:
        return decode_connect(body)
    if packet_type == DISCONNECT:
        return decode_disconnect(body, level)
    if packet_type == AUTH and level == LEVEL_5:
        return decode_auth(body)
    if packet_type == PINGREQ:  # one that comes here has a body
        raise MalformedPacketError("MQTT-4.8.0-1", "a PINGREQ has a body")
    raise ProtocolViolationError("MQTT-4.8.0-1", f"a client may not send a packet of type {packet_type} here")
