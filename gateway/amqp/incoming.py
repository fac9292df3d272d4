"""The bytes that came on one connection, cut into frames; what is not all there yet waits."""

from __future__ import annotations

from gateway.amqp.codec import cut_frame
from gateway.amqp.errors import AmqpError
from gateway.amqp.frames import FRAME_OVERHEAD

_FRAME_OVERHEAD = FRAME_OVERHEAD
_NOTHING = b""


class Incoming:
    """What came and was not taken yet.

    Args:
        need: How many bytes the first words have.
    """

    def __init__(self, need: int) -> None:
        self.data = b""
        self.view = _NOTHING  # the same, as loops read it
        self.pos = 0  # of what is to be taken next, in both
        self.is_deaf = False  # frames cannot be told apart any more
        self._tail = bytearray()
        self._need = need

    def receive(self, data: bytes) -> None:
        """Take bytes; earlier ones were taken, or kept by `keep_tail`."""
        if self.is_deaf:
            return
        if self._tail:
            self._tail += data
            if len(self._tail) < self._need:
                return
            data = bytes(self._tail)
            self._tail.clear()
        self.data = self.view = data
        self.pos = 0

    def has_tail(self) -> bool:
        """Return whether something was kept."""
        return len(self._tail) > 0

    def is_waiting(self) -> bool:
        """Return whether what was kept is all that there is."""
        return len(self._tail) > 0 and not self.data

    def cut(self, payload_max: int) -> int:
        """Return the next frame as `cut_frame` does, 0 where it is not all there.

        Raises:
            AmqpError: It is no frame, or too long; nothing is cut after it.
        """
        if self.is_deaf or self.pos == len(self.data):
            return 0
        try:
            return cut_frame(self.view, self.pos, len(self.data), payload_max)
        except AmqpError:
            self.is_deaf = True
            raise

    def take_payload(self, size: int) -> bytes:
        """Return the payload of the next frame, of that size, and go on after it."""
        start = self.pos + _FRAME_OVERHEAD - 1
        self.pos = start + size + 1
        return self.data[start : start + size]

    def keep_tail(self, is_over: bool, is_framed: bool) -> None:  # noqa: FBT001 - as C has it
        """Let what was not taken wait for more; nothing of it where the connection `is_over`.

        Where what waits is not known to be a frame (`is_framed`), one byte more may be all that it needs.
        """
        rest = len(self.data) - self.pos
        if rest:
            self._tail += self.data[self.pos :]
        self.data = b""
        self.view = _NOTHING
        self.pos = 0
        self._need = 1
        if is_over or self.is_deaf:
            self._tail.clear()
        elif rest and is_framed:
            size = int.from_bytes(self._tail[3:7], "big")  # which `cut_frame` has checked, where it is there
            self._need = size + _FRAME_OVERHEAD if len(self._tail) >= _FRAME_OVERHEAD - 1 else _FRAME_OVERHEAD - 1
