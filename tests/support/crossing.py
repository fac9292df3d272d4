"""One gateway with all doors in memory, and what a message carries said and heard at each: `DOORS`.

A message is a dict of fields, in one form for all protocols. A field that a protocol has no means to say is left out of
what it sends; what a consumer is told is read from the bytes that it got, without the code under test.
"""

from __future__ import annotations

import json
import struct
from types import SimpleNamespace

from pamqp import commands
from pamqp.commands import Basic, Queue

from gateway.mqtt.properties import Property
from tests.support import amqp, mqtt
from tests.support.amqp_blocks import AMQP_ONLY, decode_block, encode_block
from tests.support.amqp_door import AmqpWorld
from tests.support.mqtt_5 import encoded, enter, got
from tests.support.mqtt_door import NOW_MS, World
from tests.support.rocketmq import send_frame
from tests.support.rocketmq_door import Peer as RocketmqPeer, make_door as make_rocketmq_door, records_of

DOORS = ("MQTT 3.1.1", "MQTT 5", "AMQP", "RocketMQ")
AGE_MS = 10_000  # how long a message waits before it is read


class CrossingWorld(AmqpWorld):
    """A store and its broker with the MQTT, the AMQP and the RocketMQ door; each has a publisher and a consumer."""

    def open(self):
        super().open()
        self.rocketmq = make_rocketmq_door(self)
        site = SimpleNamespace(door=self.rocketmq, turn=self.turn, now_ms=self.now_ms, engine=self.engine)
        self.producer = RocketmqPeer(site, 900, b"\x7f\0\0\1\0\0\x2a\x9f")

    def listen(self):
        """Have consumers of each protocol that are away while messages come."""
        World.client(self, b"old", (b"#", 2), clean=False).vanish()
        lasting = (Property.SESSION_EXPIRY, 600)
        enter(self, b"new", lasting, filters=((b"#", 0x0A),)).vanish()  # QoS 2, retain as published
        self.reader = self.client_of_amqp()
        self.reader.declare("all")
        self.reader.call(Queue.Bind(queue="all", exchange="amq.topic", routing_key="#"))

    def client_of_amqp(self):
        """Return a client of AMQP with a channel."""
        peer = self.log_in()
        assert isinstance(peer.call(commands.Channel.Open(), 1), commands.Channel.OpenOk)
        return peer

    def publish(self, door, fields):
        """Send one message; return what of it the protocol can say."""
        return {
            "MQTT 3.1.1": self._publish_3,
            "MQTT 5": self._publish_5,
            "AMQP": self._publish_amqp,
            "RocketMQ": self._publish_rocketmq,
        }[door](dict(fields))

    def _publish_3(self, fields):
        said = _only(fields, "topic", "body", "qos", "retain", "born")
        peer = self._publisher("MQTT 3.1.1", b"sender-3")
        self._count = getattr(self, "_count", 0) + 1
        qos = said.get("qos", 1)
        peer.send(
            mqtt.publish(said["topic"], said["body"], qos=qos, packet_id=self._count, retain="retain" in said),
            *([mqtt.pubrel(self._count)] if qos == 2 else []),
        )
        return {**said, "publisher": (b"mqtt", b"sender-3")}

    def _publish_5(self, fields):
        said = {name: value for name, value in fields.items() if name not in {"flag", "user id"}}
        items = []
        for name, identifier in (
            ("content type", Property.CONTENT_TYPE),
            ("time to live", Property.MESSAGE_EXPIRY),
            ("payload format", Property.PAYLOAD_FORMAT),
            ("response topic", Property.RESPONSE_TOPIC),
            ("correlation", Property.CORRELATION),
        ):
            if name in said:
                items.append((identifier, said[name]))
        items += [(Property.USER, pair) for pair in _user_properties(said)]
        peer = self._publisher("MQTT 5", b"sender-5")
        self._count = getattr(self, "_count", 0) + 1
        qos = said.get("qos", 1)
        peer.send(
            mqtt.publish_5(
                said["topic"], said["body"], encoded(*items), qos=qos, packet_id=self._count, retain="retain" in said
            ),
            *([mqtt.pubrel(self._count)] if qos == 2 else []),
        )
        return {**said, "publisher": (b"mqtt", b"sender-5")}

    def _publish_amqp(self, fields):
        said = {name: value for name, value in fields.items() if name not in {"retain", "flag"}}
        if said.get("qos") == 2:
            del said["qos"]
        if any(len(name) > 255 for name, _ in said.get("user properties", ())):
            del said["user properties"]
        peer = self._publisher("AMQP", b"")
        key = said["topic"].replace(b"/", b".").decode()
        parts = amqp.publish(1, said["body"], exchange="amq.topic", key=key)
        method, body = parts[: parts.index(b"\xce") + 1], parts[-len(said["body"]) - 8 :]
        block = encode_block(said)
        head = struct.pack(">HHQ", 60, 0, len(said["body"])) + block
        peer.write(method, amqp.raw_frame(2, 1, head), body)
        return {**said, "publisher": (b"amqp", b"guest")}

    def _publish_rocketmq(self, fields):
        said = {name: value for name, value in fields.items() if name not in {"retain", "user id", "flag"}}
        if said.get("qos") in {0, 2}:
            del said["qos"]
        users = _user_properties(said)
        if len({name for name, _ in users}) < len(users):
            users = []
            del said["user properties"]
        reserved = {b"LMQ_TOPIC", b"LMQ_X", b"WAIT", b"CONTENT_TYPE"}
        properties = [(b"LMQ_TOPIC", said["topic"]), *_rocketmq_properties(said)]
        for name, value in users:
            if name in reserved or any(one in name + value for one in b"\1\2"):
                properties.append((b"LMQ_PAIR", escape(name, 0x100) + b"=" + escape(value, 0x100)))
            else:
                properties.append((name, value))
        text = b"".join(b"%b\1%b\2" % pair for pair in properties).decode()
        self.producer.give(
            send_frame(said["body"], topic="LMQ_PARENT", properties=text, e="0", g=str(said.get("born", NOW_MS)))
        )
        self.turn()
        (answer,) = self.producer.take()
        assert answer.code == 0, answer
        return {**said, "publisher": (b"rocketmq", b"")}

    def _publisher(self, door, client_id):
        found = self.__dict__.setdefault("publishers", {})
        if door not in found:
            if door == "AMQP":
                found[door] = self.client_of_amqp()
            elif door == "MQTT 5":
                found[door] = enter(self, client_id)
            else:
                found[door] = World.client(self, client_id)
        peer = found[door]
        peer.transport.sent.clear()
        return peer

    def hear(self, door):
        """Return what consumers of a protocol are told, by the message's body."""
        heard = {
            "MQTT 3.1.1": self._hear_3,
            "MQTT 5": self._hear_5,
            "AMQP": self._hear_amqp,
            "RocketMQ": self._hear_rocketmq,
        }[door]()
        return {fields["body"]: fields for fields in heard}

    def _drain(self, peer, packets):
        """Yield all that a client of MQTT gets, acknowledging it."""
        while found := packets(peer):
            yield from found
            for one in found:
                if one.qos == 1:
                    peer.send(mqtt.puback(one.packet_id))
                elif one.qos == 2:
                    peer.begin(mqtt.pubrec(one.packet_id))
                    peer.begin(mqtt.pubcomp(one.packet_id))
            self.turn()

    def _hear_3(self):
        peer = self.connect(b"old", clean=False)
        for one in self._drain(peer, lambda peer: peer.take_deliveries()):
            yield {"topic": one.topic, "body": one.body, "qos": one.qos, **({"retain": True} if one.retain else {})}

    def _hear_5(self):
        peer = self.dial().send(mqtt.connect_5(b"new", clean=False, properties=encoded((Property.SESSION_EXPIRY, 600))))
        for one in self._drain(peer, got):
            fields = {"topic": one.topic, "body": one.body, "qos": one.qos, **({"retain": True} if one.retain else {})}
            users = []
            for identifier, value in one.properties.items():
                if identifier == Property.USER:
                    users.append(value)
                    continue
                name = {
                    Property.CONTENT_TYPE: "content type",
                    Property.MESSAGE_EXPIRY: "time to live",
                    Property.PAYLOAD_FORMAT: "payload format",
                    Property.RESPONSE_TOPIC: "response topic",
                    Property.CORRELATION: "correlation",
                }[identifier]
                assert name not in fields
                fields[name] = value
            if "time to live" in fields:
                fields["time to live"] += AGE_MS // 1000
            yield fields | _from_users(users)

    def _hear_amqp(self):
        self.reader.send(Basic.Consume(queue="all", consumer_tag="c", no_ack=True))
        data = bytes(self.reader.transport.sent)
        self.reader.transport.sent.clear()
        frames = list(_frames(data))
        while frames:
            kind, payload = frames.pop(0)
            if kind != 1 or payload[:4] != b"\0\x3c\0\x3c":
                continue
            key = _routing_key(payload)
            _, head = frames.pop(0)
            size = struct.unpack_from(">Q", head, 4)[0]
            body = b""
            while len(body) < size:
                body += frames.pop(0)[1]
            yield {"topic": key.replace(b".", b"/"), "body": body} | decode_block(head[12:])

    def _hear_rocketmq(self):
        offset = 0
        while records := records_of(self.producer.pull("LMQ_PARENT", offset)):
            for record in records:
                yield rocketmq_fields(record)
            offset = records[-1].queue_offset + 1


