"""Frames and stored messages for tests of the AMQP door, made by pamqp or by hand, never by the code under test."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from pamqp import base, body, commands, frame, header

from core.message import StoredBatch
from core.properties import encode_properties

PROTOCOL_HEADER = b"AMQP\x00\x00\x09\x01"


def method(channel: int, value: base.Frame) -> bytes:
    """Return the frame of one method."""
    return frame.marshal(value, channel)


def raw_frame(kind: int, channel: int, payload: bytes, end: int = 0xCE) -> bytes:
    """Return a frame of any kind, right or wrong."""
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + bytes((end,))


def publish(
    channel: int,
    text: bytes,
    *,
    exchange: str = "",
    key: str = "q",
    mandatory: bool = False,
    immediate: bool = False,
    piece: int = 131_064,
    **properties: object,
) -> bytes:
    """Return the frames of one publish, its body cut into pieces of `piece` bytes."""
    method_frame = commands.Basic.Publish(exchange=exchange, routing_key=key, mandatory=mandatory, immediate=immediate)
    block = commands.Basic.Properties(**properties)  # type: ignore[arg-type]
    parts = [
        frame.marshal(method_frame, channel),
        frame.marshal(header.ContentHeader(0, len(text), block), channel),
    ]
    parts += [
        frame.marshal(body.ContentBody(text[start : start + piece]), channel) for start in range(0, len(text), piece)
    ]
    return b"".join(parts)


def block(**properties: object) -> bytes:
    """Return a property block as it stands in a content header."""
    return commands.Basic.Properties(**properties).marshal()  # type: ignore[arg-type]


def stored(
    messages: Sequence[tuple[dict[bytes, bytes], bytes]],
    *,
    flag: int = 0,
    born_ms: int = 0,
    attempts: Sequence[int] = (),
    first_offset: int = 0,
) -> StoredBatch:
    """Return a batch as a read gives it, from pairs of properties and body."""
    batch = StoredBatch(max(len(messages), 1))
    buf = bytearray(b"\xff")
    for i, (properties, text) in enumerate(messages):
        encoded = encode_properties(properties)
        topic = properties.get(b"LMQ_TOPIC", b"")
        batch.properties_start[i] = len(buf)
        batch.topic_start[i] = len(buf) + (encoded.index(b"LMQ_TOPIC\x01") + 10 if topic else 0)
        batch.topic_end[i] = batch.topic_start[i] + len(topic)
        buf += encoded
        batch.properties_end[i] = len(buf)
        batch.body_start[i] = len(buf)
        buf += text
        batch.body_end[i] = len(buf)
        batch.flag[i] = flag
        batch.born_ms[i] = born_ms
        batch.attempt[i] = attempts[i] if attempts else 1
        batch.queue_offset[i] = first_offset + i
    batch.count = len(messages)
    batch.buf = bytes(buf)
    return batch


def decode_frames(data: bytes) -> list[tuple[int, object]]:
    """Return channel and pamqp frame of each frame in `data`."""
    found: list[tuple[int, object]] = []
    while data:
        size, channel, value = frame.unmarshal(bytes(data))
        found.append((channel, value))
        data = data[size:]
    return found
