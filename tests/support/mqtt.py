"""MQTT 3.1.1 as a client writes it, as an attacker writes it, and a parser of what the gateway answers."""

from __future__ import annotations

from dataclasses import dataclass


def text(value: bytes) -> bytes:
    return len(value).to_bytes(2, "big") + value


def length(size: int) -> bytes:
    out = bytearray()
    while size > 0x7F:
        out.append(size & 0x7F | 0x80)
        size >>= 7
    out.append(size)
    return bytes(out)


def packet(first: int, body: bytes = b"") -> bytes:
    return bytes((first,)) + length(len(body)) + body


def connect(
    client_id: bytes = b"c",
    *,
    clean: bool = True,
    keep_alive_s: int = 60,
    will: tuple[bytes, bytes, int, bool] | None = None,
    user: bytes | None = None,
    password: bytes | None = None,
    protocol: bytes = b"MQTT",
    level: int = 4,
) -> bytes:
    flags = 0x02 if clean else 0
    payload = text(client_id)
    if will is not None:
        topic, body, qos, retain = will
        flags |= 0x04 | qos << 3 | (0x20 if retain else 0)
        payload += text(topic) + text(body)
    if user is not None:
        flags |= 0x80
        payload += text(user)
    if password is not None:
        flags |= 0x40
        payload += text(password)
    return packet(0x10, text(protocol) + bytes((level, flags)) + keep_alive_s.to_bytes(2, "big") + payload)


def connect_5(
    client_id: bytes = b"c",
    *,
    clean: bool = True,
    keep_alive_s: int = 60,
    properties: bytes = b"\0",
    will: tuple[bytes, bytes, int, bool, bytes] | None = None,
    user: bytes | None = None,
    password: bytes | None = None,
) -> bytes:
    """Properties come encoded, with their length; the last of a will's are its own."""
    flags = 0x02 if clean else 0
    payload = text(client_id)
    if will is not None:
        topic, body, qos, retain, will_properties = will
        flags |= 0x04 | qos << 3 | (0x20 if retain else 0)
        payload += will_properties + text(topic) + text(body)
    if user is not None:
        flags |= 0x80
        payload += text(user)
    if password is not None:
        flags |= 0x40
        payload += text(password)
    return packet(0x10, text(b"MQTT") + bytes((5, flags)) + keep_alive_s.to_bytes(2, "big") + properties + payload)


def publish_5(
    topic: bytes,
    body: bytes,
    properties: bytes = b"\0",
    *,
    qos: int = 0,
    packet_id: int = 0,
    retain: bool = False,
    dup: bool = False,
) -> bytes:
    first = 0x30 | (8 if dup else 0) | qos << 1 | (1 if retain else 0)
    return packet(first, text(topic) + (packet_id.to_bytes(2, "big") if qos else b"") + properties + body)


def subscribe_5(packet_id: int, *filters: tuple[bytes, int], properties: bytes = b"\0") -> bytes:
    wanted = b"".join(text(f) + bytes((options,)) for f, options in filters)
    return packet(0x82, packet_id.to_bytes(2, "big") + properties + wanted)


def unsubscribe_5(packet_id: int, *filters: bytes) -> bytes:
    return packet(0xA2, packet_id.to_bytes(2, "big") + b"\0" + b"".join(text(f) for f in filters))


def suback_5(packet_id: int, *codes: int, reason: bytes = b"") -> bytes:
    properties = b"\x1f" + text(reason) if reason else b""
    return packet(0x90, packet_id.to_bytes(2, "big") + length(len(properties)) + properties + bytes(codes))


def disconnect_5(code: int = 0, properties: bytes = b"\0") -> bytes:
    return packet(0xE0, bytes((code,)) + properties)


def publish(
    topic: bytes, body: bytes, *, qos: int = 0, packet_id: int = 0, retain: bool = False, dup: bool = False
) -> bytes:
    first = 0x30 | (8 if dup else 0) | qos << 1 | (1 if retain else 0)
    return packet(first, text(topic) + (packet_id.to_bytes(2, "big") if qos else b"") + body)


def puback(packet_id: int) -> bytes:
    return b"\x40\x02" + packet_id.to_bytes(2, "big")


def pubrec(packet_id: int) -> bytes:
    return b"\x50\x02" + packet_id.to_bytes(2, "big")


def refusal_5(ack: bytes, code: int, reason: bytes = b"") -> bytes:
    """Return a PUBACK or PUBREC that refuses its message."""
    properties = b"\x1f" + text(reason) if reason else b""
    return packet(ack[0], ack[2:] + bytes((code,)) + (length(len(properties)) + properties if reason else b""))


def pubrel(packet_id: int) -> bytes:
    return b"\x62\x02" + packet_id.to_bytes(2, "big")


