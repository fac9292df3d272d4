"""Clients of MQTT 5 at a door in memory: the answers and messages that they got."""

from __future__ import annotations

from gateway.mqtt.properties import OF_PUBLISH, Property, decode_properties, encode_properties
from tests.support.mqtt import (
    connect_5,
    subscribe_5,
)

P = Property
OF_CONNACK = frozenset(P)


def encoded(*items):
    return encode_properties(items)


def connack_of(data):
    """Return session present, code and properties of a CONNACK."""
    assert data[0] == 0x20
    found, end = decode_properties(data, 4, OF_CONNACK)
    assert end == len(data)
    return data[2], data[3], found


def enter(world, client_id=b"c", *items, filters=(), **options):
    """Return a client of version 5 that is let in, and subscribed, its answers taken."""
    peer = world.dial().send(connect_5(client_id, properties=encoded(*items), **options))
    (data,) = [one for one in peer.take() if one[0] == 0x20]
    assert data[3] == 0
    if filters:
        peer.send(subscribe_5(1, *filters))
        peer.take()
    return peer


class Got:
    """A PUBLISH that a client of version 5 was sent."""

    def __init__(self, data):
        pos = 1
        while data[pos] >= 0x80:
            pos += 1
        pos += 1
        self.qos, self.retain, self.dup = (data[0] >> 1) & 3, data[0] & 1, data[0] >> 3 & 1
        size = int.from_bytes(data[pos : pos + 2], "big")
        self.topic = data[pos + 2 : pos + 2 + size]
        pos += 2 + size
        self.packet_id = 0
        if self.qos:
            self.packet_id = int.from_bytes(data[pos : pos + 2], "big")
            pos += 2
        self.properties, pos = decode_properties(data, pos, OF_PUBLISH | {P.SUBSCRIPTION_ID})
        self.body = data[pos:]


def got(peer):
    return [Got(one) for one in peer.take() if one[0] >> 4 == 3]
