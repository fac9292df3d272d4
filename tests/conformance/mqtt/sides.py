"""The door, and clients of one version of MQTT: the bytes they write, and the packets they get, taken to pieces."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.mqtt.properties import NO_PROPERTIES, Properties, Property, decode_properties, encode_properties
from tests.support import mqtt
from tests.support.carried import dial_by
from tests.support.mqtt_door import World

P = Property
ALL = frozenset(P)
KINDS = (
    "",
    "CONNECT",
    "CONNACK",
    "PUBLISH",
    "PUBACK",
    "PUBREC",
    "PUBREL",
    "PUBCOMP",
    "SUBSCRIBE",
    "SUBACK",
    "UNSUBSCRIBE",
    "UNSUBACK",
    "PINGREQ",
    "PINGRESP",
    "DISCONNECT",
    "AUTH",
)
STAYS_S = 1_000
PASSWORD = b"p"
_HASH = "pbkdf2-sha256$1$c2FsdHNhbHRzYWx0c2FsdA==$hPrpFC09AsODBXTe1LuwU3XYPvr5/UeP7oi4Sff7rz8="  # of it, quick to check


@dataclass(frozen=True)
class Said:
    """A packet that the gateway sent; fields that its kind does not have are as they stand here."""

    kind: str
    flags: int = 0  # the lower half of the first byte
    packet_id: int = 0
    code: int = 0
    codes: tuple[int, ...] = ()
    ack_flags: int = 0  # of CONNACK: session present
    topic: bytes = b""
    body: bytes = b""
    properties: Properties = NO_PROPERTIES

    @property
    def qos(self):
        return self.flags >> 1 & 3

    @property
    def retain(self):
        return bool(self.flags & 1)

    @property
    def dup(self):
        return bool(self.flags & 8)

    def number(self, name, default=-1):
        return self.properties.number(name, default)

    def text(self, name):
        return self.properties.texts.get(name)


def parse(data, level):
    """Return what one packet of the gateway says."""
    kind, flags = KINDS[data[0] >> 4], data[0] & 15
    pos = 1
    while data[pos] >= 0x80:
        pos += 1
    body = data[pos + 1 :]
    is_5 = level == 5
    if kind == "CONNACK":
        return Said(kind, flags, ack_flags=body[0], code=body[1], properties=_rest(body, 2, is_5))
    if kind == "PUBLISH":
        return _parse_publish(kind, flags, body, is_5)
    if kind in {"PINGRESP", "DISCONNECT", "AUTH"}:
        assert is_5 or not body
        return Said(kind, flags, code=body[0] if body else 0, properties=_rest(body, 1, is_5))
    packet_id = int.from_bytes(body[:2], "big")
    if kind in {"SUBACK", "UNSUBACK"}:
        found, pos = decode_properties(body, 2, ALL) if is_5 else (NO_PROPERTIES, 2)
        return Said(kind, flags, packet_id, codes=tuple(body[pos:]), properties=found)
    assert kind in {"PUBACK", "PUBREC", "PUBREL", "PUBCOMP"}
    assert is_5 or len(body) == 2
    return Said(kind, flags, packet_id, body[2] if len(body) > 2 else 0, properties=_rest(body, 3, is_5))


def _rest(body, pos, is_5):
    if len(body) <= pos:
        return NO_PROPERTIES
    assert is_5
    found, end = decode_properties(body, pos, ALL)
    assert end == len(body)
    return found


def _parse_publish(kind, flags, body, is_5):
    pos = 2 + int.from_bytes(body[:2], "big")
    topic, packet_id = body[2:pos], 0
    if flags & 6:
        packet_id = int.from_bytes(body[pos : pos + 2], "big")
        pos += 2
    found, pos = decode_properties(body, pos, ALL) if is_5 else (NO_PROPERTIES, pos)
    return Said(kind, flags, packet_id, topic=topic, body=body[pos:], properties=found)


class Side:
    """A door with clients of one version; `open` opens it with settings, at first use it is opened without."""

    def __init__(self, level, data_dir, transport="tcp", make_engine=None):
        self.level = level
        self._make_engine = make_engine
        self.transport = transport
        self.is_5 = level == 5
        self._data_dir = data_dir
        self._world = None

    def open(self, **settings):
        self._world = World(self._data_dir, **{"make_engine": self._make_engine, **settings})
        return self

    @property
    def world(self):
        if self._world is None:
            self.open()
        return self._world

    def open_for(self, settings=None, **users):
        """Let these users in, each with its rights and `PASSWORD`, and no client without a name."""
        known = {name: {"password_hash": _HASH, **rights} for name, rights in users.items()}
        return self.open(auth={"mqtt_anonymous": False, "users": known}, **(settings or {}))

    @property
    def is_open(self):
        return self._world is not None

    def reset(self):
        """Close the door; it is opened anew, over an empty folder, by what comes next."""
        self.close()
        self._world = None
        self._data_dir = self._data_dir.with_name(f"{self._data_dir.name}-next")
        return self

    def restart(self):
        """Kill the gateway and start it over the same data."""
        self.world.close()
        self.world.open()

    def close(self):
        if self._world is not None:
            self._world.close()

    def pass_time(self, seconds):
        """Let time pass, and what is due then happen."""
        world = self.world
        world.now_ms += int(seconds * 1000)
        for peer in world.peers:
            deadline_ms = None if peer.is_closed else peer.handler.next_deadline_ms()
            if deadline_ms is not None and deadline_ms <= world.now_ms:
                peer.handler.on_timer(world.now_ms)
        world.door.wills.publish_due(world.now_ms)
        world.door.tend(world.now_ms)
        world.turn()

    # What clients write

    def connect(self, client_id=b"c", *, stays=False, clean=None, items=(), will=None, will_items=(), **options):
        """Return a CONNECT; `stays` asks for a session that is kept, and resumed where there is one."""
        clean = not stays if clean is None else clean
        if not self.is_5:
            return mqtt.connect(client_id, clean=clean, will=will, **options)
        items = [(P.SESSION_EXPIRY, STAYS_S), *items] if stays else items
        will = will and (*will, encode_properties(will_items))
        return mqtt.connect_5(client_id, clean=clean, properties=encode_properties(items), will=will, **options)

    def connect_body(self, flags, payload, *, protocol=b"MQTT", level=None, keep_alive_s=60):
        """Return a CONNECT of these flags and this payload, however they fit; properties are none."""
        level = level or self.level
        head = mqtt.text(protocol) + bytes((level, flags)) + keep_alive_s.to_bytes(2, "big")
        return mqtt.packet(0x10, head + (b"\0" if self.is_5 else b"") + payload)

    def will(self, topic, body):
        """Return the fields of a will in the payload of a CONNECT."""
        return (b"\0" if self.is_5 else b"") + mqtt.text(topic) + mqtt.text(body)

    def publish(self, topic, body=b"x", *, items=(), **options):
        if self.is_5:
            return mqtt.publish_5(topic, body, encode_properties(items), **options)
        return mqtt.publish(topic, body, **options)

    def subscribe(self, packet_id, *filters, items=()):
        if self.is_5:
            return mqtt.subscribe_5(packet_id, *filters, properties=encode_properties(items))
        return mqtt.subscribe(packet_id, *filters)

    def unsubscribe(self, packet_id, *filters):
        return mqtt.unsubscribe_5(packet_id, *filters) if self.is_5 else mqtt.unsubscribe(packet_id, *filters)

    # Clients

    def dial(self):
        return dial_by(self.transport, self.world)

    def enter(self, client_id=b"c", *filters, items=(), **options):
        """Return a client that is let in, and subscribed, its answers taken, and what it was sent at once."""
        peer = self.dial().send(self.connect(client_id, items=items, **options))
        said = self.said(peer)
        assert (said[0].kind, said[0].code) == ("CONNACK", 0)
        if filters:
            peer.send(self.subscribe(1, *filters))
            self.said(peer)
        return peer

    def said(self, peer, kind=""):
        """Return the packets that came since the last time, all or of one kind."""
        return [one for one in (parse(data, self.level) for data in peer.take()) if kind in {"", one.kind}]

    def one(self, peer):
        (said,) = self.said(peer)
        return said

    def answer(self, peer, data):
        """Send a CONNECT and return the CONNACK, the first that was said."""
        said = self.said(peer.send(data))
        assert said[0].kind == "CONNACK"
        return said[0]

    def messages(self, peer):
        return self.said(peer, "PUBLISH")

    def bodies(self, peer):
        return [one.body for one in self.messages(peer)]

    def assert_ends(self, peer, code):
        """See that the connection was closed, and that a client of MQTT 5 was told why."""
        assert peer.is_closed
        said = self.said(peer)
        if self.is_5:
            assert said
            assert (said[-1].kind, said[-1].code) == ("DISCONNECT", code)
        else:
            assert said == []

    def assert_refused(self, peer, code):
        """See that a first packet was not taken: nobody is let in; of MQTT 5 there may be a CONNACK with its code."""
        assert peer.is_closed
        said = self.said(peer)
        if self.is_5 and code:
            assert [(one.kind, one.code, one.ack_flags) for one in said] == [("CONNACK", code, 0)]
        else:
            assert said == []
