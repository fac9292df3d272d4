"""How much of one connection is read before all others have their turn."""

from __future__ import annotations

from core.broker import Broker
from core.lmq.waiters import Reader
from gateway.net.protocol import Transport

TURN_BYTES_MAX = 512 * 1_024
_TURN_BYTES_MAX = TURN_BYTES_MAX


class Pace(Reader):
    """Stops reading a connection that sent a lot until the broker's next turn.

    Else a fast publisher is read again and again, and its readers wait.
    """

    __slots__ = ("_broker", "_taken_bytes", "_transport")

    def __init__(self, broker: Broker, transport: Transport) -> None:
        self._broker = broker
        self._transport = transport
        self._taken_bytes = 0

    def note_taken(self, size: int) -> None:
        """Take note that `size` bytes came."""
        self._taken_bytes += size
        if self._taken_bytes > _TURN_BYTES_MAX:
            self._transport.pause_reading()
            self._broker.request_run(self)

    def on_ready(self, now_ms: int) -> bool:  # noqa: ARG002 - the interface says so
        """Read on: everybody else had their turn."""
        self._taken_bytes = 0
        self._transport.resume_reading()
        return False

    def end(self) -> None:
        """The connection is gone."""
        self._broker.cancel_run(self)
