"""What all connections of the RocketMQ door work with."""

from __future__ import annotations

import os
from functools import partial
from typing import Protocol

from core.broker import Broker
from core.metrics import DoorMetrics
from core.properties import encode_properties
from gateway.address import format_address
from gateway.auth.authenticator import Authenticator
from gateway.auth.credentials import Identity
from gateway.auth.recheck import Visitor
from gateway.events import Actor
from gateway.net.protocol import Transport
from gateway.pacing import Pacing, UserRates, make_pacing
from gateway.retention import Retention
from gateway.rocketmq.admin.kv_config import ORDERED_TOPICS
from gateway.rocketmq.admin.tools import AdminTools
from gateway.rocketmq.assignment import Assignment
from gateway.rocketmq.calls import Calls
from gateway.rocketmq.client import Client
from gateway.rocketmq.client_table import ClientTable
from gateway.rocketmq.connection import FramePool, Limits
from gateway.rocketmq.consumer_manage import ConsumerManage
from gateway.rocketmq.delay import DelayService
from gateway.rocketmq.group_table import ROWS as GROUP_ROWS, GroupTable
from gateway.rocketmq.letters import Letters
from gateway.rocketmq.message_query import MessageQueries
from gateway.rocketmq.moved_places import watch_first_places
from gateway.rocketmq.pop.claims import Claims
from gateway.rocketmq.pop.dead import DeadLetters
from gateway.rocketmq.pop.peeking import Peeker
from gateway.rocketmq.pop.service import PopService
from gateway.rocketmq.pop.settling import Settling
from gateway.rocketmq.pop.taking import Taker
from gateway.rocketmq.pull import PullService
from gateway.rocketmq.replies import Replies, reply_topic
from gateway.rocketmq.request_modes import RequestModes
from gateway.rocketmq.retried import Retried
from gateway.rocketmq.send import SendService
from gateway.rocketmq.send_back import SendBack
from gateway.rocketmq.send_pace import SendPace
from gateway.rocketmq.send_run import RunPool
from gateway.rocketmq.timed import TimedMessages
from gateway.rocketmq.topic_admin import TopicAdmin
from gateway.rocketmq.topic_route import TopicRoute
from gateway.rocketmq.topic_table import ROWS as TOPIC_ROWS, TopicTable
from gateway.rocketmq.transactions.checks import Times
from gateway.rocketmq.transactions.service import Transactions
from gateway.rocketmq.uniq_key import UniqPrefix
from gateway.settings.delay_levels import parse_delay_levels
from gateway.settings.models import RocketmqSettings
from lmq.remoting.frames import FRAMES_MAX

PROPERTIES_BYTES_MAX = 32_767 - 128  # of a message's own: room for what the log adds


class OpenConnection(Visitor, Protocol):
    """A connection of the door."""

    transport: Transport
    client: Client
    own_rates: UserRates
    own_out_rates: UserRates


