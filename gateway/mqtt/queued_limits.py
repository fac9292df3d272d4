"""How much may wait for each client: as the settings say, or less by the address of its client."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from gateway.mqtt.session import Session

_ROW = struct.Struct(">QQ")  # messages, bytes


class RowTable(Protocol):
    """A durable map."""

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Give all keys and values."""

    def put(self, key: bytes, value: bytes) -> None:
        """Set the value of `key`."""

    def delete(self, key: bytes) -> None:
        """Remove `key`."""


class WaitingMax(NamedTuple):
    """What may wait for a client, by all its subscriptions, 0 for any number of each."""

    messages: int = 0
    size: int = 0  # bytes of their bodies

    def within(self, other: WaitingMax) -> WaitingMax:
        """Return the lower of each limit of both."""
        return WaitingMax(_lower(self.messages, other.messages), _lower(self.size, other.size))


NO_MAX = WaitingMax()


class QueuedLimits:
    """The limits of sessions whose clients came in by addresses with such limits; durable as the sessions are.

    Args:
        rows: Where they are written down, by client identifier.
        general: What the settings say for all sessions.
    """

    def __init__(self, rows: RowTable, general: WaitingMax) -> None:
        self.general = general
        self._rows = rows
        self._own = {client_id: WaitingMax(*_ROW.unpack(row)) for client_id, row in rows.items()}

    @property
    def has_any(self) -> bool:
        """Whether there is a limit at all."""
        return bool(self._own) or self.general != NO_MAX

    @property
    def has_bytes(self) -> bool:
        """Whether bytes may have to be counted."""
        return bool(self._own) or self.general.size > 0

    def own_clients(self) -> list[bytes]:
        """Return the clients whose sessions have limits of their own."""
        return list(self._own)

    def is_own(self, client_id: bytes) -> bool:
        """Return whether a client's session has limits of its own."""
        return client_id in self._own

    def of(self, session: Session) -> WaitingMax:
        """Return what may wait for a session."""
        return self.of_client(session.client_id)

    def of_client(self, client_id: bytes) -> WaitingMax:
        """Return what may wait for a client's session."""
        own = self._own.get(client_id)
        return self.general if own is None else own.within(self.general)

    def note(self, session: Session, own: WaitingMax) -> None:
        """Go by the limits of the address that the session's client came in by now."""
        client_id = session.client_id
        if own == self._own.get(client_id, NO_MAX):
            return
        if own == NO_MAX:
            self.forget(client_id)
            return
        self._own[client_id] = own
        if session.is_persistent:
            self._rows.put(client_id, _ROW.pack(*own))

    def forget(self, client_id: bytes) -> None:
        """Forget the limits of a client's session."""
        if self._own.pop(client_id, None) is not None:
            self._rows.delete(client_id)


def _lower(one: int, other: int) -> int:
    return min(one or other, other or one)
