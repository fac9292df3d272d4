"""The RocketMQ door: name server and broker in one, on any number of listening addresses that all answer both.

Source: docs/protocols/rocketmq.md.
"""

from __future__ import annotations

import calendar
import datetime as dt
import logging
import os
from collections.abc import Callable, Iterator

from core.broker import Broker
from core.errors import LmqError
from core.metrics import DoorMetrics
from core.properties import encode_origin
from gateway.address import format_address
from gateway.auth.authenticator import Authenticator, Credentials, Identity, LoginAnswer
from gateway.auth.denials import Denials
from gateway.auth.login_log import log_refusal
from gateway.auth.recheck import TURNED_OUT
from gateway.net.protocol import ConnectionHandler, Transport
from gateway.rocketmq.assignment import Assignment
from gateway.rocketmq.client_table import Client, ClientTable
from gateway.rocketmq.codec import Frames
from gateway.rocketmq.commands import Command, answer, encode_command
from gateway.rocketmq.connection import Connection
from gateway.rocketmq.consumer_manage import ConsumerManage
from gateway.rocketmq.delay import DelayService
from gateway.rocketmq.errors import CommandRefusedError, FrameError, response_code_of
from gateway.rocketmq.group_table import GroupTable
from gateway.rocketmq.message_query import MessageQueries
from gateway.rocketmq.pull import HeldPull, PullService
from gateway.rocketmq.request_codes import NOT_BUILT, RequestCode
from gateway.rocketmq.response_codes import ResponseCode
from gateway.rocketmq.send import SendService
from gateway.rocketmq.send_back import SendBack
from gateway.rocketmq.send_route import Sender
from gateway.rocketmq.send_run import SendRun
from gateway.rocketmq.store_host import plain_host
from gateway.rocketmq.topic_admin import TopicAdmin
from gateway.rocketmq.topic_route import TopicRoute
from gateway.rocketmq.topic_table import TopicTable
from gateway.settings import RocketmqSettings

LOGGER = logging.getLogger(__name__)

PROPERTIES_BYTES_MAX = 32_767 - 128  # of a message's own: room for what the log adds


