"""What a pull is answered with besides messages."""

from __future__ import annotations

from lmq.remoting.commands import (
    FLAG_RESPONSE,
    HEADER_BINARY,
    HEADER_JSON,
    VERSION,
    Command,
    encode_command,
    encode_header,
)
from lmq.remoting.response_codes import ResponseCode

_FOUND_HEADER = (
    b'{"code":0,"extFields":{"suggestWhichBrokerId":"0","nextBeginOffset":"%d","minOffset":"%d","maxOffset":"%d",'
    b'"topicSysFlag":"0","groupSysFlag":"0"},"flag":1,"language":"JAVA","opaque":%d,"remark":"FOUND",'
    b'"serializeTypeCurrentRPC":"JSON","version":' + b"%d}" % VERSION
)


def make_found_header(opaque: int, header_type: int, next_offset: int, min_offset: int, max_offset: int) -> bytes:
    """Return the header of an answer with messages."""
    if header_type == HEADER_JSON:
        return _FOUND_HEADER % (next_offset, min_offset, max_offset, opaque)
    ext = {
        "suggestWhichBrokerId": "0",
        "nextBeginOffset": str(next_offset),
        "minOffset": str(min_offset),
        "maxOffset": str(max_offset),
        "topicSysFlag": "0",
        "groupSysFlag": "0",
    }
    return encode_header(Command(0, opaque, FLAG_RESPONSE, ext, remark="FOUND", header_type=HEADER_BINARY))


def judge_pull(offset: int, min_offset: int, max_offset: int) -> tuple[ResponseCode, str, int]:
    """Return code, remark and next offset of a pull at `offset`, before its filter is asked."""
    if max_offset == 0:
        moved = ResponseCode.PULL_OFFSET_MOVED if offset else ResponseCode.PULL_NOT_FOUND
        return moved, "NO_MESSAGE_IN_QUEUE", 0
    if offset < min_offset:
        return ResponseCode.PULL_OFFSET_MOVED, "OFFSET_TOO_SMALL", min_offset
    if offset == max_offset:
        return ResponseCode.PULL_NOT_FOUND, "OFFSET_OVERFLOW_ONE", offset
    if offset > max_offset:
        return ResponseCode.PULL_OFFSET_MOVED, "OFFSET_OVERFLOW_BADLY", max_offset
    return ResponseCode.SUCCESS, "FOUND", offset


def encode_empty(
    opaque: int, header_type: int, code: ResponseCode, remark: str, offsets: tuple[int, int, int]
) -> bytes:
    """Return the answer to a pull that gets no message; `offsets` are the next, the first and that behind the last."""
    next_offset, min_offset, max_offset = offsets
    ext = {
        "suggestWhichBrokerId": "0",
        "nextBeginOffset": str(next_offset),
        "minOffset": str(min_offset),
        "maxOffset": str(max_offset),
    }
    return encode_command(Command(code, opaque, FLAG_RESPONSE, ext, remark=remark, header_type=header_type))


def encode_busy(opaque: int, header_type: int) -> bytes:
    """Return the answer to a pull of a queue whose ends the engine cannot tell now: the client comes again."""
    remark = "the offsets of the queue cannot be told now"
    return encode_command(
        Command(ResponseCode.SYSTEM_BUSY, opaque, FLAG_RESPONSE, remark=remark, header_type=header_type)
    )
