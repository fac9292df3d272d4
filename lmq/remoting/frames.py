"""Frames cut from what a socket gave: `i4 length, u1 header type, u3 header length, header, body`.

Source: docs/protocols/rocketmq.md, "Frames and headers".
"""

from __future__ import annotations

from array import array

from lmq.remoting import integers
from lmq.remoting.commands import FRAME_PREFIX_BYTES, Command, decode_header
from lmq.remoting.errors import FrameError

FRAMES_MAX = 1024  # frames cut at a time: enough to make the cost of a batch vanish
_PREFIX_BYTES = FRAME_PREFIX_BYTES
_BINARY = 1


class Frames:
    """Frames cut from `buf`: columns of positions; a body lies from `header_end` to `body_end`.

    `code` is the request code where it could be told from the header's start, else 0.
    """

    def __init__(self, capacity: int = FRAMES_MAX) -> None:
        self.capacity = capacity
        self.count = 0
        self.buf: bytes | bytearray | memoryview = b""
        self.code = array("i", bytes(4 * capacity))
        self.header_type = array("i", bytes(4 * capacity))
        self.header_start = array("i", bytes(4 * capacity))
        self.header_end = array("i", bytes(4 * capacity))
        self.body_end = array("i", bytes(4 * capacity))


def cut_frames(buf: bytes | bytearray | memoryview, pos: int, frames: Frames, frame_bytes_max: int) -> int:
    """Cut whole frames from `buf` at `pos` into `frames`; return the position after the last.

    Raises:
        FrameError: The first frame at `pos` is malformed. (Those before a malformed one are given first.)
    """
    count = 0
    end = len(buf)
    frames.count = 0
    frames.buf = buf
    while count < frames.capacity and pos + _PREFIX_BYTES <= end:
        size = integers.read_u32(buf, pos)
        word = integers.read_u32(buf, pos + 4)
        header_bytes = word & 0xFFFFFF
        header_type = word >> 24
        if size > frame_bytes_max or header_bytes + 4 > size or header_type > _BINARY:
            if count:
                break
            raise FrameError("impossible length or header type", pos)
        if pos + 4 + size > end:
            break
        start = pos + _PREFIX_BYTES
        frames.header_type[count] = header_type
        frames.header_start[count] = start
        frames.header_end[count] = start + header_bytes
        frames.body_end[count] = pos + 4 + size
        frames.code[count] = _peek_code(buf, start, start + header_bytes, header_type)
        pos += 4 + size
        count += 1
    frames.count = count
    return pos


def _peek_code(buf: bytes | bytearray | memoryview, pos: int, end: int, header_type: int) -> int:
    """Return the code that the header begins with, or 0 where it does not begin with one."""
    if header_type == _BINARY:
        return integers.read_u16(buf, pos) if end - pos >= 2 else 0
    if end - pos < 12 or integers.read_u32(buf, pos) != 0x7B22636F:  # {"co
        return 0
    if integers.read_u32(buf, pos + 4) != 0x6465223A:  # de":
        return 0
    code = 0
    pos += 8
    while pos < end and 0x30 <= buf[pos] <= 0x39 and code < 100_000_000:
        code = code * 10 + buf[pos] - 0x30
        pos += 1
    return code


class FrameInput:
    """Bytes as they come, cut into frames; the part of a frame that came so far is kept.

    Args:
        frames: Room for cut frames; may be shared by all that are not read at the same time.
        frame_bytes_max: A longer frame is an error.
    """

    def __init__(self, frames: Frames, frame_bytes_max: int) -> None:
        self.frames = frames
        self._frame_bytes_max = frame_bytes_max
        self._data: bytes | bytearray = b""
        self._pos = 0
        self._tail = bytearray()
        self._wanted = 0  # bytes that the tail must have before it is looked at again

    def receive_data(self, data: bytes) -> None:
        """Take bytes of the peer; to be followed by `cut` until it gives nothing."""
        self._pos = 0
        if not self._tail:
            self._data = data
            return
        self._tail += data
        if len(self._tail) >= self._wanted:
            self._data, self._tail = self._tail, bytearray()

    def cut(self) -> bool:
        """Put the next frames into `frames`; return whether there were any.

        Raises:
            FrameError: The next frame is malformed.
        """
        self._pos = cut_frames(self._data, self._pos, self.frames, self._frame_bytes_max)
        if self.frames.count:
            return True
        if self._pos < len(self._data):
            self._keep_tail()
        self._data, self._pos = b"", 0
        return False

    def _keep_tail(self) -> None:
        self._tail = bytearray(memoryview(self._data)[self._pos :])
        self._wanted = FRAME_PREFIX_BYTES
        if len(self._tail) >= FRAME_PREFIX_BYTES:
            self._wanted = 4 + int.from_bytes(self._tail[:4], "big")

    def unread(self, i: int) -> None:
        """Give back the frames from the `i`th of those that were cut last on: they are cut again."""
        if i < self.frames.count:
            self._pos = self.frames.header_start[i] - FRAME_PREFIX_BYTES

    def decode(self, i: int) -> Command:
        """Return the command of frame `i`.

        Raises:
            FrameError: Its header is malformed.
        """
        frames = self.frames
        start, body = frames.header_start[i], frames.header_end[i]
        header = bytes(frames.buf[start:body])
        return decode_header(frames.header_type[i], header, bytes(frames.buf[body : frames.body_end[i]]))
