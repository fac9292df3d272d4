"""What all connections of the AMQP door work with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from core.broker import Broker
from core.lmq.topic_space import routing_key_from_topic
from gateway.amqp.channel import Channel
from gateway.amqp.definition_rows import DEFAULT_VHOST
from gateway.amqp.delivery_codec import DeliveryEncoder
from gateway.amqp.errors import AmqpError
from gateway.amqp.events import CutterPool
from gateway.amqp.handshake import ConnectionLimits
from gateway.amqp.offer import limits_of
from gateway.amqp.out_pace import OutPace
from gateway.amqp.output import ConnectionOutput
from gateway.amqp.queues import VirtualHost
from gateway.amqp.virtual_hosts import VirtualHosts
from gateway.auth.authenticator import Authenticator
from gateway.auth.mechanisms import offered_proofs
from gateway.auth.recheck import Visitor
from gateway.events import Actor
from gateway.net.held_publishers import HeldPublishers
from gateway.net.protocol import Transport
from gateway.pacing import Pacing, make_pacing
from gateway.settings.models import AmqpSettings
from gateway.settings.way_names import Ways

BATCH_MESSAGES_MAX = 2_048  # of one run: 128 KiB of columns


class OpenConnection(Visitor, Protocol):
    """A connection of the door."""

    @property
    def transport(self) -> Transport:
        """Its output."""

    @property
    def vhost(self) -> VirtualHost | None:
        """The virtual host that it is in; None before it chose one."""

    @property
    def output(self) -> ConnectionOutput:
        """What it writes to, which has its state and channels."""

    @property
    def client(self) -> str:
        """What the client calls the connection, empty where it has not said."""

    def shut_down(self, now_ms: int) -> None:
        """Close because the gateway stops."""

    def close_channel(self, now_ms: int, channel: Channel, error: AmqpError) -> None:
        """Close a channel for what its client left undone."""


class AmqpServices:
    """The parts of one door, and which connections are open.

    Args:
        broker: The one door of the core.
        settings: The door's settings.
        authenticator: Says which clients may come in.
    """

    def __init__(self, broker: Broker, settings: AmqpSettings, authenticator: Authenticator) -> None:
        self.broker = broker
        self.settings = settings
        self.authenticator = authenticator
        self.metrics = broker.metrics.door("amqp")
        self.held = HeldPublishers(broker.room, self.metrics)
        self.vhosts = VirtualHosts(broker, settings.mqtt_vhost)
        self.vhosts.drop_rights = lambda name: authenticator.stored.drop_vhost(name)  # noqa: PLW0108 - others may be kept
        self.cutters = CutterPool(BATCH_MESSAGES_MAX)
        self.encoder = DeliveryEncoder(routing_key_from_topic)
        self.connections: set[OpenConnection] = set()
        self._offers: dict[tuple[bool, tuple[str, ...]], ConnectionLimits] = {}
        self.checking: Iterator[None] | None = None  # a walk over all channels that is under way

    @property
    def vhost(self) -> VirtualHost:
        """The virtual host that is there where nobody says anything else."""
        found = self.vhosts.find(DEFAULT_VHOST)
        assert found is not None
        return found

    @property
    def offer(self) -> ConnectionLimits:
        """What is offered to a new connection without a certificate."""
        return self.offer_to("")

    def offer_to(self, certified: str, ways: Ways = None) -> ConnectionLimits:
        """Return what is offered to a new connection, whose certificate names its user unless that is empty."""
        key = bool(certified), offered_proofs(self.authenticator, ways)
        found = self._offers.get(key)
        if found is None:
            bytes_max = self.broker.message_bytes_max
            found = self._offers[key] = limits_of(self.settings, bytes_max, is_certified=key[0], proofs=key[1])
        return found

    def change(self, settings: AmqpSettings) -> None:
        """Offer to new connections what these settings say."""
        self.settings = settings
        self._offers.clear()

    def find_pacing(self, connection: OpenConnection, now_ms: int) -> Pacing | None:
        """Return how fast a connection may publish, None where there is no limit: also to those of the admin API."""
        settings, identity = self.settings, connection.identity
        if identity is None or not connection.transport.conn_id:
            return None
        of_user = self.authenticator.quotas.find_rates(identity.user, now_ms)
        shared = connection.transport.shared.incoming
        return make_pacing(settings.messages_rate, settings.bytes_rate, of_user, now_ms, *shared)

    def find_out_pace(self, connection: OpenConnection, now_ms: int) -> OutPace | None:
        """Return how fast a connection is sent messages, None where there is no limit: also to those of the API."""
        settings, identity = self.settings, connection.identity
        if identity is None or not connection.transport.conn_id:
            return None
        of_user = self.authenticator.quotas.find_out_rates(identity.user, now_ms)
        shared = connection.transport.shared.outgoing
        pacing = make_pacing(settings.messages_out_rate, settings.bytes_out_rate, of_user, now_ms, *shared)
        if pacing is None:
            return None
        return OutPace(pacing, connection.transport, self.authenticator.clock.now_ms)

    def actor(self, transport: Transport, user: str) -> Actor:
        """Return by whose doing things happen on a connection."""
        return Actor(self.authenticator.events, "amqp", transport.conn_id, transport.peer, user)

    def note_open(self, connection: OpenConnection) -> None:
        """Count a new connection."""
        self.connections.add(connection)
        self.metrics.connections += 1
        self.metrics.connections_total += 1

    def forget(self, connection: OpenConnection) -> None:
        """Forget a connection that is gone."""
        self.connections.discard(connection)
        if connection.identity is not None:
            self.authenticator.quotas.leave(connection.identity.user, connection)
        self.metrics.connections -= 1