def pubcomp(packet_id: int) -> bytes:
    return b"\x70\x02" + packet_id.to_bytes(2, "big")


def subscribe(packet_id: int, *filters: tuple[bytes, int]) -> bytes:
    return packet(0x82, packet_id.to_bytes(2, "big") + b"".join(text(f) + bytes((qos,)) for f, qos in filters))


def unsubscribe(packet_id: int, *filters: bytes) -> bytes:
    return packet(0xA2, packet_id.to_bytes(2, "big") + b"".join(text(f) for f in filters))


PINGREQ = b"\xc0\x00"
PINGRESP = b"\xd0\x00"
DISCONNECT = b"\xe0\x00"


def connack(code: int = 0, *, session_present: bool = False) -> bytes:
    return bytes((0x20, 2, session_present, code))


def suback(packet_id: int, *codes: int) -> bytes:
    return packet(0x90, packet_id.to_bytes(2, "big") + bytes(codes))


def unsuback(packet_id: int) -> bytes:
    return b"\xb0\x02" + packet_id.to_bytes(2, "big")


def unsuback_5(packet_id: int, *codes: int) -> bytes:
    return packet(0xB0, packet_id.to_bytes(2, "big") + b"\0" + bytes(codes))


@dataclass(frozen=True)
class Delivery:
    """A PUBLISH that the gateway sent."""

    topic: bytes
    body: bytes
    qos: int
    packet_id: int
    retain: bool
    dup: bool


def cut(data: bytes) -> list[bytes]:
    """Return the packets in `data`, which must end with a whole one."""
    packets = []
    pos = 0
    while pos < len(data):
        size = shift = 0
        at = pos + 1
        while True:
            size |= (data[at] & 0x7F) << shift
            shift += 7
            at += 1
            if data[at - 1] < 0x80:
                break
        assert at + size <= len(data), "cut off"
        packets.append(data[pos : at + size])
        pos = at + size
    return packets


def parse_publish(data: bytes) -> Delivery:
    """Return what one PUBLISH says."""
    assert data[0] >> 4 == 3
    pos = 1
    while data[pos] >= 0x80:
        pos += 1
    pos += 1
    qos = (data[0] >> 1) & 3
    size = int.from_bytes(data[pos : pos + 2], "big")
    topic = data[pos + 2 : pos + 2 + size]
    pos += 2 + size
    packet_id = int.from_bytes(data[pos : pos + 2], "big") if qos else 0
    return Delivery(topic, data[pos + 2 * bool(qos) :], qos, packet_id, bool(data[0] & 1), bool(data[0] & 8))


def deliveries(data: bytes) -> list[Delivery]:
    """Return the PUBLISH packets in `data`, other packets left out."""
    return [parse_publish(one) for one in cut(data) if one[0] >> 4 == 3]


def _connect_body(flags: int, payload: bytes, *, protocol: bytes = b"MQTT", level: int = 4) -> bytes:
    return packet(0x10, text(protocol) + bytes((level, flags)) + b"\0\x3c" + payload)


_SURROGATE = b"\xed\xa0\x80"
_OVERLONG = b"\xc0\xaf"

