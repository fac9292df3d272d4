"""Plain frames of WebSocket: whole messages of binary data, which nearly all frames of a connection are.

wsproto takes all other frames: it knows their rules, and says which one a frame breaks.

Source: RFC 6455, 5.2.
"""

from __future__ import annotations

from gateway.net.streams import masks

_FIN = 0x80
_BINARY = _FIN | 2  # with no bit of an extension
_CONTROL = 0x08
_MASKED = 0x80
_SHORT_BYTES = 2  # of the shortest head, without the key; a length that has bytes of its own has 2 or 8
_SHORT_MAX = 125  # the length of a frame as it is; and of one that is no data, at most
_IN_2_BYTES, _IN_8_BYTES = 126, 127  # RFC 6455, section 5.2
_16_BITS = 0xFFFF  # RFC 6455, section 5.2: longer ones have 8 bytes for the length
_TOP_BIT = 0x80
_KEY_BYTES = 4  # RFC 6455, section 5.3
_UNKNOWN, _BROKEN = -1, -2
_EVERYTHING = (1 << 63) - 1
KNOWN = frozenset({0, 1, 2, 0x80, 0x81, 0x82, 0x88, 0x89, 0x8A})  # first bytes of frames that may be right


def head_of_binary(size: int) -> bytes:
    """Return what a server sends before `size` bytes that are one message."""
    if size <= _SHORT_MAX:
        return bytes((_BINARY, size))
    if size <= _16_BITS:
        return bytes((_BINARY, _IN_2_BYTES)) + size.to_bytes(2)
    return bytes((_BINARY, _IN_8_BYTES)) + size.to_bytes(8)


class FrameCutter:
    """The frames of one connection, in pieces as they come: only the head of a frame is waited for.

    What breaks a rule by its head is a piece with all that follows, and is not plain. `is_plain` tells it of the last
    piece that was taken.
    """

    __slots__ = ("_at", "_data", "_is_in_message", "_key", "_left", "is_plain")

    def __init__(self) -> None:
        self._data = b""
        self._at = 0  # how far it is cut
        self._left = 0  # of the frame, yet to come
        self._key = b""  # of what is left
        self._is_in_message = False  # another frame of it is to come
        self.is_plain = False

    def feed(self, data: bytes) -> None:
        """Take what came."""
        self._data = self._data[self._at :] + data if self._at < len(self._data) else data
        self._at = 0

    def take(self) -> bytes | None:
        """Return what the next piece of a plain frame carries, or another frame's as it is; None: it is to come."""
        data, start = self._data, self._at
        at = start if self._left else self._begin(data, start)
        if at < 0 or start >= len(data):
            self._data, self._at = data[start:], 0
            return None
        size = min(self._left, len(data) - at)
        if self._left != _EVERYTHING:
            self._left -= size
        self._at = end = at + size
        if not self.is_plain:
            return data[start:end]
        piece = masks.unmask(data, at, end, self._key)
        turn = size % _KEY_BYTES
        if turn and self._left:
            self._key = self._key[turn:] + self._key[:turn]
        return piece

    def _begin(self, data: bytes, at: int) -> int:
        """Begin a frame; return where its payload is, -1 where more of the head has to come, which is right so far."""
        start = at + _SHORT_BYTES
        if len(data) < start:
            return -1
        first, second = data[at], data[at + 1]
        size = second & ~_MASKED
        is_control = (first & _CONTROL) != 0
        if first not in KNOWN or not second & _MASKED or (is_control and size > _SHORT_MAX):
            size = _BROKEN
        elif size > _SHORT_MAX:
            width = 2 if size == _IN_2_BYTES else 8
            size = _read_length(data, start, width)
            start += width
        if size == _BROKEN:
            self.is_plain = False
            self._left = _EVERYTHING
            return at
        if size == _UNKNOWN or len(data) - start < _KEY_BYTES:
            return -1
        self.is_plain = first == _BINARY and not self._is_in_message
        if not is_control:
            self._is_in_message = first & _FIN == 0
        self._key = data[start : start + _KEY_BYTES]
        self._left = size
        return start + _KEY_BYTES


def _read_length(data: bytes, at: int, width: int) -> int:
    """Return a length of `width` bytes; _BROKEN, or _UNKNOWN until all of it is there."""
    if len(data) - at < width:
        return _UNKNOWN
    size = data[at]
    if width > _SHORT_BYTES and size >= _TOP_BIT:
        return _BROKEN
    for place in range(at + 1, at + width):
        size = size << 8 | data[place]
    has_shorter_form = size <= (_SHORT_MAX if width == _SHORT_BYTES else _16_BITS)
    return _BROKEN if has_shorter_form else size