def _only(fields, *names):
    return {name: value for name, value in fields.items() if name in names}


def _user_properties(said):
    """Return the user properties of a protocol whose values are texts."""
    users = list(said.get("user properties", ()))
    if "typed headers" in said:
        users += [(name, text) for name, _, text in said["typed headers"]]
        letters = b"".join(_letter(value) + name + b"=" for name, value, _ in said["typed headers"])
        users.append((b"x-amqp-types", letters))
    for name, (user_name, _) in AMQP_ONLY.items():
        if name in said:
            users.append((user_name, said[name] if isinstance(said[name], bytes) else b"%d" % said[name]))
    if "keys and tags" in said:
        users += list(zip((b"KEYS", b"TAGS"), said["keys and tags"], strict=True))
    return users


def _from_users(users):
    """Return the fields that user properties of text stand for."""
    fields = {}
    types = dict(users).get(b"x-amqp-types", b"")
    letters = {piece[1:]: piece[:1] for piece in types.split(b"=")[:-1]}
    typed = [(name, _typed(letters[name], value), value) for name, value in users if name in letters]
    if typed:
        fields["typed headers"] = typed
    by_name = {user_name: name for name, (user_name, _) in AMQP_ONLY.items()}
    plain = []
    for name, value in users:
        if name in by_name:
            fields[by_name[name]] = int(value) if by_name[name] in {"priority", "timestamp"} else value
        elif name not in letters and name not in {b"x-amqp-types", b"KEYS", b"TAGS"}:
            plain.append((name, value))
    found = dict(users)
    if b"KEYS" in found and b"TAGS" in found:
        fields["keys and tags"] = (found[b"KEYS"], found[b"TAGS"])
    return fields | {"user properties": plain}


