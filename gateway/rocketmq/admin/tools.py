"""Which part of this package answers which request.

Source: docs/protocols/rocketmq.md, "Tools".
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from core.broker import Broker
from gateway.auth.authenticator import Authenticator
from gateway.auth.rule import CLUSTER
from gateway.retention import Retention
from gateway.rocketmq.admin.access_lists import AccessLists
from gateway.rocketmq.admin.access_users import AccessUsers
from gateway.rocketmq.admin.all_progress import AllProgress
from gateway.rocketmq.admin.broker_figures import BrokerFigures
from gateway.rocketmq.admin.broker_settings import BrokerSettings
from gateway.rocketmq.admin.client_calls import ClientCalls
from gateway.rocketmq.admin.consume_queues import ConsumeQueues
from gateway.rocketmq.admin.group_figures import GroupFigures
from gateway.rocketmq.admin.kv_config import KvConfig
from gateway.rocketmq.admin.producers import all_producers, producers_of
from gateway.rocketmq.admin.resets import Resets, Seek
from gateway.rocketmq.admin.topic_figures import TopicFigures
from gateway.rocketmq.admin.works import AdminPeer, Steps, Works
from gateway.rocketmq.calls import Calls
from gateway.rocketmq.client import Client
from gateway.rocketmq.client_table import ClientTable
from gateway.rocketmq.errors import CommandRefusedError
from gateway.rocketmq.topic_table import TopicTable
from gateway.settings.models import RocketmqSettings
from lmq.remoting.commands import Command, answer
from lmq.remoting.request_codes import RequestCode
from lmq.remoting.response_codes import ResponseCode


class AdminTools:
    """Answers what RocketMQ's tools ask for.

    Args:
        broker: The one door of the core.
        topics: The topics.
        clients: The clients that are connected.
        calls: Asks them.
        settings: Gives the door's settings.
        apply: Lets others hold.
        retention: The log's.
        authenticator: Has the users and the rules.
        connected: Gives all clients, also those without a group.
        seek: Lets a group that takes by POP go on from an offset.
    """

    def __init__(
        self,
        broker: Broker,
        topics: TopicTable,
        clients: ClientTable,
        calls: Calls,
        *,
        settings: Callable[[], RocketmqSettings],
        apply: Callable[[RocketmqSettings], None],
        retention: Retention,
        authenticator: Authenticator,
        connected: Callable[[], Collection[Client]],
        seek: Seek,
    ) -> None:
        name, cluster = settings().broker_name, settings().cluster_name
        self._broker = broker
        self.connected = connected
        self.works = Works(broker)
        self.figures = BrokerFigures(broker, topics)
        self.values = KvConfig(broker, broker.table("rocketmq_kv"))
        self.topics = TopicFigures(broker, topics, name, cluster)
        self.groups = GroupFigures(broker, topics, clients, name)
        self.progress = AllProgress(broker, topics, self.groups, name)
        self.queues = ConsumeQueues(broker, topics, clients)
        self.resets = Resets(broker, topics, clients, name, seek)
        self.asking = ClientCalls(broker, clients, calls, name)
        self.settings = BrokerSettings(settings, apply, retention)
        self.lists = AccessLists(broker, authenticator, broker.table("rocketmq_acls"))
        self.users = AccessUsers(broker, authenticator, self.lists.forget_user)

    def ask(self, request: Command, peer: AdminPeer, address: str, now_ms: int) -> Command | None:
        """Answer a request, or see to it that it is answered later and return None.

        Raises:
            CommandRefusedError: It cannot be answered.
        """
        steps = STEPPED.get(request.code)
        if steps is not None:
            self.works.begin(peer, request, steps(self, request, peer, now_ms))
            return None
        if request.code == RequestCode.GET_BROKER_CONSUME_STATS:
            self.works.begin(peer, request, self.progress.tell(request, peer, address))
            return None
        show = ADDRESSED.get(request.code)
        if show is not None:
            return show(self, request, peer, address)
        return AT_ONCE[request.code](self, request, peer, now_ms)

    def clean(self, request: Command, peer: AdminPeer, now_ms: int) -> Command:
        """Let go now of what is past its age or over the size; queues and topics take no room without messages."""
        if not peer.may_configure(b"broker", CLUSTER):
            raise CommandRefusedError(ResponseCode.NO_PERMISSION, "no permission to clean up")
        self._broker.retire(now_ms)
        return answer(request, ResponseCode.SUCCESS)

    def roll_back(self, request: Command, peer: AdminPeer) -> Command:
        """Bring what is taken by POP from one store of official brokers to the other; there is one only here."""
        if not peer.may_configure(b"broker", CLUSTER):
            raise CommandRefusedError(ResponseCode.NO_PERMISSION, "no permission to change how POP is stored")
        return answer(request, ResponseCode.SUCCESS)


STEPPED: dict[int, Callable[[AdminTools, Command, AdminPeer, int], Steps]] = {
    RequestCode.GET_ALL_TOPIC_CONFIG: lambda tools, request, _peer, _: tools.topics.all_settings(request),
    RequestCode.GET_BROKER_RUNTIME_INFO: lambda tools, request, _peer, now_ms: tools.figures.runtime(request, now_ms),
    RequestCode.GET_TOPIC_STATS_INFO: lambda tools, request, peer, _: tools.topics.stats(request, peer),
    RequestCode.GET_PRODUCER_CONNECTION_LIST: lambda tools, request, _peer, _: producers_of(request, tools.connected()),
    RequestCode.GET_CONSUME_STATS: lambda tools, request, peer, _: tools.groups.progress(request, peer),
    RequestCode.QUERY_CONSUME_QUEUE: lambda tools, request, peer, _: tools.queues.tell(request, peer),
    RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: lambda tools, request, peer, now_ms: tools.resets.reset(
        request, peer, now_ms
    ),
    RequestCode.QUERY_TOPIC_CONSUME_BY_WHO: lambda tools, request, _peer, _: tools.groups.groups_of(request),
    RequestCode.QUERY_CONSUME_TIME_SPAN: lambda tools, request, peer, now_ms: tools.groups.spans(request, peer, now_ms),
    RequestCode.GET_ALL_PRODUCER_INFO: lambda tools, request, _peer, now_ms: all_producers(
        request, tools.connected(), now_ms
    ),
    RequestCode.QUERY_TOPICS_BY_CONSUMER: lambda tools, request, _peer, _: tools.groups.topics_of(request),
}
"""What is answered in steps."""

AT_ONCE: dict[int, Callable[[AdminTools, Command, AdminPeer, int], Command | None]] = {
    RequestCode.AUTH_CREATE_USER: lambda tools, request, peer, _: tools.users.create(request, peer),
    RequestCode.AUTH_UPDATE_USER: lambda tools, request, peer, _: tools.users.update(request, peer),
    RequestCode.AUTH_DELETE_USER: lambda tools, request, peer, _: tools.users.delete(request, peer),
    RequestCode.AUTH_GET_USER: lambda tools, request, peer, _: tools.users.get(request, peer),
    RequestCode.AUTH_LIST_USER: lambda tools, request, peer, _: tools.users.list(request, peer),
    RequestCode.AUTH_CREATE_ACL: lambda tools, request, peer, _: tools.lists.create(request, peer),
    RequestCode.AUTH_UPDATE_ACL: lambda tools, request, peer, _: tools.lists.update(request, peer),
    RequestCode.AUTH_DELETE_ACL: lambda tools, request, peer, _: tools.lists.delete(request, peer),
    RequestCode.AUTH_GET_ACL: lambda tools, request, peer, _: tools.lists.get(request, peer),
    RequestCode.AUTH_LIST_ACL: lambda tools, request, peer, _: tools.lists.list(request, peer),
    RequestCode.UPDATE_BROKER_CONFIG: lambda tools, request, peer, _: tools.settings.change(request, peer),
    RequestCode.TRIGGER_DELETE_FILES: AdminTools.clean,
    RequestCode.GET_BROKER_HA_STATUS: lambda tools, request, _peer, _: tools.figures.replication(request),
    RequestCode.PUT_KV_CONFIG: lambda tools, request, peer, _: tools.values.put(request, peer),
    RequestCode.GET_KV_CONFIG: lambda tools, request, _peer, _: tools.values.get(request),
    RequestCode.DELETE_KV_CONFIG: lambda tools, request, peer, _: tools.values.delete(request, peer),
    RequestCode.GET_CONSUMER_CONNECTION_LIST: lambda tools, request, _peer, _: tools.groups.connections(request),
    RequestCode.GET_KVLIST_BY_NAMESPACE: lambda tools, request, _peer, _: tools.values.of_namespace(request),
    RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: lambda tools, request, peer, now_ms: tools.asking.statuses(
        request, peer, now_ms
    ),
    RequestCode.GET_TOPICS_BY_CLUSTER: lambda tools, request, _peer, _: tools.topics.of_cluster(request),
    RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE: AdminTools.clean,
    RequestCode.GET_CONSUMER_RUNNING_INFO: lambda tools, request, peer, now_ms: tools.asking.running_info(
        request, peer, now_ms
    ),
    RequestCode.CONSUME_MESSAGE_DIRECTLY: lambda tools, request, peer, now_ms: tools.asking.consume(
        request, peer, now_ms
    ),
    RequestCode.CLEAN_UNUSED_TOPIC: AdminTools.clean,
    RequestCode.UPDATE_NAMESRV_CONFIG: lambda tools, request, peer, _: tools.settings.change(request, peer),
    RequestCode.DELETE_EXPIRED_COMMITLOG: AdminTools.clean,
    RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER: lambda tools, request, _peer, _: tools.groups.subscription(request),
}
"""What is answered at once, or by another part later."""

ADDRESSED: dict[int, Callable[[AdminTools, Command, AdminPeer, str], Command]] = {
    RequestCode.GET_BROKER_CONFIG: lambda tools, request, peer, address: tools.settings.show(request, peer, address),
    RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS: lambda tools, request, _peer, address: tools.topics.system(
        request, address
    ),
    RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: lambda tools, request, _peer, address: tools.topics.system(
        request, address
    ),
    RequestCode.GET_NAMESRV_CONFIG: lambda tools, request, peer, address: tools.settings.show(request, peer, address),
}
"""What names our address."""

TOOL_CODES = frozenset((*STEPPED, *AT_ONCE, *ADDRESSED, RequestCode.GET_BROKER_CONSUME_STATS))
