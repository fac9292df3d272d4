"""The AMQP door."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set as AbstractSet
from functools import partial

from gateway.amqp.ack_timeouts import CHECK_INTERVAL_MS, STEP_CHANNELS, Overdue, check_all
from gateway.amqp.channel import Channel
from gateway.amqp.handler import AmqpHandler
from gateway.amqp.inventory import AmqpInventory, channels_of
from gateway.amqp.services import AmqpServices, OpenConnection
from gateway.amqp.turned_away import TurnedAway
from gateway.door import Address, Door, Interval, Listen, find_listening
from gateway.inventory import take_each
from gateway.net.protocol import HandlerFactory, Transport
from gateway.settings.models import AmqpSettings, GatewaySettings

LEASE_INTERVAL_MS = 1_000  # a queue that nobody uses goes so much late at most
EXPIRY_INTERVAL_MS = 250  # a tick of the loop's coarse timer, which calls no more often


class AmqpDoor(AmqpServices, Door):
    """All AMQP connections of one gateway, and the virtual hosts."""

    name = "amqp"

    @property
    def limits(self) -> AmqpSettings:
        """How many connections may be open."""
        return self.settings

    @property
    def accepts_rate(self) -> int:
        """How many connections a second are accepted."""
        return self.settings.connects_rate

    @property
    def handlers(self) -> AbstractSet[OpenConnection]:
        """All connections."""
        return self.connections

    def connect(self, transport: Transport) -> AmqpHandler:
        """Return the handler of a new connection."""
        handler = AmqpHandler(self, transport)
        self.note_open(handler)
        return handler

    def refuser(self) -> HandlerFactory:
        """Return what tells clients that are refused why they are."""
        return partial(TurnedAway, self)

    def start(self, now_ms: int) -> None:
        """Bring back what is durable; then connections may come."""
        self.vhosts.load([self.settings.mqtt_vhost, *self.settings.vhosts], now_ms)
        self.broker.hold(self.vhosts.floors)

    def on_started(self, now_ms: int) -> None:
        """Nothing to do: letters that were left are finished where their queues are loaded."""

    def stop(self, now_ms: int) -> None:
        """Tell all clients that the gateway goes down."""
        for connection in list(self.connections):
            connection.shut_down(now_ms)
        self.vhosts.finish(now_ms)

    def let_go(self) -> None:
        """Take exchanges and long lists of queues apart."""
        self.vhosts.let_go()

    def reload(self, settings: GatewaySettings) -> None:
        """Offer to new connections what these settings say; what a user may publish to is found out anew."""
        self.change(settings.amqp)
        self.vhosts.find_routes_anew()
        self.vhosts.make_all(settings.amqp.vhosts)

    def listens(self) -> list[Listen]:
        """Return the door's one address."""
        return find_listening("amqp", self.settings.listen)

    async def on_listening(self, bound: Mapping[str, Address]) -> None:
        """Nothing to do: clients are told no address."""

    def intervals(self) -> list[Interval]:
        """Return how often queues are looked for that nobody uses, and messages that are dead letters by now."""
        return [
            Interval(LEASE_INTERVAL_MS, self.vhosts.remove_unused),
            Interval(EXPIRY_INTERVAL_MS, self.vhosts.expire_first),
            Interval(CHECK_INTERVAL_MS, self.check_acknowledgements),
        ]

    def check_acknowledgements(self, now_ms: int) -> None:
        """Close channels whose consumers leave a delivery unacknowledged for too long."""
        if self.checking is None:
            self.checking = check_all(self._channels(now_ms), self.settings.consumer_timeout_ms, now_ms)
            self.vhosts.chores.start(self._check(), is_long=len(self.connections) > STEP_CHANNELS)

    def _check(self) -> Iterator[None]:
        try:
            yield from self.checking or ()
        finally:
            self.checking = None

    def _channels(self, now_ms: int) -> Iterator[tuple[Channel, Overdue] | None]:
        """Give the channels that wait for acknowledgements, each with how it is closed; None where none does."""
        for one in take_each(self.connections):
            waiting = [channel for channel in channels_of(one) if channel.unacked.live or channel.ack_marks]
            if not waiting:
                yield None
            for channel in waiting:
                yield channel, partial(one.close_channel, now_ms)

    def tend(self, now_ms: int) -> None:
        """Drop expired messages."""
        self.vhosts.drop_expired(now_ms)

    def read_departed(self) -> None:
        """Let the connections end that are held back, and whose peers are gone."""
        self.held.read_departed()

    def inventory(self) -> AmqpInventory:
        """Return what the door has."""
        return AmqpInventory(self)
