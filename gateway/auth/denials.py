"""What a connection may not do and tries to: said in the log, a few times."""

from __future__ import annotations

import logging

from gateway.events import Actor, Kind
from gateway.logs import said

LOGGER = logging.getLogger(__name__)

SAID_MAX = 16  # lines of one connection; what is denied after them is counted


class Denials:
    """What one connection was denied: a line for each action and name, SAID_MAX at most, and a count at the end."""

    __slots__ = ("_actor", "_told", "_unsaid")

    def __init__(self, actor: Actor) -> None:
        self._actor = actor
        self._told: set[tuple[str, str]] = set()
        self._unsaid = 0

    def note(self, action: str, name: bytes | str, by: str = "") -> None:
        """Note that an action on `name` was denied; `by` is the rule that says so, empty where there is none."""
        key = (action, f"{said(name)} by={by}" if by else said(name))
        if key not in self._told and len(self._told) < SAID_MAX:
            self._told.add(key)
            actor = self._actor
            LOGGER.warning("denied %s conn=%d user=%s name=%s", action, actor.conn_id, said(actor.user), key[1])
            actor.tell(Kind.DENIED, action=action, name=said(name), by=by)
        else:
            self._unsaid += 1

    def end(self) -> None:
        """Say how often something was denied beside the lines; harmless when done before."""
        if self._unsaid:
            actor = self._actor
            LOGGER.warning("denied more conn=%d user=%s count=%d", actor.conn_id, said(actor.user), self._unsaid)
            self._unsaid = 0
