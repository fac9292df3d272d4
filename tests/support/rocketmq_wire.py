"""A client of the remoting protocol on a socket of its own, for tests with a gateway that is a process."""

from __future__ import annotations

import socket
from typing import Self

from lmq.remoting.commands import Command, decode_header
from tests.support.rocketmq import request_frame

TIMEOUT_S = 20


class Wire:
    """One connection; requests are answered one after the other."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = socket.create_connection(address, timeout=TIMEOUT_S)
        self._opaque = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._socket.close()

    def ask(self, code: int, body: bytes = b"", **ext: object) -> Command:
        """Send a request and return its answer; what the broker asks meanwhile is let go.

        Raises:
            OSError: The connection is gone.
        """
        self._opaque += 1
        self._socket.sendall(request_frame(code, body, opaque=self._opaque, **ext))
        while True:
            command = self._read()
            if command.is_response and command.opaque == self._opaque:
                return command

    def _read(self) -> Command:
        size = int.from_bytes(self._take(4), "big")
        frame = self._take(size)
        word = int.from_bytes(frame[:4], "big")
        end = 4 + (word & 0xFFFFFF)
        return decode_header(word >> 24, frame[4:end], frame[end:])

    def _take(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self._socket.recv(size - len(data))
            if not piece:
                raise ConnectionResetError("the gateway is gone")
            data += piece
        return data
