"""Which connections the admin door takes: so many at once, and so many a second, as at the other doors."""

from __future__ import annotations

import logging
from collections.abc import Callable

from gateway.net.limits import LISTENER_FULL
from gateway.net.paces import Paces

LOGGER = logging.getLogger(__name__)

CONNECTIONS_MAX = 64  # the file descriptors that are kept for this door
FULL = "connections_max"


class Gate:
    """That of one address.

    Args:
        paces: How fast connections come; None: as fast as they like.
        connections_max: Open at once by it, 0: as many as any address has.
        is_proxied: Hosts are told by proxies, once a connection has said something.
        note: Told why one is turned away.
    """

    def __init__(
        self,
        paces: Paces | None = None,
        connections_max: int = 0,
        *,
        is_proxied: bool = False,
        note: Callable[[str], None] | None = None,
    ) -> None:
        self._paces = paces
        self._connections_max = min(connections_max or CONNECTIONS_MAX, CONNECTIONS_MAX)
        self._full = LISTENER_FULL if self._connections_max < CONNECTIONS_MAX else FULL
        self.is_proxied = is_proxied
        self._note = note

    def refuses(self, host: str, count: int) -> bool:
        """Return whether one more connection is turned away, of `count` that are open; say so, and count it."""
        if count >= self._connections_max:
            return self._turn_away(host, self._full)
        if self._paces is None:
            return False
        reason = self._paces.refusal("" if self.is_proxied else host)
        return bool(reason) and self._turn_away(host, reason)

    def refuses_told(self, host: str) -> bool:
        """Return the same of one that was let in, and that a proxy tells the host of."""
        reason = "" if self._paces is None or not self.is_proxied else self._paces.host_refusal(host)
        return bool(reason) and self._turn_away(host, reason)

    def _turn_away(self, host: str, reason: str) -> bool:
        if self._note is not None:
            self._note(reason)
        LOGGER.warning("refused connection door=admin peer=%s reason=%s", host, reason)
        return True


OPEN = Gate()