def _letter(value):
    return {bool: b"t", int: b"l", float: b"d", dict: b"F", list: b"A", bytes: b"X", type(None): b"V"}[type(value)]


def _typed(letter, text):
    if letter in b"lAFd":
        return json.loads(text)
    return {b"t": text == b"true", b"V": None}.get(letter, text)


def _rocketmq_properties(said):
    """Return the properties of a record that are the envelope's fields."""
    properties = []
    if "response topic" in said:
        properties.append((b"LMQ_RESPONSE_TOPIC", said["response topic"]))
    if "content type" in said:
        odd = b"\1" in said["content type"]
        value = escape(said["content type"], 0x80) if odd else said["content type"]
        properties.append((b"LMQ_CONTENT_TYPE" if odd else b"CONTENT_TYPE", value))
    if "time to live" in said:
        properties.append((b"LMQ_TTL_MS", b"%d" % (said["time to live"] * 1000)))
    if "payload format" in said:
        properties.append((b"LMQ_FORMAT", b"%d" % said["payload format"]))
    if "correlation" in said:
        properties.append((b"LMQ_CORRELATION", escape(said["correlation"], 0x80)))
    return properties


def escape(value, limit):
    """Escape as docs/protocols/crossing.md says."""
    return b"".join(
        b"%%%02X" % one if one < 0x20 or one >= limit or one in b"%=\x7f" else bytes((one,)) for one in value
    )


def unescape(value):
    """Return what was escaped."""
    first, *others = value.split(b"%")
    return first + b"".join(bytes((int(one[:2], 16),)) + one[2:] for one in others)


OF_PROPERTIES = {
    b"CONTENT_TYPE": ("content type", bytes),
    b"LMQ_CONTENT_TYPE": ("content type", unescape),
    b"LMQ_RESPONSE_TOPIC": ("response topic", bytes),
    b"LMQ_CORRELATION": ("correlation", unescape),
    b"LMQ_TTL_MS": ("time to live", lambda value: int(value) // 1000),
    b"LMQ_FORMAT": ("payload format", int),
}


def rocketmq_fields(record):
    """Return what a consumer of RocketMQ reads from a record and its map of properties."""
    found = dict(record.properties)
    fields = {"topic": found.pop(b"LMQ_TOPIC"), "body": record.body, "qos": record.flag & 3, "born": record.born_ms}
    if record.flag & 4:
        fields["retain"] = True
    protocol = found.pop(b"LMQ_PROTOCOL", b"")
    who = found.pop(b"LMQ_CLIENT", b"")
    user = found.pop(b"LMQ_USER", b"")
    fields["publisher"] = (protocol, who if protocol == b"mqtt" else user)
    for key, (name, read) in OF_PROPERTIES.items():
        if key in found:
            fields[name] = read(found.pop(key))
    users = []
    for name, value in found.items():
        if name == b"LMQ_PAIR":
            users.append(tuple(unescape(part) for part in value.split(b"=")))
        elif name not in {b"LMQ_AMQP", b"UNIQ_KEY", b"INNER_MULTI_DISPATCH", b"INNER_MULTI_QUEUE_OFFSET", b"__CRC32#"}:
            users.append((name, value))
    return fields | _from_users(users)


def _frames(data):
    pos = 0
    while pos < len(data):
        size = int.from_bytes(data[pos + 3 : pos + 7], "big")
        yield data[pos], data[pos + 7 : pos + 7 + size]
        pos += 8 + size


def _routing_key(payload):
    pos = 5 + payload[4] + 9  # consumer tag, delivery tag, redelivered
    pos += 1 + payload[pos]  # exchange
    return payload[pos + 1 : pos + 1 + payload[pos]]
