"""Which part of the door answers which request; sends, pulls and heartbeats are the handler's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from gateway.events import Actor
from gateway.net.protocol import Transport
from gateway.rocketmq.admin.tools import TOOL_CODES
from gateway.rocketmq.client import Client
from gateway.rocketmq.consumer_manage import LaterAnswered
from gateway.rocketmq.held import Held
from gateway.rocketmq.held_table import HeldTable
from gateway.rocketmq.message_query import Asker
from gateway.rocketmq.services import RocketmqServices
from gateway.rocketmq.topic_admin import AdminPeer
from lmq.remoting.commands import Command
from lmq.remoting.request_codes import CUT, POP_CODES, RequestCode


class Peer(Asker, AdminPeer, LaterAnswered, Protocol):
    """The connection that a request came in by."""

    transport: Transport
    client: Client
    held: HeldTable

    @property
    def is_writable(self) -> bool:
        """Whether an answer with messages may be written now."""

    def hold(self, held: Held) -> None:
        """Keep a request that waits."""

    def may_publish(self, name: bytes) -> bool:
        """Whether this client may send to the topic or light queue."""

    def may_publish_topic(self, topic: bytes) -> bool:
        """Whether this client may send to the topic of the topic space."""

    def find_administrator(self) -> Actor | None:
        """By whose doing something happens, where this client's user may do everything; else None."""

    def store_one(self, request: Command, write: Callable[[bytes], None], now_ms: int) -> None:
        """Store one send; `write` gets its answer."""


Function = Callable[[RocketmqServices, Peer, Command, int], Command | None]
"""Answers a request, or sees to it that it is answered later and returns None."""


def _delete_group(door: RocketmqServices, peer: Peer, request: Command, now_ms: int) -> None:  # noqa: ARG001
    """Forget what was set of a group, and, where the client wants that, what it took by POP."""

    def drop(group: bytes) -> None:
        door.claims.drop(group)
        door.pops.look_again(group)

    door.admin.delete_group(request, peer, drop)


