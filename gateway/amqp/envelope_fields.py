"""The envelope's fields of a message that came by another door, as an AMQP consumer is told them.

Source: docs/protocols/crossing.md.
"""

from __future__ import annotations

from core import octets
from core.envelope import (
    FIELD_CORRELATION,
    FIELD_ESCAPED_CONTENT_TYPE,
    FIELD_FORMAT,
    FIELD_OTHER,
    FIELD_RESPONSE_TOPIC,
    FIELD_TTL_MS,
    field_code,
    write_unescaped,
)
from gateway.amqp.field_map import (
    CONTENT_ENCODING,
    CORRELATION_HEADER,
    FORMAT_HEADER,
    NUMBER_BY_NAME,
    PRIORITY,
    REPLY_TO,
    RESPONSE_TOPIC_HEADER,
    TIMESTAMP,
    TOLD_PREFIX,
    TYPES_NAME,
)
from gateway.amqp.value_texts import value_of

SHORT_BYTES_MAX = 255  # a short string has one byte for its length
_CORRELATION_ID = 5
_EXPIRATION = 7
_OCTET_MAX = 0xFF  # a priority is an octet
_OCTET_DIGITS_MAX = 3  # of _OCTET_MAX
_TIME_DIGITS_MAX = 18  # any number of so many fits into 64 bits
_TOPIC_LETTERS = frozenset(b".%*#+")  # of a topic that is another routing key than it looks


class EnvelopeFields:
    """What one record's properties say beside users' own."""

    def __init__(self, encoded: bytes) -> None:
        self.content_type: bytes | None = None  # where it is escaped in the record
        self.headers = b""  # entries of a field table
        self.taken: set[bytes] = set()  # users' own that are properties here
        self._texts: dict[int, bytes] = {}  # by the property's number in a block
        self._priority = -1
        self._timestamp = -1
        self._types: dict[bytes, str] = {}
        for piece in encoded.split(b"\x02"):
            name, separator, value = piece.partition(b"\x01")
            if not separator:
                continue
            code = field_code(name, 0, len(name))
            if code != FIELD_OTHER:
                self._take(code, value)
            elif name.startswith(TOLD_PREFIX):
                self._take_told(name, value)

    @property
    def flags(self) -> int:
        """The flags of the properties that a block has by these fields, the content type's aside."""
        flags = 0x8000 >> PRIORITY if self._priority >= 0 else 0
        for number in self._texts:
            flags |= 0x8000 >> number
        return flags

    @property
    def content_encoding(self) -> bytes:
        """The content encoding as it stands in a block."""
        return self._shorts(CONTENT_ENCODING, CONTENT_ENCODING)

    @property
    def before_time(self) -> bytes:
        """What stands in a block between delivery mode and timestamp."""
        priority = bytes((self._priority,)) if self._priority >= 0 else b""
        return priority + self._shorts(PRIORITY + 1, TIMESTAMP - 1)

    @property
    def after_time(self) -> bytes:
        """What stands in a block behind the timestamp."""
        return self._shorts(TIMESTAMP + 1, 13)

    def timestamp(self, born_s: int) -> int:
        """Return the timestamp, `born_s` where the publisher said none."""
        return self._timestamp if self._timestamp >= 0 else born_s

    def header(self, name: bytes, text: bytes) -> bytes:
        """Return the entry of a user property in a table, b"" where it can be none."""
        if len(name) > SHORT_BYTES_MAX:
            return b""
        letter = self._types.get(name)
        value = value_of(letter, text) if letter is not None else None
        return bytes((len(name),)) + name + (_long_text(text) if value is None else value)

    def pair(self, value: bytes) -> bytes:
        """Return the entry of a user property that stands escaped in the record; b"" where it can be none."""
        name, _, rest = value.partition(b"=")
        key, text = _unescaped(name), _unescaped(rest)
        return b"" if key is None or text is None else self.header(key, text)

    def _shorts(self, first: int, last: int) -> bytes:
        found = [self._texts[number] for number in range(first, last + 1) if number in self._texts]
        return b"".join([bytes((len(text),)) + text for text in found])

    def _take(self, code: int, value: bytes) -> None:
        if code == FIELD_TTL_MS and value.isdigit() and len(value) <= SHORT_BYTES_MAX:
            self._texts[_EXPIRATION] = value
        elif code == FIELD_FORMAT and value in {b"0", b"1"}:
            self.headers += _name(FORMAT_HEADER) + b"b" + bytes((value == b"1",))
        elif code == FIELD_RESPONSE_TOPIC:
            self.headers += _name(RESPONSE_TOPIC_HEADER) + _long_text(value)
            if len(value) <= SHORT_BYTES_MAX and not _TOPIC_LETTERS.intersection(value):
                self._texts[REPLY_TO] = value.replace(b"/", b".")
        elif code == FIELD_ESCAPED_CONTENT_TYPE:
            content_type = _unescaped(value)
            if content_type is not None and len(content_type) <= SHORT_BYTES_MAX:
                self.content_type = content_type
        elif code == FIELD_CORRELATION:
            self._take_correlation(_unescaped(value))

    def _take_told(self, name: bytes, value: bytes) -> None:
        """Take a user property that is one of AMQP's own."""
        if name == TYPES_NAME:
            self.taken.add(name)
            for piece in value.split(b"=")[:-1]:
                key = _unescaped(piece[1:])
                if key is not None:
                    self._types[key] = chr(piece[0]) if piece else ""
            return
        number = NUMBER_BY_NAME.get(name)
        if number is None or len(value) > SHORT_BYTES_MAX:
            return
        if number == PRIORITY:
            if not value.isdigit() or len(value) > _OCTET_DIGITS_MAX or int(value) > _OCTET_MAX:
                return
            self._priority = int(value)
        elif number == TIMESTAMP:
            if not value.isdigit() or len(value) > _TIME_DIGITS_MAX:
                return
            self._timestamp = int(value)
        elif number != REPLY_TO or REPLY_TO not in self._texts:
            self._texts[number] = value
        self.taken.add(name)

    def _take_correlation(self, data: bytes | None) -> None:
        if data is None:
            return
        if len(data) <= SHORT_BYTES_MAX and _is_text(data):
            self._texts[_CORRELATION_ID] = data
        else:
            self.headers += _name(CORRELATION_HEADER) + b"x" + len(data).to_bytes(4, "big") + data


def _name(name: bytes) -> bytes:
    return bytes((len(name),)) + name


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
