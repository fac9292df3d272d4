"""The types of frames, and what one is made of."""

from __future__ import annotations

import struct

FRAME_METHOD = 1
FRAME_HEADER = 2
FRAME_BODY = 3
FRAME_HEARTBEAT = 8
FRAME_OVERHEAD = 8  # type, channel, size, end
FRAME_END = b"\xce"


def encode_frame(kind: int, channel: int, payload: bytes) -> bytes:
    """Return one frame."""
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + FRAME_END
