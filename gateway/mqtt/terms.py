"""What a client and the gateway agree on in CONNECT and CONNACK."""

from __future__ import annotations

import re
from typing import NamedTuple

from gateway.door import ClientLimits
from gateway.mqtt.answers import encode_connack
from gateway.mqtt.packets import LEVEL_5, Connect
from gateway.mqtt.properties import Property, Value
from gateway.mqtt.session import NEVER, Session
from gateway.mqtt.topic_aliases import TopicAliases
from gateway.settings.models import MqttSettings

_NOT_IN_LEVEL = re.compile(rb"[/+#%\x00-\x1f]")
NO_LIMITS = ClientLimits()
RECEIVE_MAX = 4_096  # messages at QoS 1 and 2 that a client of MQTT 5 may have on their way
PROOF_BYTES = 256  # of the server's part of a proof, besides the client's own bytes


class Terms(NamedTuple):
    """What holds for one connection."""

    expiry_s: int  # how long the session outlives it
    keep_alive_s: int
    receive_max: int  # of the client, or of its address, 0 for none
    packet_bytes_max: int  # of the client, 0 for none
    own_packet_bytes_max: int
    own_alias_max: int = 0  # that the client may use
    alias_max: int = 0  # that it takes
    tells_why: bool = False  # why something is refused, in words
    response_information: bytes = b""  # below what the client may be answered, where it asks for that


def limit_expiry(expiry_s: int, settings: MqttSettings) -> int:
    """Return the session expiry that is granted for one that is asked for."""
    return min(expiry_s, settings.session_expiry_s or NEVER)


def make_terms(connect: Connect, settings: MqttSettings, limits: ClientLimits = NO_LIMITS) -> Terms:
    """Return what holds for the connection of a CONNECT, by an address with limits of its own."""
    own_packet_bytes_max = limits.packet_bytes_max or settings.packet_bytes_max
    if connect.level != LEVEL_5:
        expiry_s = 0 if connect.is_clean else NEVER
        return Terms(expiry_s, connect.keep_alive_s, limits.inflight_max, 0, own_packet_bytes_max)
    properties = connect.properties
    keep_alive_s = connect.keep_alive_s
    if settings.keep_alive_max_s and not 0 < keep_alive_s <= settings.keep_alive_max_s:
        keep_alive_s = settings.keep_alive_max_s
    return Terms(
        limit_expiry(properties.number(Property.SESSION_EXPIRY, 0), settings),
        keep_alive_s,
        _lesser(properties.number(Property.RECEIVE_MAX, 0), limits.inflight_max),
        properties.number(Property.PACKET_BYTES_MAX, 0),
        own_packet_bytes_max,
        settings.topic_alias_max,
        properties.number(Property.TOPIC_ALIAS_MAX, 0),
        properties.number(Property.REQUEST_PROBLEM, 1) == 1,
        settings.response_prefix.encode() if properties.number(Property.REQUEST_RESPONSE, 0) else b"",
    )


def _lesser(one: int, other: int) -> int:
    """Return the lower of two limits, each of which is 0 where there is none."""
    return min(one or other, other or one)


def apply_terms(terms: Terms, session: Session, level: int, inflight_max: int) -> None:
    """Let a session be written to as its new connection wants it."""
    session.level = level
    session.packet_bytes_max = terms.packet_bytes_max
    session.aliases = TopicAliases(terms.alias_max) if terms.alias_max else None
    session.set_receive_max(terms.receive_max, inflight_max)


def takes_connack(connect: Connect, client_id: bytes, settings: MqttSettings) -> bool:
    """Return whether what the client is told in its CONNACK is in a packet that it takes, MQTT-3.1.2-24."""
    if connect.level != LEVEL_5:
        return True
    bytes_max = connect.properties.number(Property.PACKET_BYTES_MAX, 0)
    if not bytes_max:
        return True
    items = connack_items(connect, make_terms(connect, settings), client_id)
    proof_bytes = PROOF_BYTES + len(connect.properties.texts.get(Property.AUTH_DATA, b""))
    size = _connack_bytes(items)
    return size + (proof_bytes if Property.AUTH_METHOD in connect.properties.texts else 0) <= bytes_max


def as_level(client_id: bytes) -> bytes:
    """Return a client identifier as one level of a topic: `/`, `+`, `#` and `%` are written as in a URL."""
    return _NOT_IN_LEVEL.sub(lambda found: b"%%%02X" % found[0][0], client_id)


def connack_items(connect: Connect, terms: Terms, client_id: bytes) -> list[tuple[Property, Value]]:
    """Return what a client of MQTT 5 is told in its CONNACK, as far as it is not what it asked for or must expect."""
    if connect.level != LEVEL_5:
        return []
    items: list[tuple[Property, Value]] = [
        (Property.RECEIVE_MAX, RECEIVE_MAX),
        (Property.PACKET_BYTES_MAX, terms.own_packet_bytes_max),
    ]
    if terms.own_alias_max:
        items.insert(1, (Property.TOPIC_ALIAS_MAX, terms.own_alias_max))
    if terms.expiry_s != connect.properties.number(Property.SESSION_EXPIRY, 0):
        items.append((Property.SESSION_EXPIRY, terms.expiry_s))
    if client_id != connect.client_id:
        items.append((Property.ASSIGNED_CLIENT_ID, client_id))
    if terms.keep_alive_s != connect.keep_alive_s:
        items.append((Property.SERVER_KEEP_ALIVE, terms.keep_alive_s))
    if terms.response_information:
        more = (Property.RESPONSE_INFORMATION, terms.response_information + b"/" + as_level(client_id))
        if not 0 < terms.packet_bytes_max < _connack_bytes([*items, more]):  # it can do without
            items.append(more)
    return items


def _connack_bytes(items: list[tuple[Property, Value]]) -> int:
    return len(encode_connack(0, session_present=False, level=LEVEL_5, properties=items))
