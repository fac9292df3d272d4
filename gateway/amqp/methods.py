"""Method frames off the hot path, by pamqp's definitions and with every length checked.

pamqp names the methods, their arguments and types; its own decoder trusts lengths, so the arguments are cut here.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any, cast

from pamqp import base, commands, decode, encode
from pamqp.commands import Basic

from gateway.amqp.errors import AmqpError, bad_text, frame_error, syntax_error, undecodable
from gateway.amqp.field_table import TABLE_FIELDS_MAX, Field, check_table, has_many, read_table
from gateway.amqp.frames import FRAME_METHOD, encode_frame
from gateway.amqp.reply_codes import ReplyCode

FIXED_SIZES = {"octet": 1, "short": 2, "long": 4, "longlong": 8}
INDEX_SIZE = 4  # class and method
_GET = Basic.Get.index.to_bytes(INDEX_SIZE, "big")
_AGAIN_MAX = 1_024  # of them, less than a megabyte


def method_name(index: int) -> str:
    """Return a method's name as the protocol's documents write it, for reply texts."""
    method: type[base.Frame] | None = commands.INDEX_MAPPING.get(index)
    return method.name.lower() if method else f"{index >> 16}.{index & 0xFFFF}"


def decode_method(payload: bytes) -> base.Frame:
    """Return the method that a method frame's payload holds, not to be changed; its tables are dicts of `Field`.

    Raises:
        AmqpError: FRAME_ERROR: no method, or its arguments are not what they must be; COMMAND_INVALID: an unknown one;
            SYNTAX_ERROR: a table has too many fields.
    """
    return _decode_again(payload) if payload.startswith(_GET) else _decode(payload)


def _decode(payload: bytes) -> base.Frame:
    index = int.from_bytes(payload[:INDEX_SIZE], "big")
    if len(payload) < INDEX_SIZE:
        raise frame_error(FRAME_METHOD, payload)
    known = commands.INDEX_MAPPING.get(index)
    if known is None:
        raise AmqpError(ReplyCode.COMMAND_INVALID, f"unknown method {index >> 16}.{index & 0xFFFF}")
    method: base.Frame = object.__new__(known)  # its arguments are those that came, all of them
    try:
        end = _decode_arguments(method, payload)
    except (ValueError, IndexError, struct.error) as error:
        raise undecodable(payload[INDEX_SIZE:], index) from error
    if end != len(payload):
        raise undecodable(payload[INDEX_SIZE:], index)
    return method


_decode_again = lru_cache(_AGAIN_MAX)(_decode)  # what clients send again and again, 263 bytes at most


def _decode_arguments(method: base.Frame, payload: bytes) -> int:
    pos = INDEX_SIZE
    bit = 0  # how many bits of the octet at `pos` were taken
    for argument in method.__slots__:
        kind = method.amqp_type(argument)
        if kind == "bit":
            setattr(method, argument, bool(payload[pos] >> bit & 1))
            bit += 1
            continue
        if bit:
            pos, bit = pos + 1, 0
        end = _argument_end(kind, payload, pos)
        setattr(method, argument, _argument(kind, payload, pos, end, method))
        pos = end
    return pos + 1 if bit else pos


def _argument(kind: str, payload: bytes, pos: int, end: int, method: base.Frame) -> object:
    if kind == "table":
        if has_many(payload, pos + 4, end):
            reason = f"a table in {method_name(method.index)} has more than {TABLE_FIELDS_MAX} fields"
            raise syntax_error(reason, method.index)
        return read_table(payload, pos + 4, end)
    if kind == "shortstr":
        try:
            return payload[pos + 1 : end].decode()
        except UnicodeDecodeError as error:
            raise bad_text() from error
    return decode.by_type(payload[pos:end], kind)[1]


def _argument_end(kind: str, payload: bytes, pos: int) -> int:
    if kind == "shortstr":
        end = pos + 1 + payload[pos]
    elif kind == "longstr":
        end = pos + 4 + int.from_bytes(payload[pos : pos + 4], "big")
    elif kind == "table":
        end = check_table(payload, pos, len(payload))
    else:
        end = pos + FIXED_SIZES[kind]
    if end < 0 or end > len(payload):
        raise ValueError("ends too early")
    return end


def arguments_of(table: object) -> dict[str, Field]:
    """Return a table of a method that `decode_method` gave, as what it is: pamqp's types say otherwise."""
    return cast("dict[str, Field]", table or {})


def encode_method(
    method: base.Frame, channel: int, write_table: Callable[[dict[str, Any]], bytes] = encode.field_table
) -> bytes:
    """Return the frame of `method`; names are as the peer gave them, also where pamqp would not make such a one.

    Args:
        method: It.
        channel: Its channel.
        write_table: Returns a table with its length.
    """
    parts = [method.index.to_bytes(4, "big")]
    bits = -1
    count = 0
    for argument in method.__slots__:
        kind = method.amqp_type(argument)
        value = getattr(method, argument)
        if kind == "bit":
            bits = max(bits, 0) | (int(bool(value)) << count)
            count += 1
            continue
        if bits >= 0:
            parts.append(bytes((bits,)))
            bits, count = -1, 0
        parts.append(write_table(value or {}) if kind == "table" else encode.by_type(value, kind))
    if bits >= 0:
        parts.append(bytes((bits,)))
    return encode_frame(1, channel, b"".join(parts))


def encode_ack(channel: int, tag: int, *, multiple: bool) -> bytes:
    """Return the frame of `basic.ack`."""
    return struct.pack(">BHIIQBB", 1, channel, 13, Basic.Ack.index, tag, multiple, 0xCE)


def encode_nack(channel: int, tag: int) -> bytes:
    """Return the frame of `basic.nack` for one message that was not taken."""
    return struct.pack(">BHIIQBB", 1, channel, 13, Basic.Nack.index, tag, 0, 0xCE)


def encode_content(channel: int, block: bytes, body: bytes | memoryview, payload_max: int) -> bytes:
    """Return content header and body frames of a message whose property block is at hand."""
    parts = [encode_frame(2, channel, struct.pack(">HHQ", Basic.frame_id, 0, len(body)) + block)]
    parts += [
        encode_frame(3, channel, bytes(body[start : start + payload_max])) for start in range(0, len(body), payload_max)
    ]
    return b"".join(parts)
