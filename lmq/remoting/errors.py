"""Bytes that the remoting protocol does not allow."""

from __future__ import annotations


class RemotingError(Exception):
    """A peer's bytes or requests that the protocol does not allow."""


class FrameError(RemotingError):
    """Bytes that are no frame, or a header that is no header: the connection cannot go on."""

    def __init__(self, reason: str, position: int = 0) -> None:
        super().__init__(f"malformed frame at {position}: {reason}")
        self.reason = reason
        self.position = position


class RecordError(RemotingError):
    """Bytes in a pull answer that are no record."""

    def __init__(self, reason: str, position: int) -> None:
        super().__init__(f"malformed record at {position}: {reason}")
        self.reason = reason
        self.position = position