class RocketmqServices:
    """The parts of one door, and which connections are open.

    Args:
        broker: The one door of the core.
        settings: The door's settings.
        authenticator: Lets clients in.
        retention: The log's, which operators see and change here too.
    """

    def __init__(
        self, broker: Broker, settings: RocketmqSettings, authenticator: Authenticator, retention: Retention
    ) -> None:
        self.broker = broker
        self.settings = settings
        self.authenticator = authenticator
        self.metrics: DoorMetrics = broker.metrics.door("rocketmq")
        self.frames = FramePool(FRAMES_MAX)
        cluster = settings.cluster_name.encode()
        self.runs = RunPool(settings.body_bytes_max, PROPERTIES_BYTES_MAX, encode_properties([(b"CLUSTER", cluster)]))
        self.bounds = Limits(settings.frame_bytes_max, settings.idle_timeout_ms)
        self.topics = topics = TopicTable(
            broker.table("rocketmq_topics", TOPIC_ROWS),
            broker.parent_topic,
            topics_max=settings.topics_max,
            makes_topics=settings.auto_create_topics,
            queues=settings.auto_topic_queues,
            reply_topic=reply_topic(cluster),
        )
        self.groups = groups = GroupTable(broker.table("rocketmq_groups", GROUP_ROWS))
        self.clients = ClientTable(lambda name: groups.get(name).notifyConsumerIdsChangedEnable)
        self.calls = Calls()
        self.timed = TimedMessages(broker, topics, settings.broker_name)
        self.delays = DelayService(broker, self.metrics, parse_delay_levels(settings.delay_levels))
        self.sends = SendService(
            broker, topics, groups, self.clients, delays=self.delays, timed=self.timed, metrics=self.metrics
        )
        self.replies = Replies(self.clients, self.calls)
        self.backs = SendBack(broker, topics, groups, self.sends, self.delays)
        self.letters = Letters(broker, topics)
        self.transactions = Transactions(
            broker, self.clients.producers, broker_name=settings.broker_name, times=check_times(settings)
        )
        self.queries = MessageQueries(broker, topics)
        self.admin = TopicAdmin(broker, topics, groups, self.clients)
        modes = RequestModes(broker.table("rocketmq_request_modes"))
        self.assignment = Assignment(topics, self.clients, modes, settings.broker_name)
        self.retried = Retried(self.metrics)
        self.pulls = PullService(broker, topics, groups, self.clients, self.metrics, retried=self.retried)
        self.offsets = ConsumerManage(broker, topics)
        watch_first_places(broker)
        self.claims = Claims(broker, self.offsets.is_young)
        dead = DeadLetters(broker, groups, self.backs)
        taker = Taker(broker, self.claims, dead, self.metrics, settings.broker_name, retried=self.retried)
        self.pops = PopService(broker, topics, groups, taker)
        self.peeks = Peeker(broker, self.claims, self.pops)
        self.settling = Settling(broker, topics, self.claims, self.pops.note_settled)
        self.tools = self._make_tools(retention)
        find_order = partial(self.tools.values.find, ORDERED_TOPICS)
        self.routes = TopicRoute(topics, settings.broker_name, settings.cluster_name, find_order)
        self.broker_port = 0  # where the broker listens, once it is known
        self.uniq = UniqPrefix(os.getpid())
        self.connections: set[OpenConnection] = set()

    def _make_tools(self, retention: Retention) -> AdminTools:
        return AdminTools(
            self.broker,
            self.topics,
            self.clients,
            self.calls,
            settings=lambda: self.settings,
            apply=self.apply,
            retention=retention,
            authenticator=self.authenticator,
            connected=lambda: [connection.client for connection in self.connections],
            seek=self.claims.reset,
        )

    def apply(self, settings: RocketmqSettings) -> None:
        """Go by other settings from now on; our names and addresses stay."""
        self.settings = settings
        self.runs.body_bytes_max = settings.body_bytes_max
        self.bounds.frame_bytes_max = settings.frame_bytes_max
        self.bounds.idle_timeout_ms = settings.idle_timeout_ms
        self.delays.reload(parse_delay_levels(settings.delay_levels))
        self.transactions.reload(check_times(settings))
        self.topics.reload(
            topics_max=settings.topics_max,
            makes_topics=settings.auto_create_topics,
            queues=settings.auto_topic_queues,
        )

    def actor(self, transport: Transport, user: str) -> Actor:
        """Return by whose doing things happen on a connection."""
        return Actor(self.authenticator.events, "rocketmq", transport.conn_id, transport.peer, user)

    def note_open(self, connection: OpenConnection) -> None:
        """Count a new connection."""
        self.connections.add(connection)
        self.metrics.connections += 1
        self.metrics.connections_total += 1

    def may_be(self, connection: OpenConnection, identity: Identity) -> bool:
        """Count a connection to its user, and to no other any more; False where the user has as many as may be."""
        quotas, before = self.authenticator.quotas, connection.identity
        if before is not None and before.user != identity.user:
            quotas.leave(before.user, connection)
        return quotas.enter(identity.user, connection) is None

    def find_pace(self, connection: OpenConnection, now_ms: int) -> SendPace | None:
        """Return how fast a connection may send, None where there is no limit."""
        identity = connection.identity
        of_user = None if identity is None else self.authenticator.quotas.find_rates(identity.user, now_ms)
        pacing = make_pacing(0, 0, of_user, now_ms, connection.own_rates, *connection.transport.shared.incoming)
        return None if pacing is None else SendPace(pacing.begin(now_ms))

    def find_out_pacing(self, connection: OpenConnection, now_ms: int) -> Pacing | None:
        """Return how fast a connection is given messages, None where there is no limit."""
        identity = connection.identity
        of_user = None if identity is None else self.authenticator.quotas.find_out_rates(identity.user, now_ms)
        shared = connection.transport.shared.outgoing
        pacing = make_pacing(0, 0, of_user, now_ms, connection.own_out_rates, *shared)
        return None if pacing is None else pacing.begin(now_ms)

    def forget(self, connection: OpenConnection) -> None:
        """Forget a connection that is closed."""
        self.connections.discard(connection)
        if connection.identity is not None:
            self.authenticator.quotas.leave(connection.identity.user, connection)
        self.metrics.connections -= 1

    def address_for(self, transport: Transport) -> tuple[str, int]:
        """Return our address as this peer can reach it: as the settings say, else where it reached us."""
        host, port = transport.local_address
        return self.settings.advertised_host or host, self.settings.advertised_port or self.broker_port or port

    def address_text(self, transport: Transport) -> str:
        """Return that address as routes carry it."""
        return format_address(*self.address_for(transport))


def check_times(settings: RocketmqSettings) -> Times:
    """Return when producers are asked about their transactions."""
    return Times(
        settings.transaction_timeout_ms, settings.transaction_check_interval_ms, settings.transaction_checks_max
    )
