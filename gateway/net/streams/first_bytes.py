"""What protocol the first bytes of a connection are of, for the line that says why it was refused."""

from __future__ import annotations

HANDSHAKE_BYTE = 0x16  # a TLS record that begins a handshake; no first byte of MQTT, AMQP, RocketMQ or HTTP
STARTS = (
    (b"AMQP\x00\x01\x00\x00", "AMQP 1.0"),
    (b"AMQP\x02\x01\x00\x00", "AMQP 1.0"),  # that begins with TLS
    (b"AMQP\x03\x01\x00\x00", "AMQP 1.0"),  # that begins with SASL, as most of its clients do
    (b"AMQP", "AMQP"),
    (b"PROXY ", "a PROXY header"),
    (b"\r\n\r\n\x00\r\nQUIT\n", "a PROXY header"),
    (b"PRI * HTTP/2", "HTTP/2"),
    (b"SSH-", "SSH"),
    (b"CONNECT {", "NATS"),
)
VERBS = (b"GET ", b"POST ", b"PUT ", b"HEAD ", b"DELETE ", b"OPTIONS ", b"PATCH ", b"CONNECT ", b"TRACE ")
CONNECT_BYTE = 0x10  # of MQTT
NAMES = (b"\x00\x04MQTT", b"\x00\x06MQIsdp")
LENGTH_BYTES_MAX = 4  # of what follows MQTT's first byte
FRAME_HEAD = 8  # of RocketMQ: two lengths
FRAME_BYTES_MAX = 64 * 1024 * 1024  # chosen, four times what official brokers take: other protocols say more
RECORD_MAJOR = 3  # of the versions of TLS, and of SSL 3


def name_protocol(data: bytes) -> str:
    """Return what bytes at the beginning of a connection are of; empty where that is not known."""
    if data[:1] == bytes([HANDSHAKE_BYTE]) and data[1:2] in {b"", bytes([RECORD_MAJOR])}:
        return "TLS"
    for start, name in STARTS:
        if data.startswith(start):
            return name
    if data.startswith(VERBS):
        return "HTTP"
    if data[:1] == bytes([CONNECT_BYTE]) and any(name in data[1 : 2 + LENGTH_BYTES_MAX + len(name)] for name in NAMES):
        return "MQTT"
    return "RocketMQ" if _is_frame(data) else ""


def _is_frame(data: bytes) -> bool:
    """Return whether this begins a frame of RocketMQ: its size, and then its head's, in JSON or as they encode it."""
    if len(data) < FRAME_HEAD + 1:
        return False
    size, kind, head = int.from_bytes(data[:4]), data[4], int.from_bytes(data[5:8])
    return (
        FRAME_HEAD < size <= FRAME_BYTES_MAX and head <= size - 4 and (kind == 1 or (kind == 0 and data[8:9] == b"{"))
    )


def told_of(data: bytes, own: str = "") -> str:
    """Return words that say what came, to be put behind a reason; empty where that is not known, or is `own`."""
    name = name_protocol(data)
    return f", but {name}" if name and name != own else ""