class RocketmqDoor:
    """What all connections of the door share.

    Args:
        broker: The one door of the core.
        settings: The door's settings.
        authenticator: Who may come in.
    """

    def __init__(self, broker: Broker, settings: RocketmqSettings, authenticator: Authenticator) -> None:
        self.broker = broker
        self.settings = settings
        self.authenticator = authenticator
        self.metrics: DoorMetrics = broker.metrics.door("rocketmq")
        self.frames = Frames()
        self.run = SendRun(settings.body_bytes_max, PROPERTIES_BYTES_MAX)
        self.topics = topics = TopicTable(
            broker.table("rocketmq_topics"),
            broker.parent_topic,
            topics_max=settings.topics_max,
            makes_topics=settings.auto_create_topics,
            queues=settings.auto_topic_queues,
        )
        self.groups = groups = GroupTable(broker.table("rocketmq_groups"))
        self.clients = ClientTable(lambda name: groups.get(name).notifyConsumerIdsChangedEnable)
        self.routes = TopicRoute(topics, settings.broker_name, settings.cluster_name)
        self.sends = SendService(broker, topics, groups, self.clients, self.metrics)
        self.backs = SendBack(broker, topics, groups, self.sends)
        self.delays = DelayService(broker, self.metrics)
        self.queries = MessageQueries(broker, topics)
        self.admin = TopicAdmin(broker, topics, groups)
        self.assignment = Assignment(topics, self.clients, settings.broker_name)
        self.pulls = PullService(broker, topics, groups, self.clients, self.metrics)
        self.offsets = ConsumerManage(broker, topics)
        self.functions = self._list_functions() | self._list_admin_functions()
        self.broker_port = 0  # where the broker listens, once it is known
        self._uniq = UniqPrefix(os.getpid())
        self.handlers: set[RocketmqHandler] = set()

    def _list_functions(self) -> dict[int, Function]:
        """Return what answers each request code, but for sends, pulls and heartbeats."""
        offsets, clients, routes, backs = self.offsets, self.clients, self.routes, self.backs
        return {
            RequestCode.GET_ROUTEINFO_BY_TOPIC: lambda peer, request, _: routes.get_route(
                request, self.address_text(peer.transport)
            ),
            RequestCode.GET_BROKER_CLUSTER_INFO: lambda peer, request, _: routes.get_cluster(
                request, self.address_text(peer.transport)
            ),
            RequestCode.UNREGISTER_CLIENT: lambda peer, request, _: clients.unregister(peer.client, request),
            RequestCode.GET_CONSUMER_LIST_BY_GROUP: lambda _peer, request, _: clients.list_members(request),
            RequestCode.CHECK_CLIENT_CONFIG: lambda _peer, request, _: clients.check_config(request),
            RequestCode.LOCK_BATCH_MQ: lambda _peer, request, now_ms: clients.lock_queues(request, now_ms),
            RequestCode.UNLOCK_BATCH_MQ: lambda _peer, request, _: clients.unlock_queues(request),
            RequestCode.QUERY_CONSUMER_OFFSET: lambda _peer, request, _: offsets.query_offset(request),
            RequestCode.UPDATE_CONSUMER_OFFSET: lambda _peer, request, _: offsets.update_offset(request),
            RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: lambda _peer, request, _: offsets.search_offset(request),
            RequestCode.GET_MAX_OFFSET: lambda _peer, request, _: offsets.max_offset(request),
            RequestCode.GET_MIN_OFFSET: lambda _peer, request, _: offsets.min_offset(request),
            RequestCode.GET_EARLIEST_MSG_STORETIME: lambda _peer, request, _: offsets.earliest_store_time(request),
            RequestCode.CONSUMER_SEND_MSG_BACK: lambda peer, request, now_ms: backs.send_back(
                request, peer.may_read, peer.write, now_ms
            ),
            RequestCode.VIEW_MESSAGE_BY_ID: lambda peer, request, _: offsets.view_message(request, peer.may_read),
        }

    def reload(self, settings: RocketmqSettings) -> None:
        """Go by other settings from now on; our names and addresses stay."""
        self.settings = settings
        self.run.body_bytes_max = settings.body_bytes_max
        self.topics.reload(
            topics_max=settings.topics_max,
            makes_topics=settings.auto_create_topics,
            queues=settings.auto_topic_queues,
        )

    def _list_admin_functions(self) -> dict[int, Function]:
        """Return what answers the requests of RocketMQ's tools."""
        admin, queries, assignment = self.admin, self.queries, self.assignment
        return {
            RequestCode.QUERY_MESSAGE: lambda peer, request, now_ms: queries.query(
                peer, peer.transport.conn_id, request, now_ms
            ),
            RequestCode.UPDATE_AND_CREATE_TOPIC: lambda peer, request, _: admin.set_topic(request, peer),
            RequestCode.DELETE_TOPIC_IN_BROKER: lambda peer, request, _: admin.delete_topic(request, peer),
            RequestCode.DELETE_TOPIC_IN_NAMESRV: lambda peer, request, _: admin.delete_topic(request, peer),
            RequestCode.GET_TOPIC_CONFIG: lambda _peer, request, _: admin.get_topic(request),
            RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: lambda _peer, request, _: admin.list_topics(request),
            RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: lambda peer, request, _: admin.set_group(request, peer),
            RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG: lambda _peer, request, _: admin.get_group(request),
            RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: lambda _peer, request, _: admin.list_groups(request),
            RequestCode.DELETE_SUBSCRIPTIONGROUP: lambda peer, request, _: admin.delete_group(request, peer),
            RequestCode.QUERY_ASSIGNMENT: lambda _peer, request, _: assignment.query(request),
            RequestCode.SET_MESSAGE_REQUEST_MODE: lambda _peer, request, _: assignment.set_mode(request),
        }

    def connect(self, transport: Transport) -> RocketmqHandler:
        """Return the handler of a new connection."""
        handler = RocketmqHandler(self, transport)
        self.handlers.add(handler)
        return handler

    def forget(self, handler: RocketmqHandler) -> None:
        """A connection is closed."""
        self.handlers.discard(handler)
        self.metrics.connections -= 1

    def start(self, now_ms: int) -> None:
        """Nothing to load: the tables are read when they are asked."""

    def stop(self, now_ms: int) -> None:
        """Nothing to save: what is durable is written when it changes."""

    def uniq_prefix(self, now_ms: int) -> bytes:
        """Return the first digits of the keys that messages without one are given now."""
        return self._uniq.at(now_ms)

    def address_for(self, transport: Transport) -> tuple[str, int]:
        """Return our address as this peer can reach it: as the settings say, else where it reached us."""
        host, port = transport.local_address
        return self.settings.advertised_host or host, self.settings.advertised_port or self.broker_port or port

    def address_text(self, transport: Transport) -> str:
        """Return that address as routes carry it."""
        return format_address(*self.address_for(transport))