FUNCTIONS: dict[int, Function] = {
    RequestCode.GET_ROUTEINFO_BY_TOPIC: lambda door, peer, request, _: door.routes.get_route(
        request, door.address_text(peer.transport)
    ),
    RequestCode.GET_BROKER_CLUSTER_INFO: lambda door, peer, request, _: door.routes.get_cluster(
        request, door.address_text(peer.transport)
    ),
    RequestCode.WIPE_WRITE_PERM_OF_BROKER: lambda door, peer, request, _: door.routes.wipe_write(request, peer),
    RequestCode.ADD_WRITE_PERM_OF_BROKER: lambda door, peer, request, _: door.routes.add_write(request, peer),
    RequestCode.UNREGISTER_CLIENT: lambda door, peer, request, _: door.clients.unregister(peer.client, request),
    RequestCode.GET_CONSUMER_LIST_BY_GROUP: lambda door, _peer, request, _: door.clients.list_members(request),
    RequestCode.END_TRANSACTION: lambda door, peer, request, _: door.transactions.end(request, peer),
    RequestCode.CHECK_CLIENT_CONFIG: lambda door, _peer, request, _: door.clients.check_config(request),
    RequestCode.LOCK_BATCH_MQ: lambda door, peer, request, now_ms: door.clients.lock_queues(
        request, peer.may_read, now_ms, may_consume=peer.may_consume
    ),
    RequestCode.UNLOCK_BATCH_MQ: lambda door, peer, request, _: door.clients.unlock_queues(request, peer.may_read),
    RequestCode.QUERY_CONSUMER_OFFSET: lambda door, peer, request, _: door.offsets.query_offset(request, peer),
    RequestCode.UPDATE_CONSUMER_OFFSET: lambda door, peer, request, _: door.offsets.update_offset(request, peer),
    RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: lambda door, peer, request, _: door.offsets.search_offset(request, peer),
    RequestCode.GET_MAX_OFFSET: lambda door, peer, request, _: door.offsets.max_offset(request, peer),
    RequestCode.GET_MIN_OFFSET: lambda door, peer, request, _: door.offsets.min_offset(request, peer),
    RequestCode.GET_EARLIEST_MSG_STORETIME: lambda door, peer, request, _: door.offsets.earliest_store_time(
        request, peer
    ),
    RequestCode.CONSUMER_SEND_MSG_BACK: lambda door, peer, request, now_ms: door.backs.send_back(request, peer, now_ms),
    RequestCode.SEND_REPLY_MESSAGE: lambda door, peer, request, now_ms: door.replies.reply(request, peer, now_ms),
    RequestCode.SEND_REPLY_MESSAGE_V2: lambda door, peer, request, now_ms: door.replies.reply(request, peer, now_ms),
    RequestCode.VIEW_MESSAGE_BY_ID: lambda door, peer, request, _: door.offsets.view_message(request, peer),
    RequestCode.RECALL_MESSAGE: lambda door, peer, request, now_ms: door.sends.recall(
        request, peer.may_publish, peer.write, now_ms
    ),
    RequestCode.QUERY_MESSAGE: lambda door, peer, request, now_ms: door.queries.query(
        peer, peer.transport.conn_id, request, now_ms
    ),
    RequestCode.UPDATE_AND_CREATE_TOPIC: lambda door, peer, request, _: door.admin.set_topic(request, peer),
    RequestCode.DELETE_TOPIC_IN_BROKER: lambda door, peer, request, _: door.admin.delete_topic(request, peer),
    RequestCode.DELETE_TOPIC_IN_NAMESRV: lambda door, peer, request, _: door.admin.delete_topic(request, peer),
    RequestCode.GET_TOPIC_CONFIG: lambda door, _peer, request, _: door.admin.get_topic(request),
    RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: lambda door, _peer, request, _: door.admin.list_topics(request),
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: lambda door, peer, request, _: door.admin.set_group(request, peer),
    RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG: lambda door, _peer, request, _: door.admin.get_group(request),
    RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: lambda door, _peer, request, _: door.admin.list_groups(request),
    RequestCode.DELETE_SUBSCRIPTIONGROUP: _delete_group,
    RequestCode.QUERY_ASSIGNMENT: lambda door, _peer, request, _: door.assignment.query(request),
    RequestCode.SET_MESSAGE_REQUEST_MODE: lambda door, peer, request, _: door.assignment.set_mode(request, peer),
    RequestCode.POP_MESSAGE: lambda door, peer, request, now_ms: door.pops.pop(peer, request, now_ms),
    RequestCode.PEEK_MESSAGE: lambda door, peer, request, now_ms: door.peeks.peek(peer, request, now_ms),
    RequestCode.NOTIFICATION: lambda door, peer, request, now_ms: door.pops.notify(peer, request, now_ms),
    RequestCode.POP_ROLLBACK: lambda door, peer, request, _: door.tools.roll_back(request, peer),
    RequestCode.POLLING_INFO: lambda door, peer, request, _: door.pops.count_polls(peer, request),
    RequestCode.ACK_MESSAGE: lambda door, peer, request, _: door.settling.ack(peer, request),
    RequestCode.BATCH_ACK_MESSAGE: lambda door, peer, request, _: door.settling.ack_batch(peer, request),
    RequestCode.CHANGE_MESSAGE_INVISIBLETIME: lambda door, peer, request, now_ms: door.settling.change_invisible(
        peer, request, now_ms
    ),
}
FUNCTIONS |= {code & CUT: FUNCTIONS[code] for code in POP_CODES}
FUNCTIONS |= dict.fromkeys(
    TOOL_CODES,
    lambda door, peer, request, now_ms: door.tools.ask(request, peer, door.address_text(peer.transport), now_ms),
)
PULLS = frozenset((RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE))
SENDS = frozenset((RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE))
