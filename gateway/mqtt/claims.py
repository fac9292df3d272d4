"""Sessions that are this gateway's alone: for as long as a connection has them, or waits for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from core.broker import Broker
from core.errors import LmqError
from gateway.runtime.chores import Chores

SESSION_KEY = b"mqtt/session/"  # begins the key that a session is claimed by, before the client identifier


class SessionClaims:
    """The claims of all connections of a door; where a client's next one has come, the claim stays.

    Args:
        broker: Asks the engine.
        chores: Does what is to wait.
        is_leaving: Whether the last session of a client, or its last connection, is still being let go of.
    """

    def __init__(self, broker: Broker, chores: Chores, is_leaving: Callable[[bytes], bool]) -> None:
        self._broker = broker
        self._chores = chores
        self._is_leaving = is_leaving
        self._counts: dict[bytes, int] = {}  # connections, by client

    def claim(self, client_id: bytes, then: Callable[[LmqError | None], None]) -> None:
        """Ask for the session of a client, for one connection, which calls `release` in the end, whatever is told."""
        self._counts[client_id] = self._counts.get(client_id, 0) + 1
        self._broker.claim(SESSION_KEY + client_id, then)

    def release(self, client_id: bytes) -> None:
        """Take back one `claim`; with the last one the session is anybody's, once it is let go of here."""
        self._counts[client_id] -= 1
        if self._counts[client_id]:
            return
        del self._counts[client_id]
        if self._is_leaving(client_id):
            self._chores.start(self._release_later(client_id))
        else:
            self._broker.release(SESSION_KEY + client_id)

    def _release_later(self, client_id: bytes) -> Iterator[None]:
        while self._is_leaving(client_id):
            yield
        if client_id not in self._counts:
            self._broker.release(SESSION_KEY + client_id)
