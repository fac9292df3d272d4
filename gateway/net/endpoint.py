"""What all connections of one door share, and which newcomers are let in."""

from __future__ import annotations

import logging

from gateway.events import Events
from gateway.net.admission import Admission
from gateway.net.connection_table import ConnectionTable
from gateway.net.limits import ConnectionLimits, ListenerLimits
from gateway.net.protocol import HandlerFactory
from gateway.net.shares import Shares
from gateway.runtime import Clock, CoarseTimer, TurnRunner

LOGGER = logging.getLogger(__name__)


class Endpoint:
    """What all connections of one door share."""

    __slots__ = (
        "admission",
        "clock",
        "connect",
        "connections",
        "events",
        "limits",
        "name",
        "refused",
        "shares",
        "table",
        "timer",
        "turn_away",
        "turns",
    )

    def __init__(
        self,
        name: str,
        connect: HandlerFactory,
        *,
        clock: Clock,
        timer: CoarseTimer,
        table: ConnectionTable,
        limits: ConnectionLimits,
        refused: dict[str, int],
        turns: TurnRunner,
        admission: Admission,
        shares: Shares,
        turn_away: HandlerFactory | None = None,
        events: Events | None = None,
    ) -> None:
        self.name = name
        self.connect = connect
        self.connections = 0  # open now, those of `at` apart
        self.clock = clock
        self.timer = timer
        self.table = table
        self.limits = limits
        self.refused = refused  # connections that were turned away, by reason
        self.turns = turns
        self.admission = admission
        self.shares = shares
        self.events = events or Events()
        self.turn_away = turn_away  # gives connections their handlers that are refused and to be told so

    def at(self, connect: HandlerFactory, connections_max: int) -> Endpoint:
        """Return the endpoint of one of the door's addresses, which may have a maximum of its own, 0 for none."""
        return Endpoint(
            self.name,
            connect,
            clock=self.clock,
            timer=self.timer,
            table=self.table,
            limits=ListenerLimits(connections_max, self.limits) if connections_max else self.limits,
            refused=self.refused,
            turns=self.turns,
            admission=self.admission,
            shares=self.shares,
            turn_away=self.turn_away,
            events=self.events,
        )

    def find_refusal(self, host: str) -> str:
        """Return why another connection of `host` is not let in, which the log says, or an empty text and count it."""
        reason = self.limits.refusal(host)
        if reason:
            self.note_refused(host, reason, reason)
        return reason

    def may_tell(self) -> bool:
        """Return whether a connection that is refused is told so, and count it until `limits.release_turned`."""
        return self.turn_away is not None and self.limits.enter_turned()

    def may_speak_for(self, host: str, peer: str) -> bool:
        """Return whether `host` may have one more connection, which was let in without a host; else say why not."""
        reason = self.limits.host_refusal(host)
        if reason:
            self.note_refused(peer, reason, reason)
        return not reason

    def note_refused(self, peer: str, kind: str, reason: str) -> None:
        """Count a connection that is turned away, by its kind, and say so."""
        self.refused[kind] = self.refused.get(kind, 0) + 1
        LOGGER.warning("refused connection door=%s peer=%s reason=%s", self.name, peer, reason)