# (name, bytes): a first packet that ends its connection.
MALFORMED_FIRST: list[tuple[str, bytes]] = [
    ("MQTT-3.1.0-1 first packet is PUBLISH", publish(b"a", b"x")),
    ("MQTT-3.1.0-1 first packet is SUBSCRIBE", subscribe(1, (b"a", 0))),
    ("MQTT-3.1.0-1 first packet is PINGREQ", PINGREQ),
    ("MQTT-3.1.0-1 first packet is DISCONNECT", DISCONNECT),
    ("MQTT-3.1.0-1 first packet is PUBACK", puback(1)),
    ("MQTT-2.2.2-2 flags of CONNECT", b"\x11" + connect()[1:]),
    ("MQTT-3.1.2-1 another protocol name", _connect_body(2, text(b"c"), protocol=b"AMQP")),
    ("MQTT-3.1.2-1 protocol name in lower case", _connect_body(2, text(b"c"), protocol=b"mqtt")),
    ("MQTT-3.1.2-1 empty protocol name", _connect_body(2, text(b"c"), protocol=b"")),
    ("MQTT-3.1.2-3 reserved flag", _connect_body(3, text(b"c"))),
    ("MQTT-3.1.2-13 will QoS 1 without a will", _connect_body(0x0A, text(b"c"))),
    ("MQTT-3.1.2-13 will QoS 2 without a will", _connect_body(0x12, text(b"c"))),
    ("MQTT-3.1.2-14 will QoS 3", _connect_body(0x1E, text(b"c") + text(b"w") + text(b"x"))),
    ("MQTT-3.1.2-15 will retain without a will", _connect_body(0x22, text(b"c"))),
    ("MQTT-3.1.2-22 password without user", _connect_body(0x42, text(b"c") + text(b"p"))),
    ("MQTT-3.1.2-9 will flag without topic and message", _connect_body(0x06, text(b"c"))),
    ("MQTT-3.1.2-9 will flag without message", _connect_body(0x06, text(b"c") + text(b"w"))),
    ("MQTT-3.1.2-19 user flag without user", _connect_body(0x82, text(b"c"))),
    ("MQTT-3.1.2-21 password flag without password", _connect_body(0xC2, text(b"c") + text(b"u"))),
    ("MQTT-3.1.2-18 user without user flag", _connect_body(0x02, text(b"c") + text(b"u"))),
    ("MQTT-3.1.3-1 byte after the payload", _connect_body(0x02, text(b"c") + b"\0")),
    ("MQTT-3.1.3-3 no client identifier", _connect_body(0x02, b"")),
    ("MQTT-3.1.3-3 half the length of a client identifier", _connect_body(0x02, b"\0")),
    ("MQTT-3.1.3-3 client identifier past the end", _connect_body(0x02, b"\0\x05abc")),
    ("MQTT-3.1.3-4 client identifier is no UTF-8", _connect_body(0x02, text(b"\xff\xfe"))),
    ("MQTT-1.5.3-1 client identifier with a surrogate", _connect_body(0x02, text(_SURROGATE))),
    ("MQTT-1.5.3-2 client identifier with U+0000", _connect_body(0x02, text(b"a\0b"))),
    ("MQTT-3.1.3-10 will topic is no UTF-8", connect(will=(b"\xff", b"x", 0, False))),
    ("MQTT-1.5.3-2 will topic with U+0000", connect(will=(b"a\0b", b"x", 0, False))),
    ("MQTT-4.7.3-1 empty will topic", connect(will=(b"", b"x", 0, False))),
    ("MQTT-4.7.1-1 will topic with a wildcard", connect(will=(b"a/#", b"x", 0, False))),
    ("MQTT-3.1.3-11 user is no UTF-8", connect(user=b"\xc3\x28")),
    ("MQTT-3.1.3-11 user with overlong UTF-8", connect(user=_OVERLONG)),
    ("CONNECT without a body", b"\x10\x00"),
    ("CONNECT ends in its protocol name", packet(0x10, b"\0\x04MQ")),
    ("CONNECT ends before its level", packet(0x10, text(b"MQTT"))),
    ("CONNECT ends before its flags", packet(0x10, text(b"MQTT") + b"\x04")),
    ("CONNECT ends in its keep-alive", packet(0x10, text(b"MQTT") + b"\x04\x02\0")),
    ("CONNECT of five length bytes", b"\x10\xff\xff\xff\xff\x01"),
    ("CONNECT larger than any CONNECT", b"\x10\xff\xff\xff\x7f"),
    ("packet type 0", b"\x00\x00"),
    ("packet type 15", b"\xf0\x00"),
]

