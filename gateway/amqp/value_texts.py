"""Values of a field table as text, for doors whose user properties are text, and back.

Integers and timestamps are decimal, booleans `true` and `false`, a float is the shortest text that gives it back, void
is empty, tables and arrays are JSON. What is no UTF-8 is base64, with the letter `X` for bytes and `Y` for a text.

Source: docs/protocols/crossing.md.
"""

from __future__ import annotations

import json
import math
import struct
from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from typing import TypeAlias

from core.octets import read_u32
from gateway.amqp.field_table import check_value, skip_value

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

_NUMBERS = {
    "b": struct.Struct(">b"), "B": struct.Struct(">B"), "s": struct.Struct(">h"), "u": struct.Struct(">H"),
    "I": struct.Struct(">i"), "i": struct.Struct(">I"), "l": struct.Struct(">q"), "L": struct.Struct(">q"),
    "f": struct.Struct(">f"), "d": struct.Struct(">d"), "T": struct.Struct(">Q"),
}  # fmt: skip
_DECIMAL = struct.Struct(">Bi")
_JSON_TYPES: dict[str, type] = {"t": bool, "A": list, "F": dict, "V": type(None)}
_SHORT_BYTES_MAX = 255  # a short string has one byte for its length
_SCALE_MAX = 255  # AMQP's decimals have an octet for it
_AGAIN_COUNT_MAX, _AGAIN_BYTES_MAX = 64, 1_024  # 64 KiB and their texts: the headers that clients say again and again
_ENCODED = {"x": "X", "S": "Y"}
_PLAIN = {"x": b"x", "X": b"x", "S": b"S", "Y": b"S"}


def text_of(value: bytes) -> tuple[str, bytes]:
    """Return the letter of a checked value's type, and the value as text; `value` begins with its type."""
    letter = chr(value[0])
    if letter in _ENCODED:
        raw = value[5:]
        return (letter, raw) if _is_text(raw) else (_ENCODED[letter], b64encode(raw))
    return letter, _tell_again(value) if len(value) <= _AGAIN_BYTES_MAX else _tell(value)


def _tell(value: bytes) -> bytes:
    found = _read(value, 0)
    if isinstance(found, bool | list | dict):
        return json.dumps(found, ensure_ascii=False, separators=(",", ":")).encode()
    return b"" if found is None else str(found).encode()


_tell_again = lru_cache(_AGAIN_COUNT_MAX)(_tell)  # dead letters that died together say the same of it


def value_of(letter: str, text: bytes) -> bytes | None:
    """Return the value, type first, that `text_of` made a text of; None where the text is none of that type."""
    try:
        value = _value_of(letter, text)
    except (ValueError, struct.error, OverflowError, Error, RecursionError, ArithmeticError):
        return None
    return value if value is not None and check_value(value, 0, len(value), 0) == len(value) else None


def _value_of(letter: str, text: bytes) -> bytes | None:
    if letter in _NUMBERS:
        number = float(text) if letter in {"f", "d"} else int(text)
        return letter.encode() + _NUMBERS[letter].pack(number)
    if letter in _PLAIN:
        return _PLAIN[letter] + _sized(b64decode(text, validate=True) if letter in {"X", "Y"} else text)
    if letter == "D":
        return _decimal_of(text)
    found: Json = json.loads(text or b"null") if letter in _JSON_TYPES else None
    return _write(found) if isinstance(found, _JSON_TYPES.get(letter, ())) else None


def _decimal_of(text: bytes) -> bytes | None:
    number = Decimal(text.decode())
    exponent = int(number.as_tuple().exponent)  # raises where it is no finite number
    return b"D" + _DECIMAL.pack(-exponent, int(number.scaleb(-exponent))) if -_SCALE_MAX <= exponent <= 0 else None


def _is_text(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in raw


def _read(buf: bytes, pos: int) -> Json:
    """Return the value at `pos` as JSON has it."""
    letter = chr(buf[pos])
    if letter in {"t", "V"}:
        return buf[pos + 1] != 0 if letter == "t" else None
    if letter in _NUMBERS:
        number: float = _NUMBERS[letter].unpack_from(buf, pos + 1)[0]
        return number if math.isfinite(number) else str(number)
    if letter == "D":
        scale, digits = _DECIMAL.unpack_from(buf, pos + 1)
        return str(Decimal(digits).scaleb(-scale))
    start = pos + 5
    end = start + read_u32(buf, pos + 1)
    if letter == "A":
        return [_read(buf, at) for at in _starts(buf, start, end)]
    if letter == "F":
        return {name.decode(errors="replace"): _read(buf, at) for name, at in _entries(buf, start, end)}
    raw = buf[start:end]
    return raw.decode() if _is_text(raw) else b64encode(raw).decode()


def _starts(buf: bytes, pos: int, end: int) -> Iterator[int]:
    while pos < end:
        yield pos
        pos = skip_value(buf, pos)


def _entries(buf: bytes, pos: int, end: int) -> Iterator[tuple[bytes, int]]:
    while pos < end:
        at = pos + 1 + buf[pos]
        yield buf[pos + 1 : at], at
        pos = skip_value(buf, at)


def _write(found: Json) -> bytes:
    """Return a value of a table for one of JSON."""
    if isinstance(found, str):
        return b"S" + _sized(found.encode())
    if isinstance(found, list):
        return b"A" + _sized(b"".join([_write(one) for one in found]))
    if isinstance(found, dict):
        return b"F" + _sized(b"".join([_short(name.encode()) + _write(one) for name, one in found.items()]))
    if isinstance(found, bool):
        return b"t" + bytes((found,))
    letter = "V" if found is None else "l" if isinstance(found, int) else "d"
    return letter.encode() + (b"" if found is None else _NUMBERS[letter].pack(found))


def _sized(raw: bytes) -> bytes:
    return len(raw).to_bytes(4, "big") + raw


def _short(name: bytes) -> bytes:
    if len(name) > _SHORT_BYTES_MAX:
        raise ValueError(name)
    return bytes((len(name),)) + name
