"""The RocketMQ door: name server and broker in one, on any number of listening addresses that all answer both.

Source: docs/protocols/rocketmq.md.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Set as AbstractSet

from gateway.auth.recheck import Visitor
from gateway.door import Address, Door, Interval, Listen, find_listening
from gateway.net.protocol import Transport
from gateway.rocketmq.admin.rates import INTERVAL_MS
from gateway.rocketmq.handler import RocketmqHandler
from gateway.rocketmq.inventory import RocketmqInventory
from gateway.rocketmq.services import RocketmqServices
from gateway.rocketmq.store_host import DEFAULT_ADDRESS, LOOPBACK, find_host, pack_address
from gateway.runtime.loop import TICK_MS
from gateway.settings.listen import TlsSettings
from gateway.settings.models import GatewaySettings, RocketmqSettings

LOGGER = logging.getLogger(__name__)

BROKER = "broker"
NAMESRV = "namesrv"
CALLS_INTERVAL_MS = 1_000  # so much later at most a client is given up that does not answer
FLOORS_INTERVAL_MS = 1_000  # how far POP consumers are is asked by operators
DELAY_INTERVAL_MS = TICK_MS  # what waits on a level is seen so soon; when it is due, an alarm rings


class RocketmqDoor(RocketmqServices, Door):
    """All RocketMQ connections of one gateway."""

    name = "rocketmq"

    @property
    def limits(self) -> RocketmqSettings:
        """How many connections may be open."""
        return self.settings

    @property
    def accepts_rate(self) -> int:
        """How many connections a second are accepted."""
        return self.settings.connects_rate

    @property
    def handlers(self) -> AbstractSet[Visitor]:
        """All connections."""
        return self.connections

    def connect(self, transport: Transport) -> RocketmqHandler:
        """Return the handler of a new connection."""
        handler = RocketmqHandler(self, transport)
        self.note_open(handler)
        return handler

    def start(self, now_ms: int) -> None:
        """Note when that was; there is nothing to load, the tables are read when they are asked."""
        self.tools.figures.note(now_ms)

    def on_started(self, now_ms: int) -> None:
        """Nothing to do: what waits for its moment is the timer's."""

    def stop(self, now_ms: int) -> None:  # noqa: ARG002 - the interface says so
        """Note how far groups are; what else is durable is written when it changes."""
        self.claims.commit_floors()

    def let_go(self) -> None:
        """Nothing to do: there is nothing here that the collector does not see."""

    def reload(self, settings: GatewaySettings) -> None:
        """Go by other settings from now on; our names and addresses stay."""
        self.apply(settings.rocketmq)

    def listens(self) -> list[Listen]:
        """Return the broker's addresses and the name server's; those with TLS take clients without it too.

        Not so where clients have to show a certificate, unless the settings say it.
        """
        found = [*find_listening(BROKER, self.settings.broker), *find_listening(NAMESRV, self.settings.namesrv)]
        return [listen._replace(tls=_with_choice(listen.tls)) for listen in found]

    async def on_listening(self, bound: Mapping[str, Address]) -> None:
        """Stamp records with the address at which clients reach the broker: message ids send them there."""
        if BROKER in bound:
            self.broker_port = bound[BROKER][1]
        settings = self.settings
        named_host, named_port = self.broker.named_address
        host, port = bound.get(BROKER) or bound.get(NAMESRV) or DEFAULT_ADDRESS
        named = named_host or settings.advertised_host or host
        found = await asyncio.to_thread(find_host, named)
        if found is None:
            LOGGER.warning(
                "rocketmq.advertised_host is not known here, message ids carry another address host=%s", named
            )
            found = await asyncio.to_thread(find_host, host) or LOOPBACK
        port = settings.advertised_port or port if named_port is None else named_port
        self.broker.set_store_host(pack_address(found, port))

    def intervals(self) -> list[Interval]:
        """Return how often the door looks for what is due: delayed messages, transactions, calls, groups' offsets."""
        return [
            Interval(DELAY_INTERVAL_MS, self.delays.deliver_due),
            Interval(TICK_MS, self.transactions.look),
            Interval(CALLS_INTERVAL_MS, self.calls.expire),
            Interval(INTERVAL_MS, self.tools.figures.note),
            Interval(FLOORS_INTERVAL_MS, self.look_after_pops),
        ]

    def tend(self, now_ms: int) -> None:  # noqa: ARG002 - the interface says so
        """Let go of what is kept for groups that consumed by POP and do so no more."""
        self.pops.tend()
        self.claims.rest()

    def look_after_pops(self, now_ms: int) -> None:
        """Note how far groups are in what they popped, and count what is in flight."""
        self.broker.lasting_endings.pass_time(now_ms + FLOORS_INTERVAL_MS)  # first places come without a moment
        self.claims.commit_floors()
        if self.claims.count_in_flight():
            self.pops.note_room()

    def read_departed(self) -> None:
        """Nothing to do: no connection is held back, a send is answered that the system is busy."""

    def inventory(self) -> RocketmqInventory:
        """Return what the door has."""
        return RocketmqInventory(self)


def _with_choice(tls: TlsSettings | None) -> TlsSettings | None:
    """Return what TLS is, with RocketMQ's usual choice where the settings make none: `tls.server.mode=permissive`."""
    if tls is None or tls.optional is not None:
        return tls
    return tls.model_copy(update={"optional": tls.client_ca is None})
