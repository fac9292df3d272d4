"""Answers to sends that were ready when the messages were lost: each that says success is written anew."""

from __future__ import annotations

import struct

from lmq.remoting.commands import FLAG_RESPONSE, HEADER_JSON, Command, decode_header, encode_command
from lmq.remoting.frames import Frames, cut_frames
from lmq.remoting.response_codes import ResponseCode

FRAMES_AT_ONCE = 256
_FRAME = struct.Struct(">II")  # length without itself; header type and length
_TYPE = 0xFF000000
_U16, _U32 = struct.Struct(">H"), struct.Struct(">I")
_JSON_FIELDS = b'"extFields":{'
_FIELDS_SIZE_AT = 17  # in a binary header without a remark


def add_field(data: bytes, name: str, value: str) -> bytes:
    """Return the one answer to a send that `data` is, which has fields and no body, with one more.

    Args:
        data: The frame, as `encode_send_answers` makes it.
        name: The field's name.
        value: Its value: letters, digits, `-`, `_` and `=`, which no header escapes.
    """
    _, word = _FRAME.unpack_from(data)
    if word >> 24 == HEADER_JSON:
        at = data.index(_JSON_FIELDS) + len(_JSON_FIELDS)
        header = b'%b"%b":"%b",%b' % (data[_FRAME.size : at], name.encode(), value.encode(), data[at:])
    else:
        at = _FRAME.size + _FIELDS_SIZE_AT
        (size,) = _U32.unpack_from(data, at)
        entry = b"%b%b%b%b" % (_U16.pack(len(name)), name.encode(), _U32.pack(len(value)), value.encode())
        header = b"%b%b%b%b" % (data[_FRAME.size : at], _U32.pack(size + len(entry)), data[at + 4 :], entry)
    return _FRAME.pack(len(header) + 4, word & _TYPE | len(header)) + header


def refuse_answers(data: bytes, code: int, remark: str) -> tuple[int, bytes]:
    """Return how many answers of `data` say success, and all of them with these refused instead."""
    frames = Frames(FRAMES_AT_ONCE)
    pieces: list[bytes] = []
    count = pos = 0
    while pos < len(data):
        start = pos
        pos = cut_frames(data, pos, frames, len(data))
        assert pos > start
        for i in range(frames.count):
            header_type, header_end = frames.header_type[i], frames.header_end[i]
            said = decode_header(header_type, data[frames.header_start[i] : header_end], b"")
            if said.code == ResponseCode.SUCCESS:
                count += 1
                refused = Command(code, said.opaque, FLAG_RESPONSE, remark=remark, header_type=header_type)
                pieces.append(encode_command(refused))
            else:
                said.body = data[header_end : frames.body_end[i]]
                pieces.append(encode_command(said))
    return count, b"".join(pieces)
