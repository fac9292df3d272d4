"""Answers to sends that were ready when the messages were lost: each that says success is written anew."""

from __future__ import annotations

from lmq.remoting.commands import FLAG_RESPONSE, Command, decode_header, encode_command
from lmq.remoting.frames import Frames, cut_frames
from lmq.remoting.response_codes import ResponseCode

FRAMES_AT_ONCE = 256  # cut together; what is left is cut next


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
