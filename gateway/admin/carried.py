"""HTTP connections whose bytes are carried by layers, such as TLS: between the loop's socket and uvicorn's protocol."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, cast

from gateway.net.streams.layer import LayerFactory, StreamError
from gateway.net.streams.plain import peer_of
from gateway.net.streams.stack import Stack
from gateway.net.streams.tls import HTTP_CAME

LOGGER = logging.getLogger(__name__)

OPEN_S = 10.0  # that a peer has for handshakes, as at the doors
WITHOUT_TLS = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 46\r\nConnection: close\r\n\r\n"
    b"HTTP came where HTTPS is spoken: use https://\n"
)


class CarriedTransport(asyncio.Transport):
    """What the HTTP protocol writes to."""

    def __init__(self, sock: asyncio.Transport, stack: Stack) -> None:
        super().__init__()
        self._socket = sock
        self._stack = stack

    def get_extra_info(self, name: str, default: Any = None) -> Any:  # noqa: ANN401 - as the loop's own
        """Return what is known of the connection; the peer that a proxy told, where it did."""
        if name == "sslcontext":
            return not self._stack.is_done
        told = self._stack.peer.address
        if told is not None and name in {"peername", "socket"}:  # uvicorn asks the socket first, which is the proxy's
            return told if name == "peername" else None
        return self._socket.get_extra_info(name, default)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send what carries `data`."""
        if not self._socket.is_closing():
            try:
                self._socket.write(self._stack.send(data))
            except StreamError:
                self._socket.abort()

    def close(self) -> None:
        """Send what was written, say the end, close."""
        if not self._socket.is_closing():
            self._stack.close()
            self._socket.write(self._stack.data_to_send())
            self._socket.close()

    def is_closing(self) -> bool:
        """Return whether nothing is sent any more."""
        return self._socket.is_closing()

    def abort(self) -> None:
        """Close now."""
        self._socket.abort()

    def pause_reading(self) -> None:
        """Take no more bytes."""
        self._socket.pause_reading()

    def resume_reading(self) -> None:
        """Take bytes again."""
        self._socket.resume_reading()

    def get_write_buffer_size(self) -> int:
        """Return how much waits to be sent."""
        return self._socket.get_write_buffer_size()


class CarriedProtocol(asyncio.Protocol):
    """One connection; the HTTP protocol is made once its layers are open.

    Args:
        make_layers: Makes the layers.
        make_inner: Makes the HTTP protocol.
        is_refused: Whether one of a host is turned away; each counts before it is open too.
        waiting: Those that are not open yet.
    """

    def __init__(
        self,
        make_layers: LayerFactory,
        make_inner: Callable[[], asyncio.Protocol],
        is_refused: Callable[[str], bool],
        waiting: set[CarriedProtocol],
    ) -> None:
        self._make_layers = make_layers
        self._make_inner = make_inner
        self._is_refused = is_refused
        self._waiting = waiting
        self._inner: asyncio.Protocol | None = None
        self._socket: asyncio.Transport | None = None
        self._stack: Stack | None = None
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The loop: connected."""
        self._socket = sock = cast("asyncio.Transport", transport)
        if self._is_refused(peer_of(sock)[0]):
            sock.abort()
            return
        self._waiting.add(self)
        try:
            self._stack = Stack(self._make_layers(peer_of(sock)[0]))
        except StreamError as error:
            self._refuse(sock, error)
            return
        self._deadline = asyncio.get_running_loop().call_later(OPEN_S, self._be_late)

    def abort(self) -> None:
        """Close now."""
        if self._socket is not None:
            self._socket.abort()

    def _be_late(self) -> None:
        if self._socket is not None and self._inner is None:
            self._refuse(self._socket, StreamError("handshake", "it takes too long"))

    def _refuse(self, sock: asyncio.Transport, error: StreamError) -> None:
        if self._inner is None:
            host, port = peer_of(sock)
            LOGGER.warning("refused connection door=admin peer=%s:%d reason=%s", host, port, error)
        if self._stack is not None:
            sock.write(self._stack.data_to_send())
        self._stack = None
        sock.close()

    def data_received(self, data: bytes) -> None:
        """The loop: bytes came."""
        sock, stack = self._socket, self._stack
        if sock is None or stack is None or sock.is_closing():
            return
        try:
            data = stack.receive_data(data)
        except StreamError as error:
            if error.reason == HTTP_CAME:
                sock.write(WITHOUT_TLS)
            self._refuse(sock, error)
            return
        sock.write(stack.data_to_send())
        if stack.is_open and self._inner is None:
            self._forget_waiting()
            self._inner = self._make_inner()
            self._inner.connection_made(CarriedTransport(sock, stack))
        if data and self._inner is not None:
            self._inner.data_received(data)
        if stack.is_ended:
            sock.close()

    def _forget_waiting(self) -> None:
        self._waiting.discard(self)
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def eof_received(self) -> bool | None:
        """The loop: the peer sends no more."""
        return self._inner.eof_received() if self._inner is not None else None

    def connection_lost(self, exc: Exception | None) -> None:
        """The loop: the connection is gone."""
        self._forget_waiting()
        self._stack = None
        if self._inner is not None:
            self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        """The loop: the output is full."""
        if self._inner is not None:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        """The loop: the output has room again."""
        if self._inner is not None:
            self._inner.resume_writing()