class UniqPrefix:
    """The first 28 digits of a UNIQ_KEY: address, process, a number of our own, milliseconds of the month."""

    def __init__(self, pid: int) -> None:
        self._start = b"7F000001%04X4C4D5147" % (pid & 0xFFFF)
        self._month_ms = 0
        self._month_until_ms = 0

    def at(self, now_ms: int) -> bytes:
        """Return the digits for this moment."""
        if not self._month_ms <= now_ms < self._month_until_ms:
            self._find_month(now_ms)
        return b"%b%08X" % (self._start, (now_ms - self._month_ms) & 0xFFFFFFFF)

    def _find_month(self, now_ms: int) -> None:
        day = dt.datetime.fromtimestamp(now_ms / 1000, dt.UTC)
        first = dt.datetime(day.year, day.month, 1, tzinfo=dt.UTC)
        days = calendar.monthrange(day.year, day.month)[1]
        self._month_ms = int(first.timestamp()) * 1000
        self._month_until_ms = self._month_ms + days * 86_400_000


class Beat:
    """A heartbeat, which may name thousands of subscriptions, and what is left of taking it in."""

    __slots__ = ("answer", "request", "steps")

    def __init__(self, request: Command, steps: Iterator[None]) -> None:
        self.request = request
        self.answer = answer(
            request, ResponseCode.SUCCESS, ext={"IS_SUPPORT_HEART_BEAT_V2": "false", "IS_SUB_CHANGE": "false"}
        )
        self.steps = steps


