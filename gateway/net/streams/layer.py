"""A way to carry a byte stream in the bytes of another one, without I/O: TLS, WebSocket, a header in front."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple


class StreamError(Exception):
    """What came is not what the layer carries; the connection ends. `kind` names the layer in counters."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(f"{kind}: {reason}")
        self.kind = kind
        self.reason = reason


class Peer(NamedTuple):
    """What layers know of the peer that the socket does not know.

    `address` is the host and port that the peer really has, `local_address` those that it reached; `name` is its
    user's and `client` its client identifier, both by the peer's certificate, and empty where that does not tell;
    `certificate` is that, in DER, empty where none was verified.
    """

    address: tuple[str, int] | None = None
    local_address: tuple[str, int] | None = None
    name: str = ""
    client: str = ""
    certificate: bytes = b""


class Layer:
    """One end of a stream inside another stream. Above is the handler's side, below the socket's.

    `is_open` says whether what is above may `send`; before that only the layer itself has something to say. A layer
    that `is_done` changes no byte from now on, and nothing need be asked of it. After `is_ended` the peer sends no
    more. A layer whose work grows with its input asks `is_over` at times whether others are to have their turn; then it
    `has_more`, and goes on in the next `receive_data`, which may be of no bytes.
    """

    is_open = False
    is_done = False
    is_ended = False
    has_more = False
    is_over: Callable[[], bool] = staticmethod(lambda: False)

    def receive_data(self, data: bytes) -> bytes:
        """Take bytes from below; return those for above.

        Raises:
            StreamError: They are not what this layer carries. What the peer is told of it is in `data_to_send`.
        """
        raise NotImplementedError

    def send(self, data: bytes | bytearray | memoryview) -> bytes | bytearray | memoryview:
        """Return the bytes below that carry `data`.

        Raises:
            StreamError: Nothing can be sent any more.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Say to the peer that nothing more is sent, in `data_to_send`."""

    def data_to_send(self) -> bytes:
        """Return, once, what the layer itself has to say: answers, alarms, the end."""
        return b""

    def peer(self, known: Peer) -> Peer:
        """Return what is known of the peer with what this layer, which is open, knows."""
        return known


LayerFactory = Callable[[str], Sequence[Layer]]
"""Makes the layers of a connection from a host, from the socket up; may raise `StreamError`."""
