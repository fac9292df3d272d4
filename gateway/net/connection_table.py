"""The connections that are open now, of all doors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol


class OpenConnection(Protocol):
    """What the table needs of a connection."""

    conn_id: int
    end_reason: str

    @property
    def door(self) -> str:
        """The name of the door that it came in by."""

    def close(self) -> None:
        """Send what was written, then close."""

    def abort(self) -> None:
        """Close now."""


def _nothing() -> None:
    return


class ConnectionTable:
    """Open connections by their number; numbers go up from 1 and are never given twice.

    `on_empty` is called whenever the last one is gone.
    """

    def __init__(self) -> None:
        self._open: dict[int, OpenConnection] = {}
        self._last_id = 0
        self.on_empty: Callable[[], None] = _nothing

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[OpenConnection]:
        return iter(list(self._open.values()))

    def next_id(self) -> int:
        """Return the number of a new connection."""
        self._last_id += 1
        return self._last_id

    def add(self, connection: OpenConnection) -> None:
        """Note that `connection` is open."""
        self._open[connection.conn_id] = connection

    def discard(self, connection: OpenConnection) -> None:
        """Note that `connection` is gone."""
        if self._open.pop(connection.conn_id, None) is not None and not self._open:
            self.on_empty()

    def close_all(self) -> None:
        """Close every connection, sending first what was written."""
        for connection in self:
            connection.end_reason = connection.end_reason or "the gateway stops"
            connection.close()

    def abort_all(self) -> None:
        """Close every connection now."""
        for connection in self:
            connection.abort()
