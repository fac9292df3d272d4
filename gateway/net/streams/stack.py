"""The layers of one connection, one on the other; the lowest meets the socket."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gateway.net.streams.layer import Layer, Peer


class Stack:
    """A stream inside streams; to its user it is like one layer.

    Args:
        layers: From the socket up, at least one.
        is_over: Tells them whether others are to have their turn.
    """

    __slots__ = ("_layers", "_said", "has_more", "is_ended", "is_open", "peer")

    def __init__(self, layers: Sequence[Layer], is_over: Callable[[], bool] | None = None) -> None:
        self._layers = list(layers)
        if is_over is not None:
            for layer in self._layers:
                layer.is_over = is_over
        self.has_more = False  # a layer left some of what it was given, for a call without bytes
        self._said: list[bytes] = []  # what layers have to say, as it goes to the socket
        self.is_open = False
        self.is_ended = False  # the peer sends no more
        self.peer = Peer()  # whole once it is open

    @property
    def is_done(self) -> bool:
        """Whether no layer changes a byte any more: the socket's bytes are the handler's."""
        return not self._layers

    def receive_data(self, data: bytes) -> bytes:
        """Take the socket's bytes; return those for the handler.

        Raises:
            StreamError: As a layer's.
        """
        if self.is_ended and not self.has_more:
            return b""
        self.has_more = False
        for number, layer in enumerate(self._layers):
            if not data and not layer.has_more:
                continue
            try:
                data = layer.receive_data(data)
            finally:
                self._say(number, layer)
            self.is_ended = self.is_ended or layer.is_ended
            self.has_more = self.has_more or layer.has_more
        if not self.is_open:
            self._look_whether_open()
        return data

    def _look_whether_open(self) -> None:
        self.is_open = all(layer.is_open for layer in self._layers)
        for layer in list(self._layers):
            if self.is_open or layer.is_done:
                self.peer = layer.peer(self.peer)
            if layer.is_done:
                self._layers.remove(layer)

    def send(self, data: bytes | bytearray | memoryview) -> bytes | bytearray | memoryview:
        """Return the socket's bytes that carry `data`.

        Raises:
            StreamError: As a layer's.
        """
        for layer in reversed(self._layers):
            data = layer.send(data)
        return data

    def close(self) -> None:
        """Have each layer say that nothing more is sent, the highest first."""
        for number in range(len(self._layers) - 1, -1, -1):
            layer = self._layers[number]
            layer.close()
            self._say(number, layer)

    def data_to_send(self) -> bytes:
        """Return, once, what the layers themselves have to say."""
        said, self._said = self._said, []
        return b"".join(said)

    def _say(self, number: int, layer: Layer) -> None:
        """Note what a layer has to say, carried by those below it."""
        data: bytes | bytearray | memoryview = layer.data_to_send()
        if data:
            for lower in reversed(self._layers[:number]):
                data = lower.send(data)
            self._said.append(bytes(data))