class RocketmqHandler(ConnectionHandler):
    """One connection: requests in, answers out, pulls held in between."""

    def __init__(self, door: RocketmqDoor, transport: Transport) -> None:
        self.held: dict[int, HeldPull] = {}
        self._door = door
        self.transport = transport
        self.client = Client(transport)
        self._connection = Connection(
            door.frames, door.run, door.settings.frame_bytes_max, plain_host(transport.peer_host)
        )
        self._sender: Sender | None = None
        self.identity: Identity | None = None
        self._denials: Denials | None = None  # made when something is denied
        self._beat: Beat | None = None  # a heartbeat that is not all taken in
        self._idle_until_ms = 0  # the first call of the timer, at once, sets it
        self._held_until_ms = 0  # the first deadline of the held pulls, or one before it
        door.metrics.connections += 1
        door.metrics.connections_total += 1
        self._name_origin()
        door.authenticator.begin(Credentials("rocketmq", None, None, transport.peer), self._finish_login)

    def _finish_login(self, answer: LoginAnswer, now_ms: int) -> None:
        del now_ms
        if isinstance(answer, Identity):
            self.identity = answer
            self._name_origin()
        else:
            log_refusal(self.transport.conn_id, self.transport.peer, b"", b"", answer.value)

    # The transport calls these.

    def on_data(self, data: bytes, now_ms: int) -> bool:
        """Answer what came; a peer that sends no frames is closed."""
        self._connection.receive_data(data)
        return self.go_on(now_ms)

    def go_on(self, now_ms: int) -> bool:
        """Answer some more of it."""
        self._idle_until_ms = now_ms + self._door.settings.idle_timeout_ms
        has_more = False
        try:
            has_more = self._act(now_ms)
        except FrameError as error:
            self._door.metrics.refuse("malformed_frame")
            LOGGER.warning(
                "closing connection: malformed frame conn=%d peer=%s reason=%s",
                self.transport.conn_id,
                self.transport.peer,
                error.reason,
            )
            self._hang_up("malformed_frame")
            return False
        if not self.transport.is_writable:
            self.transport.pause_reading()
        return has_more

    def _act(self, now_ms: int) -> bool:
        """Answer what came, event by event; return whether something is left because others are to have their turn.

        Something is also left where the peer does not read its answers.
        """
        if self._beat is not None and not self._go_on_with_beat(self._beat):
            return True
        connection = self._connection
        transport = self.transport
        for event in connection.events(self._door.uniq_prefix(now_ms)):
            if isinstance(event, SendRun):
                self._store(event, now_ms)
            else:
                self._handle(event, now_ms)
            is_beating = self._beat is not None and not self._go_on_with_beat(self._beat)
            if is_beating or transport.is_share_over() or not transport.is_writable:
                connection.unread(event)
                return True
        return False

    def _go_on_with_beat(self, beat: Beat) -> bool:
        """Take in some more of a heartbeat; answer and return True once that is all."""
        while not self.transport.is_share_over():
            try:
                next(beat.steps)
            except StopIteration:
                self._beat = None
                self._name_origin()
                self._answer(beat.request, beat.answer)
                return True
        return False

    def on_eof(self, now_ms: int) -> None:  # noqa: ARG002 - the interface says so
        """The peer sends no more: what it sent is answered when it is durable, a pull that waits is not."""
        self._door.broker.durability.when_durable(self.transport.close)

    def on_writable(self, now_ms: int) -> None:  # noqa: ARG002 - the interface says so
        """Go on reading requests and answering held pulls."""
        self.transport.resume_reading()
        for pull in list(self.held.values()):
            self._door.broker.request_run(pull)

    def on_closed(self, now_ms: int) -> None:  # noqa: ARG002 - the interface says so
        """Forget the client, its groups and its pulls."""
        for pull in list(self.held.values()):
            self._door.pulls.forget(pull)
        self._door.clients.drop(self.client)
        self._door.forget(self)
        self._door.queries.forget(self.transport.conn_id)
        if self._denials is not None:
            self._denials.end()
        self._sender = self._beat = None  # refer back here: what is closed is not to wait for the collector of cycles

    def on_timer(self, now_ms: int) -> None:
        """Answer the pulls whose time is over; close a connection that was silent for too long."""
        if self.held:
            self._idle_until_ms = max(self._idle_until_ms, now_ms + self._door.settings.idle_timeout_ms)
            for pull in [pull for pull in self.held.values() if pull.deadline_ms <= now_ms]:
                self._door.pulls.resume(pull, now_ms)
            self._held_until_ms = min((pull.deadline_ms for pull in self.held.values()), default=0)
        elif not self._idle_until_ms:
            self._idle_until_ms = now_ms + self._door.settings.idle_timeout_ms
        elif self._idle_until_ms <= now_ms:
            self._hang_up("idle for too long")

    def _hang_up(self, why: str) -> None:
        self.transport.end_reason = why
        self.transport.close()

    def next_deadline_ms(self) -> int | None:
        """Return when the next held pull, or the connection's patience, ends."""
        return self._held_until_ms if self.held else self._idle_until_ms

    # The request families call these.

    @property
    def is_writable(self) -> bool:
        """Whether an answer may be written now."""
        return self.transport.is_writable

    def write(self, data: bytes | memoryview) -> None:
        """Send `data`, which may be used again after the call where it is not `bytes`."""
        self.transport.write(data)

    def is_share_over(self) -> bool:
        """Whether others are to have their turn."""
        return self.transport.is_share_over()

    def may_read(self, queue: bytes) -> bool:
        """Whether this client may read the queue or topic."""
        is_allowed = self.identity is not None and self.identity.may.may_subscribe(queue)
        if not is_allowed:
            self._note_denied("read", queue)
        return is_allowed

    def may_publish(self, topic: bytes) -> bool:
        """Whether this client may send to the topic."""
        is_allowed = self.identity is not None and self.identity.may.may_publish(topic)
        if not is_allowed:
            self._note_denied("publish", topic)
        return is_allowed

    def _note_denied(self, action: str, name: bytes) -> None:
        if self._denials is None:
            self._denials = Denials(self.transport.conn_id, self.identity.user if self.identity is not None else "")
        self._denials.note(action, name)

    def may_configure(self, name: bytes) -> bool:
        """Whether this client may make, change and remove the topic or group."""
        is_allowed = self.identity is not None and self.identity.may.may_configure(b"/", name)
        if not is_allowed:
            self._note_denied("configure", name)
        return is_allowed

    def turn_out(self, now_ms: int) -> None:  # noqa: ARG002 - as the other doors
        """Close because clients may not come in any more as this one did."""
        self._door.metrics.refuse("turned_out")
        self._hang_up(TURNED_OUT)

    def hold(self, pull: HeldPull) -> None:
        """Keep a pull that waits."""
        if not self.held or pull.deadline_ms < self._held_until_ms:
            self._held_until_ms = pull.deadline_ms
        self.held[id(pull)] = pull

    # Requests

    def _store(self, run: SendRun, now_ms: int) -> None:
        self._door.sends.store(self._get_sender(), run, now_ms)

    def _get_sender(self) -> Sender:
        if self._sender is None:
            host = self._door.broker.store.store_host
            host_hex = host.hex().upper().encode()
            self._sender = Sender(self.write, self.may_publish, host_hex, self.is_share_over)
        return self._sender

    def _handle(self, request: Command, now_ms: int) -> None:
        """Answer one request; none is so wrong that it costs the connection."""
        if request.is_response:
            return
        try:
            response = self._ask(request, now_ms)
        except CommandRefusedError as refusal:
            response = answer(request, refusal.code, refusal.remark)
        except LmqError as error:
            response = answer(request, response_code_of(error), str(error))
        if response is not None:
            self._answer(request, response)

    def _answer(self, request: Command, response: Command) -> None:
        if response.code != ResponseCode.SUCCESS:
            self._door.metrics.refuse(f"code_{response.code}")
        if not request.is_one_way:
            self.transport.write(encode_command(response))

    def _ask(self, request: Command, now_ms: int) -> Command | None:
        if self.identity is None:
            raise CommandRefusedError(ResponseCode.NO_PERMISSION, "this gateway lets no client in without a name")
        code = request.code
        if code in PULLS:
            pulls = self._door.pulls
            pulls.pull(self, request, now_ms)
            return None
        if code in SENDS:
            self._door.sends.send_one(self._get_sender(), self._door.run, request, now_ms)
            return None
        if code == RequestCode.HEART_BEAT:
            self._beat = Beat(request, self._door.clients.heart_beat(self.client, request))
            return None
        function = self._door.functions.get(code)
        if function is None and code in NOT_BUILT:
            raise CommandRefusedError(ResponseCode.SYSTEM_ERROR, f"{NOT_BUILT[code]}: not supported by this broker")
        if function is None:
            raise CommandRefusedError(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, f" request type {code} not supported")
        return function(self, request, now_ms)

    def _name_origin(self) -> None:
        user = self.identity.user if self.identity is not None else ""
        self._connection.origin = encode_origin(b"rocketmq", self.client.client_id.encode(), user.encode())


Function = Callable[[RocketmqHandler, Command, int], Command | None]
"""Answers a request, or sees to it that it is answered later and returns None."""
PULLS = frozenset((RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE))
SENDS = frozenset((RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE))
