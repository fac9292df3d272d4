"""What a pull is answered with before any message is looked at."""

from __future__ import annotations

from lmq.remoting.commands import FLAG_RESPONSE, Command, encode_command
from lmq.remoting.response_codes import ResponseCode


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


def encode_busy(opaque: int, header_type: int) -> bytes:
    """Return the answer to a pull of a queue whose ends the engine cannot tell now: the client comes again."""
    remark = "the offsets of the queue cannot be told now"
    return encode_command(
        Command(ResponseCode.SYSTEM_BUSY, opaque, FLAG_RESPONSE, remark=remark, header_type=header_type)
    )
