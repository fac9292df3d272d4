"""We as name server: where a topic's queues are. The answer is always this very process.

Source: docs/protocols/rocketmq.md, "Routes".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from gateway.auth.rule import CLUSTER, TOPIC
from gateway.events import Actor, Kind
from gateway.rocketmq.errors import CommandRefusedError
from gateway.rocketmq.fields import text_field
from gateway.rocketmq.topic_table import PERM_WRITE, Topic, TopicTable
from lmq.remoting.commands import Command, answer, encode_json
from lmq.remoting.response_codes import ResponseCode

MASTER_ID = "0"


class Operator(Protocol):
    """The connection that a request came in by."""

    def may_configure(self, name: bytes, kind: str = TOPIC) -> bool:
        """Whether this client may make, change and remove a topic or group."""

    def actor(self) -> Actor:
        """By whose doing something happens."""


class TopicRoute:
    """Answers 105, 106, 205 and 327.

    Args:
        topics: The topics.
        broker_name: Our name in routes, the same on each start: clients keep their offsets under it.
        cluster: Our cluster's name.
        find_order: Gives the queues of a topic in the order that its maker set, None where it set none.
    """

    def __init__(
        self,
        topics: TopicTable,
        broker_name: str,
        cluster: str,
        find_order: Callable[[str], str | None] = lambda _topic: None,
    ) -> None:
        self._find_order = find_order
        self._topics = topics
        self._broker_name = broker_name
        self._cluster = cluster
        self._is_write_wiped = False

    def get_route(self, request: Command, address: str) -> Command:
        """Answer with the route of a topic: all its queues are at `address`."""
        name = text_field(request, "topic")
        topic = self._topics.find(name.encode())
        if topic is None:
            remark = f"No topic route info in name server for the topic: {name}"
            return answer(request, ResponseCode.TOPIC_NOT_EXIST, remark)
        return answer(request, ResponseCode.SUCCESS, body=self._encode_route(name, topic, address))

    def get_cluster(self, request: Command, address: str) -> Command:
        """Answer with the cluster: one broker."""
        broker = {"brokerAddrs": {MASTER_ID: address}, "brokerName": self._broker_name, "cluster": self._cluster}
        info = {
            "brokerAddrTable": {self._broker_name: broker},
            "clusterAddrTable": {self._cluster: [self._broker_name]},
        }
        return answer(request, ResponseCode.SUCCESS, body=encode_json(info))

    def wipe_write(self, request: Command, operator: Operator) -> Command:
        """Let routes say that no topic is written here, so that producers go elsewhere; until the gateway stops."""
        return self._set_write(request, operator, "wipeTopicCount", is_wiped=True)

    def add_write(self, request: Command, operator: Operator) -> Command:
        """Let routes say again what clients may do with each topic."""
        return self._set_write(request, operator, "addTopicCount", is_wiped=False)

    def _set_write(self, request: Command, operator: Operator, field: str, *, is_wiped: bool) -> Command:
        if not operator.may_configure(b"broker", CLUSTER):
            raise CommandRefusedError(ResponseCode.NO_PERMISSION, "no permission to change what routes say")
        is_ours = text_field(request, "brokerName") == self._broker_name
        if is_ours:
            self._is_write_wiped = is_wiped
            operator.actor().tell(Kind.CHANGED, request="wipeWritePerm" if is_wiped else "addWritePerm")
        count = len(self._topics.names()) if is_ours else 0
        return answer(request, ResponseCode.SUCCESS, ext={field: str(count)})

    def _encode_route(self, name: str, topic: Topic, address: str) -> bytes:
        broker = {
            "brokerAddrs": {MASTER_ID: address},
            "brokerName": self._broker_name,
            "cluster": self._cluster,
            "enableActingMaster": False,
        }
        queues = {
            "brokerName": self._broker_name,
            "perm": topic.perm & ~PERM_WRITE if self._is_write_wiped else topic.perm,
            "readQueueNums": topic.read_queues,
            "topicSysFlag": 0,
            "writeQueueNums": topic.write_queues,
        }
        route: dict[str, object] = {"brokerDatas": [broker], "filterServerTable": {}, "queueDatas": [queues]}
        order = self._find_order(name)
        if order:
            route["orderTopicConf"] = order
        return encode_json(route)