# (name, bytes): a packet that ends a connection that is open.
MALFORMED_LATER: list[tuple[str, bytes]] = [
    ("MQTT-3.1.0-2 a second CONNECT", connect()),
    ("MQTT-2.2.2-2 flags of PUBACK", b"\x41\x02\x00\x01"),
    ("MQTT-3.6.1-1 flags of PUBREL", b"\x60\x02\x00\x01"),
    ("MQTT-3.8.1-1 flags 0 of SUBSCRIBE", b"\x80" + subscribe(1, (b"a", 0))[1:]),
    ("MQTT-3.8.1-1 flags 10 of SUBSCRIBE", b"\x8a" + subscribe(1, (b"a", 0))[1:]),
    ("MQTT-3.10.1-1 flags of UNSUBSCRIBE", b"\xa0" + unsubscribe(1, b"a")[1:]),
    ("MQTT-2.2.2-2 flags of PINGREQ", b"\xc1\x00"),
    ("MQTT-3.14.1-1 flags of DISCONNECT", b"\xe8\x00"),
    ("packet type 0", b"\x00\x00"),
    ("packet type 15", b"\xf0\x00"),
    ("remaining length of five bytes", b"\x30\x80\x80\x80\x80\x01"),
    ("MQTT-3.3.1-4 PUBLISH with QoS 3", packet(0x36, text(b"a") + b"\0\x01x")),
    ("MQTT-3.3.1-2 PUBLISH sent again at QoS 0", publish(b"a", b"x", dup=True)),
    ("MQTT-3.3.2-1 PUBLISH without a topic", b"\x30\x00"),
    ("MQTT-3.3.2-1 PUBLISH with half a topic length", b"\x30\x01\x00"),
    ("MQTT-3.3.2-1 topic past the end", packet(0x30, b"\0\x05abc")),
    ("MQTT-4.7.3-1 PUBLISH with an empty topic", publish(b"", b"x")),
    ("MQTT-3.3.2-1 topic is no UTF-8", publish(b"a/\xff", b"x")),
    ("MQTT-1.5.3-1 topic with a surrogate", publish(b"a" + _SURROGATE, b"x")),
    ("MQTT-1.5.3-1 topic with overlong UTF-8", publish(_OVERLONG, b"x")),
    ("MQTT-1.5.3-2 topic with U+0000", publish(b"a\0b", b"x")),
    ("MQTT-1.5.3-2 topic with U+0001", publish(b"a\x01b", b"x")),
    ("MQTT-3.3.2-2 topic with #", publish(b"a/#", b"x")),
    ("MQTT-3.3.2-2 topic with +", publish(b"a/+/b", b"x")),
    ("MQTT-2.3.1-1 PUBLISH at QoS 1 with packet identifier 0", publish(b"a", b"x", qos=1)),
    ("PUBLISH at QoS 1 without a packet identifier", packet(0x32, text(b"a"))),
    ("PUBLISH at QoS 1 with half a packet identifier", packet(0x32, text(b"a") + b"\0")),
    ("MQTT-2.3.1-1 PUBLISH at QoS 2 with packet identifier 0", publish(b"a", b"x", qos=2)),
    ("topic of 201 levels", publish(b"/" * 200, b"x")),
    ("PUBACK with packet identifier 0", puback(0)),
    ("PUBACK without a packet identifier", b"\x40\x00"),
    ("PUBACK with half a packet identifier", b"\x40\x01\x01"),
    ("PUBACK with three bytes", b"\x40\x03\x00\x01\x00"),
    ("PUBREC with packet identifier 0", b"\x50\x02\x00\x00"),
    ("PUBREL with half a packet identifier", b"\x62\x01\x01"),
    ("PUBREL with a reason, before MQTT 5", b"\x62\x03\x00\x01\x00"),
    ("PUBCOMP without a packet identifier", b"\x70\x00"),
    ("MQTT-2.3.1-1 SUBSCRIBE with packet identifier 0", subscribe(0, (b"a", 0))),
    ("MQTT-3.8.3-3 SUBSCRIBE without a filter", packet(0x82, b"\0\x01")),
    ("SUBSCRIBE without a packet identifier", b"\x82\x00"),
    ("SUBSCRIBE with half a packet identifier", b"\x82\x01\x01"),
    ("MQTT-3.8.3-4 requested QoS 3", subscribe(1, (b"a", 3))),
    ("MQTT-3.8.3-4 reserved bits beside a requested QoS", subscribe(1, (b"a", 0x81))),
    ("MQTT-3.8.3-4 requested QoS missing", packet(0x82, b"\0\x01" + text(b"a"))),
    ("MQTT-3.8.3-4 bad QoS of a second filter", subscribe(1, (b"a", 0), (b"b", 4))),
    ("MQTT-3.8.3-1 filter is no UTF-8", subscribe(1, (b"\xff", 0))),
    ("MQTT-1.5.3-2 filter with U+0000", subscribe(1, (b"a\0", 0))),
    ("MQTT-4.7.3-1 empty filter", subscribe(1, (b"", 0))),
    ("filter past the end", packet(0x82, b"\0\x01\0\x05abc")),
    ("MQTT-4.7.1-2 # not last", subscribe(1, (b"a/#/b", 0))),
    ("MQTT-4.7.1-2 # with other characters", subscribe(1, (b"a/b#", 0))),
    ("MQTT-4.7.1-2 two #", subscribe(1, (b"##", 0))),
    ("MQTT-4.7.1-3 + with other characters", subscribe(1, (b"a/b+/c", 0))),
    ("MQTT-4.7.1-3 two + in a level", subscribe(1, (b"++", 0))),
    ("MQTT-3.10.3-2 UNSUBSCRIBE without a filter", packet(0xA2, b"\0\x01")),
    ("MQTT-2.3.1-1 UNSUBSCRIBE with packet identifier 0", unsubscribe(0, b"a")),
    ("MQTT-3.10.3-1 UNSUBSCRIBE of no UTF-8", unsubscribe(1, b"\xff")),
    ("UNSUBSCRIBE with half a filter length", packet(0xA2, b"\0\x01\0")),
    ("UNSUBSCRIBE without a packet identifier", b"\xa2\x00"),
    ("PINGREQ with a body", b"\xc0\x01\x00"),
    ("DISCONNECT with a body", b"\xe0\x01\x00"),
    ("CONNACK from a client", b"\x20\x02\x00\x00"),
    ("SUBACK from a client", suback(1, 0)),
    ("UNSUBACK from a client", unsuback(1)),
    ("PINGRESP from a client", PINGRESP),
    ("packet larger than the settings allow", b"\x30\xff\xff\xff\x7f"),
]
