"""What a stored message carries beside its body, as clients of its door call it, in order and with equal names too."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from struct import error
from typing import NamedTuple

from pamqp.commands import Basic
from pamqp.exceptions import PAMQPException

from core.envelope import (
    FIELD_CONTENT_TYPE,
    FIELD_CORRELATION,
    FIELD_ESCAPED_CONTENT_TYPE,
    FIELD_FORMAT,
    FIELD_OTHER,
    FIELD_PAIR,
    FIELD_RESPONSE_TOPIC,
    field_code,
    write_unescaped,
)
from core.properties import AMQP, KEYS, TAGS, UNIQ_KEY
from gateway.admin.management.properties import tell_properties
from gateway.amqp.errors import AmqpError
from gateway.amqp.property_block import BlockReader
from gateway.inventory import text_of

_NAMES = {
    FIELD_CONTENT_TYPE: "content type",
    FIELD_ESCAPED_CONTENT_TYPE: "content type",
    FIELD_RESPONSE_TOPIC: "response topic",
    FIELD_CORRELATION: "correlation data",
    FIELD_FORMAT: "payload format",
}
_ESCAPED = frozenset({FIELD_ESCAPED_CONTENT_TYPE, FIELD_CORRELATION})
_FORMATS = {b"0": "bytes", b"1": "UTF-8"}
_OF_ROCKETMQ = frozenset({TAGS, KEYS, UNIQ_KEY, b"RETRY_TOPIC"})
_FLAG_BYTES = 2  # AMQP's property flags, a short; all properties that there are fit into one
_CONTROL = re.compile(r"[^\t\n\r\x20-\U0010ffff]")  # in what is no text that people wrote


class Field(NamedTuple):
    """One of them. `kind` is `property`, `header` of AMQP or `user property`, of MQTT 5 and RocketMQ."""

    kind: str
    name: str
    value: str


def tell_fields(encoded: bytes) -> list[Field]:
    """Return what a record's encoded properties carry for clients; those of AMQP as the publisher sent them.

    A value that is no text is told as `hex` and its digits, a table of AMQP as JSON. How long a message lives is not
    among them: the record says when it ends.
    """
    pairs = list(_split(encoded))
    block = next((value for name, value in pairs if name == AMQP), None)
    if block is not None and (sent := _read_block(block)) is not None:
        return sent
    return [field for name, value in pairs if (field := _find_field(name, value)) is not None]


def _split(encoded: bytes) -> Iterator[tuple[bytes, bytes]]:
    for piece in encoded.split(b"\x02"):
        name, separator, value = piece.partition(b"\x01")
        if separator:
            yield name, value


def _read_block(encoded: bytes) -> list[Field] | None:
    """Return the fields of AMQP's property block, None where it cannot be read."""
    properties = Basic.Properties()
    try:
        block = base64.b64decode(encoded, validate=True)
        BlockReader().read(block, 0, len(block))
        properties.unmarshal(int.from_bytes(block[:_FLAG_BYTES], "big"), block[_FLAG_BYTES:])
        told = tell_properties(properties)
    except (AmqpError, PAMQPException, error, ValueError, OverflowError):  # such as a time after the year 9999
        return None
    headers = told.pop("headers", {})
    assert isinstance(headers, dict)
    return [
        *(Field("property", name, _write(value)) for name, value in told.items()),
        *(Field("header", name, _write(value)) for name, value in headers.items()),
    ]


def _write(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _find_field(name: bytes, value: bytes) -> Field | None:
    """Return a field of MQTT or RocketMQ, None for what is the log's own."""
    code = field_code(name, 0, len(name))
    if name in _OF_ROCKETMQ:
        return Field("property", text_of(name), _read_text(value))
    if code == FIELD_PAIR:
        left, _, right = value.partition(b"=")
        return Field("user property", _read_text(_plain(left)), _read_text(_plain(right)))
    if code == FIELD_FORMAT:
        return Field("property", _NAMES[code], _FORMATS.get(value, text_of(value)))
    if code in _NAMES:
        return Field("property", _NAMES[code], _read_text(_plain(value) if code in _ESCAPED else value))
    return Field("user property", text_of(name), _read_text(value)) if code == FIELD_OTHER else None


def _plain(escaped: bytes) -> bytes:
    out = bytearray(len(escaped))
    end = write_unescaped(escaped, 0, len(escaped), out, 0)
    return bytes(out[:end]) if end >= 0 else escaped


def _read_text(value: bytes) -> str:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return f"hex {value.hex(' ')}"
    return f"hex {value.hex(' ')}" if _CONTROL.search(text) else text
