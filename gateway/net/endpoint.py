"""What all connections of one door share, and which newcomers are let in."""

from __future__ import annotations

import logging

from gateway.events import Actor, Events, Kind
from gateway.logs import tell
from gateway.net.admission import Admission
from gateway.net.connection_table import ConnectionTable
from gateway.net.limits import ConnectionLimits, ListenerLimits
from gateway.net.paces import NO_LIMITS, AddressRates, Connects, ListenerRates, Paces
from gateway.net.protocol import HandlerFactory, Transport
from gateway.net.shares import Shares
from gateway.runtime.loop import Clock, CoarseTimer, TurnRunner
from gateway.settings.limits import AddressLimitsSettings
from gateway.settings.way_names import Ways

LOGGER = logging.getLogger(__name__)
CONNECTIONS = logging.getLogger("gateway.net.transport")  # the name that operators look for


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
        "paces",
        "refused",
        "shares",
        "table",
        "timer",
        "turn_away",
        "turns",
        "ways",
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
        paces: Paces | None = None,
        turn_away: HandlerFactory | None = None,
        events: Events | None = None,
        ways: Ways = None,
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
        self.paces = paces or Paces(Connects(), AddressRates(AddressLimitsSettings()), clock.now_ms)
        self.ways = ways  # the authenticators that count, None: all
        self.turn_away = turn_away  # gives connections their handlers that are refused and to be told so

    def at(
        self, connect: HandlerFactory, connections_max: int, rates: ListenerRates = NO_LIMITS, ways: Ways = None
    ) -> Endpoint:
        """Return the endpoint of one of the door's addresses, which may have limits and ways in of its own."""
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
            paces=self.paces.at(rates),
            turn_away=self.turn_away,
            events=self.events,
            ways=ways,
        )

    def find_refusal(self, host: str) -> str:
        """Return why another connection of `host` is not let in, which the log says, or an empty text and count it."""
        reason = self.paces.refusal(host) or self.limits.refusal(host)
        if reason:
            self.note_refused(host, reason, reason)
        return reason

    def may_tell(self) -> bool:
        """Return whether a connection that is refused is told so, and count it until `limits.release_turned`."""
        return self.turn_away is not None and self.limits.enter_turned()

    def find_host_refusal(self, host: str, peer: str) -> str:
        """Return why `host` may not have one more connection, which was let in without a host, or an empty text."""
        reason = self.paces.host_refusal(host) or self.limits.host_refusal(host)
        if reason:
            self.note_refused(peer, reason, reason)
        return reason

    def note_refused(self, peer: str, kind: str, reason: str) -> None:
        """Count a connection that is turned away, by its kind, and say so."""
        self.refused[kind] = self.refused.get(kind, 0) + 1
        self.events.churn.note_connection(self.name, peer, reason)
        LOGGER.warning("refused connection door=%s peer=%s reason=%s", self.name, peer, reason)

    def tell_connected(self, connection: Transport) -> None:
        """Say that a connection came that is let in."""
        tell(CONNECTIONS, "connected conn=%d door=%s peer=%s", connection.conn_id, self.name, connection.peer)
        self.events.churn.note_connection(self.name, connection.peer)
        if self.events.is_heard:
            self.events.tell(Kind.CONNECTION_CREATED, self._actor(connection))

    def tell_lost(self, connection: Transport, reason: str) -> None:
        """Say that a connection is gone that was let in."""
        said = "disconnected conn=%d door=%s peer=%s reason=%s"
        tell(CONNECTIONS, said, connection.conn_id, self.name, connection.peer, reason)
        if self.events.is_heard:
            self.events.tell(Kind.CONNECTION_CLOSED, self._actor(connection), reason=reason)

    def _actor(self, connection: Transport) -> Actor:
        return Actor(self.events, self.name, connection.conn_id, connection.peer)

    def release(self, host: str, refusal: str) -> None:
        """Count a connection no more that is gone, by the host that the limits know it by."""
        self.connections -= 1
        if refusal:
            self.limits.release_turned()
        else:
            self.limits.release(host)
