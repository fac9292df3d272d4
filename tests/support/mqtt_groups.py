"""A group of subscribers that share messages, as tests feed it and read from it."""

from __future__ import annotations

from tests.support.mqtt import puback, publish

FILTER = b"$share/g/t/#"


def send(world, *bodies, qos=1):
    """Publish to the group's topic by a client of its own."""
    publisher = world.client(b"p")
    publisher.send(*[publish(b"t/1", body, qos=qos, packet_id=i + 1) for i, body in enumerate(bodies)])


def numbered(count, start=0):
    """Return bodies that say their number."""
    return [b"%d" % i for i in range(start, start + count)]


def take(peer, *, acks=True):
    """Return the bodies that came to a member, which acknowledges them."""
    got = peer.take_deliveries()
    if acks:
        peer.send(*[puback(one.packet_id) for one in got if one.qos])
    return [one.body for one in got]
