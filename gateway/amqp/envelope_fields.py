"""The envelope's fields of a message that came by another door, as an AMQP consumer is told them.

Source: docs/protocols/crossing.md.
"""

from __future__ import annotations

from core import octets
from core.envelope import (
    FIELD_CORRELATION,
    FIELD_ESCAPED_CONTENT_TYPE,
    FIELD_FORMAT,
    FIELD_PAIR,
    FIELD_RESPONSE_TOPIC,
    FIELD_TTL_MS,
    field_code,
    write_unescaped,
)

SHORT_BYTES_MAX = 255


class EnvelopeFields:
    """What one record's properties say beside users' own; None where they do not."""

    def __init__(self, encoded: bytes) -> None:
        self.content_type: bytes | None = None  # where it is escaped in the record
        self.correlation_id: bytes | None = None
        self.expiration: bytes | None = None  # milliseconds, in digits
        self.headers = b""  # entries of a field table
        for piece in encoded.split(b"\x02"):
            name, separator, value = piece.partition(b"\x01")
            if separator:
                self._take(field_code(name, 0, len(name)), value)

    def _take(self, code: int, value: bytes) -> None:
        if code == FIELD_TTL_MS and value.isdigit() and len(value) <= SHORT_BYTES_MAX:
            self.expiration = value
        elif code == FIELD_FORMAT and value in {b"0", b"1"}:
            self.headers += b"\x15x-mqtt-payload-formatb" + bytes((value == b"1",))
        elif code == FIELD_RESPONSE_TOPIC:
            self.headers += b"\x14x-opt-reply-to-topic" + _long_text(value)
        elif code == FIELD_ESCAPED_CONTENT_TYPE:
            content_type = _unescaped(value)
            if content_type is not None and len(content_type) <= SHORT_BYTES_MAX:
                self.content_type = content_type
        elif code == FIELD_CORRELATION:
            self._take_correlation(_unescaped(value))
        elif code == FIELD_PAIR:
            name, _, rest = value.partition(b"=")
            key, text = _unescaped(name), _unescaped(rest)
            if key is not None and text is not None and len(key) <= SHORT_BYTES_MAX:
                self.headers += bytes((len(key),)) + key + _long_text(text)

    def _take_correlation(self, data: bytes | None) -> None:
        if data is None:
            return
        if len(data) <= SHORT_BYTES_MAX and _is_text(data):
            self.correlation_id = data
        else:
            self.headers += b"\x10x-correlation-idx" + len(data).to_bytes(4, "big") + data


def _long_text(text: bytes) -> bytes:
    return b"S" + len(text).to_bytes(4, "big") + text


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _unescaped(value: bytes) -> bytes | None:
    out = bytearray(len(value) + 1)
    end = write_unescaped(value, 0, len(value), out, 0)
    return None if end < 0 else octets.read_bytes(out, 0, end)
