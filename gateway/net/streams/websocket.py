"""WebSocket: the stream's bytes in binary messages, whose borders mean nothing.

Source: RFC 6455; MQTT 5.0, 6.
"""

from __future__ import annotations

from contextlib import suppress

from wsproto import ConnectionType, WSConnection
from wsproto.connection import ConnectionState
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Ping,
    RejectConnection,
    RejectData,
    Request,
    TextMessage,
)
from wsproto.frame_protocol import CloseReason
from wsproto.utilities import LocalProtocolError, RemoteProtocolError

from gateway.net.streams.first_bytes import name_protocol
from gateway.net.streams.frame_cutter import FrameCutter, head_of_binary
from gateway.net.streams.layer import Layer, StreamError

KIND = "websocket"
HERE = "MQTT over WebSocket is spoken here"
SUBPROTOCOLS = ("mqtt", "mqttv3.1")  # MQTT-6.0.0-3, and what clients of MQTT 3.1 say
HEAD_END = b"\r\n\r\n"
FRAMES_AT_A_TIME = 16  # each that is not plain costs some 10 us, whatever is in it
NOT_FOUND = 404
BAD_REQUEST = 400


class WebSocketLayer(Layer):
    """The server's end of a WebSocket; extensions, such as compression, are not agreed to.

    Args:
        path: What the client has to ask for; None: whatever it likes.
    """

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._connection = WSConnection(ConnectionType.SERVER)
        self._frames = FrameCutter()
        self._said = bytearray()
        self._tail = b""  # of the request as far as it came
        self._is_asked = False  # it is whole

    def receive_data(self, data: bytes) -> bytes:
        """Take what came; return what binary messages carry, as far as it is there.

        Raises:
            StreamError: It is no WebSocket, not the one that is served here, or breaks its rules; the peer is told.
        """
        parts: list[bytes] = []
        if data:
            self._feed(data, parts)
        self.has_more = False
        count = 0
        while not self.is_ended and (piece := self._frames.take()) is not None:
            if self._frames.is_plain:
                parts.append(piece)
            else:
                self._connection.receive_data(piece)
                self._handle_events(parts)
            count += 1
            if count % FRAMES_AT_A_TIME == 0 and self.is_over():
                self.has_more = not self.is_ended
                break
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _feed(self, data: bytes, parts: list[bytes]) -> None:
        """Give wsproto the request, and the cutter what follows it."""
        if self._is_asked:
            self._frames.feed(data)
            return
        joined = self._tail + data
        end = joined.find(HEAD_END)
        self._is_asked = end >= 0
        cut = end + len(HEAD_END) - len(self._tail) if self._is_asked else len(data)
        data, rest = data[:cut], data[cut:]
        self._tail = joined[1 - len(HEAD_END) :]
        try:
            self._connection.receive_data(data)
        except RemoteProtocolError as error:
            name = name_protocol(data)
            reason = f"no HTTP, but {name}" if name not in {"", "HTTP"} else str(error).lower()
            if isinstance(error.event_hint, RejectConnection):
                self._tell(error.event_hint.status_code, reason)
            raise StreamError(KIND, reason) from error
        self._handle_events(parts)
        self._frames.feed(rest)

    def _handle_events(self, parts: list[bytes]) -> None:
        for event in self._connection.events():
            self._handle(event, parts)
            if self.is_ended:
                break

    def _handle(self, event: Event, parts: list[bytes]) -> None:
        if isinstance(event, BytesMessage):
            parts.append(bytes(event.data))
        elif isinstance(event, Request):
            self._answer(event)
        elif isinstance(event, Ping):
            self._said += self._connection.send(event.response())
        elif isinstance(event, TextMessage):
            self._fail(CloseReason.UNSUPPORTED_DATA, "a text message")
        elif isinstance(event, CloseConnection):
            if self._connection.state is ConnectionState.OPEN:
                self._fail(event.code, event.reason or "a wrong frame")
            if self._connection.state is ConnectionState.REMOTE_CLOSING:
                self._said += self._connection.send(event.response())
            self.is_ended = True

    def _answer(self, request: Request) -> None:
        """Let the client in, or not."""
        if not self._is_asked:
            self._reject(BAD_REQUEST, "lines of the request end without CR")
        if self._path not in {None, request.target.partition("?")[0]}:
            self._reject(NOT_FOUND, f"no such path: {request.target[:100]!r}")
        subprotocol = next((name for name in SUBPROTOCOLS if name in request.subprotocols), None)
        if subprotocol is None:
            self._reject(BAD_REQUEST, "the subprotocol mqtt is not offered")
        self._said += self._connection.send(AcceptConnection(subprotocol=subprotocol))
        self.is_open = True

    def _reject(self, status: int, reason: str) -> None:
        self._tell(status, reason)
        raise StreamError(KIND, reason)

    def _tell(self, status: int, reason: str) -> None:
        """Answer with a status, and say in words what is missing: it may be a person who asks, by a browser or curl."""
        text = f"{HERE}: {reason}\n".encode()
        headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(text))]
        headers.append((b"connection", b"close"))
        self._said += self._connection.send(RejectConnection(status_code=status, headers=headers, has_body=True))
        self._said += self._connection.send(RejectData(data=text))

    def _fail(self, code: int, reason: str) -> None:
        self._said += self._connection.send(CloseConnection(code=code))
        raise StreamError(KIND, reason.lower())

    def send(self, data: bytes | bytearray | memoryview) -> bytes:
        """Return the binary message that carries `data`.

        Raises:
            StreamError: The peer has closed.
        """
        if self._connection.state is not ConnectionState.OPEN:
            raise StreamError(KIND, "closed by the peer")
        return b"".join((head_of_binary(len(data)), data))

    def close(self) -> None:
        """Say that the WebSocket ends, as it should."""
        if self.is_open:
            with suppress(LocalProtocolError):  # it was said already
                self._said += self._connection.send(CloseConnection(code=CloseReason.NORMAL_CLOSURE))

    def data_to_send(self) -> bytes:
        """Return answers to the request, to pings, and the end."""
        said = bytes(self._said)
        self._said.clear()
        return said
