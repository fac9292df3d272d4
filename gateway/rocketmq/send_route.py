"""Where sends go: a topic's queue, light queues, the topic space, a delay level, or nowhere, once for each target.

Source: docs/protocols/rocketmq.md, "Sends".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, cast

from core.broker import Broker
from core.cache_budget import Cache
from core.errors import QueueError
from core.lmq.queue_name import is_light
from core.message import Route
from gateway.events import Actor, Kind
from gateway.rocketmq.delay import DelayService, waiting_prefix
from gateway.rocketmq.errors import CommandRefusedError, response_code_of
from gateway.rocketmq.group_table import GroupTable
from gateway.rocketmq.send_run import (
    HALF,
    REFUSED_BODY,
    REFUSED_DELAY,
    REFUSED_HALF,
    REFUSED_HALF_LATER,
    REFUSED_NO_GROUP,
    REFUSED_PROPERTIES,
    REFUSED_TEXT,
    REFUSED_TIMED,
    SendTarget,
)
from gateway.rocketmq.topic_table import DEAD_PREFIX, RETRY_PREFIX, TopicTable, check_topic_name, is_topic_name
from gateway.rocketmq.transactions.half import half_route
from lmq.remoting.response_codes import ResponseCode

SPACE_TOPIC_BYTES_MAX = 65_535  # MQTT's limit
GROUP_PREFIXES = (RETRY_PREFIX, DEAD_PREFIX)

REFUSALS = {
    REFUSED_TIMED: "timer message illegal: its moment is no number, or more than 400 days off",
    REFUSED_HALF: "only the broker commits: a message is sent as a half one, or without a transaction",
    REFUSED_HALF_LATER: "a half message of a transaction cannot be delayed",
    REFUSED_NO_GROUP: "a half message of a transaction names no producer group: PGROUP",
    REFUSED_TEXT: "the message properties are not UTF-8",
    REFUSED_PROPERTIES: "the message properties exceed the maximum length",
    REFUSED_BODY: "the message body exceeds the maximum size",
    REFUSED_DELAY: "the delay level is no number",
}


class Sender:
    """What sends need to know of the connection that they came in by."""

    def __init__(
        self,
        write: Callable[[bytes], None],
        may_publish: Callable[[bytes], bool],
        may_publish_topic: Callable[[bytes], bool],
        host_hex: bytes,
        is_share_over: Callable[[], bool],
        *,
        actor: Callable[[], Actor],
    ) -> None:
        self.write = write
        self.is_share_over = is_share_over  # whether others are to have their turn
        self.may_publish = may_publish  # to a topic or light queue
        self.may_publish_topic = may_publish_topic  # of the topic space
        self.host_hex = host_hex  # our own address, for message ids
        self.actor = actor  # by whose doing topics are made


Decision = Route | CommandRefusedError
"""Where a target's messages go, or why they go nowhere."""


class GroupLocks(Protocol):
    """Which groups consume in order: the client table."""

    def holds_locks(self, group: str, now_ms: int) -> bool:
        """Return whether a member of the group has a queue locked."""


class SendRoutes:
    """Decides where a target's messages go, and remembers it."""

    def __init__(
        self, broker: Broker, topics: TopicTable, groups: GroupTable, locks: GroupLocks, delays: DelayService
    ) -> None:
        self._broker = broker
        self._delays = delays
        self._topics = topics
        self._groups = groups
        self._locks = locks
        self._routes = Cache(broker.caches, "rocketmq_routes", Route.measure)  # by what a target says of the way
        self._made_count = 0
        self._next_queue = 0
        topics.on_changed.append(self._routes.clear)
        delays.on_changed.append(self._routes.clear)

    @property
    def made_count(self) -> int:
        """How many routes were made so far: each is dear."""
        return self._made_count + self._broker.router.made_count

    def decide(self, sender: Sender, target: SendTarget, now_ms: int) -> Decision:
        """Return where messages go that want to go to `target`, which is changed where they go elsewhere."""
        try:
            if target.topic.startswith(GROUP_PREFIXES):
                self._see_to_retry(target, now_ms)
            return self._route(sender, target)
        except CommandRefusedError as refusal:
            return refusal
        except QueueError as error:
            return CommandRefusedError(response_code_of(error), str(error))

    def _see_to_retry(self, target: SendTarget, now_ms: int) -> None:
        """Let a message that a consumer sends to its retry topic go to its group alone, or to the dead letters.

        A group that consumes in order has tried it on the spot, as often as it wanted to.
        """
        if target.delay_level == HALF:
            raise CommandRefusedError(ResponseCode.MESSAGE_ILLEGAL, "no transaction ends in a group's own topic")
        target.dispatch = b""
        group = target.topic.removeprefix(RETRY_PREFIX)
        if group == target.topic:
            return
        limit = target.reconsumes_max if target.reconsumes_max >= 0 else self._groups.get(group).retryMaxTimes
        if target.reconsumes > limit or self._locks.holds_locks(group.decode(errors="replace"), now_ms):
            target.topic = DEAD_PREFIX + group
            target.queue_id = 0
            target.delay_level = 0
            target.timer_queue = -1

    def _route(self, sender: Sender, target: SendTarget) -> Route:
        if target.refusal:
            raise CommandRefusedError(ResponseCode.MESSAGE_ILLEGAL, REFUSALS[target.refusal])
        if target.topic != self._broker.parent_topic:
            target.space_topic = b""
        elif target.space_topic:
            return self._route_space(sender, target)
        if _is_later(target):
            target.answer_queue = max(target.queue_id, 0)
        key = (target.topic, target.queue_id, target.dispatch, target.delay_level, target.timer_queue)
        route = cast("Route | None", self._routes.get(key))
        if route is None:
            check_topic_name(target.topic)
        if not sender.may_publish(target.topic):
            raise CommandRefusedError(ResponseCode.NO_PERMISSION, "no permission to send to this topic")
        if route is None:
            route = self._make_route(sender, target)
            if target.queue_id >= 0:
                self._routes.put(key, route)
        return route

    def _route_space(self, sender: Sender, target: SendTarget) -> Route:
        """Return the route of a message that was sent into the topic space that MQTT and AMQP share."""
        topic = target.space_topic
        is_half = target.delay_level == HALF
        if _is_later(target) and not is_half:
            raise CommandRefusedError(ResponseCode.MESSAGE_ILLEGAL, "a message with LMQ_TOPIC cannot be delayed")
        if target.dispatch:
            raise CommandRefusedError(
                ResponseCode.MESSAGE_ILLEGAL, "LMQ_TOPIC and INNER_MULTI_DISPATCH exclude each other"
            )
        if not is_space_topic(topic):
            raise CommandRefusedError(
                ResponseCode.MESSAGE_ILLEGAL, "LMQ_TOPIC is not a topic that clients can publish to"
            )
        if not sender.may_publish_topic(topic):
            raise CommandRefusedError(ResponseCode.NO_PERMISSION, "no permission to send to this topic")
        if is_half:
            target.answer_queue = 0
            return half_route(self._broker, target.topic, 0, (), space_topic=topic)
        return self._broker.route_topic(topic)

    def _make_route(self, sender: Sender, target: SendTarget) -> Route:
        self._made_count += 1
        names = parse_dispatch(target.dispatch)
        if not all(sender.may_publish(name) for name in names):
            raise CommandRefusedError(
                ResponseCode.NO_PERMISSION, "no permission to send to a light queue of the dispatch"
            )
        if is_light(target.topic) and _is_later(target):
            return self._route_later(target, 0, names)
        if is_light(target.topic):
            return self._broker.route_rocketmq(self._broker.parent_topic, 0, [target.topic, *names])
        made_count = self._topics.made_count
        topic = self._topics.open_for_send(target.topic, target.default_topic, target.default_queues)
        if self._topics.made_count > made_count:
            sender.actor().tell(Kind.TOPIC_CREATED, topic=target.topic.decode(), write_queues=topic.write_queues)
        queue_id = target.queue_id
        if queue_id >= max(topic.read_queues, topic.write_queues):
            raise CommandRefusedError(
                ResponseCode.INVALID_PARAMETER, f"request queueId[{queue_id}] is illegal, the topic has fewer queues"
            )
        if queue_id < 0 and not topic.write_queues:
            raise CommandRefusedError(ResponseCode.NO_PERMISSION, "the topic has no queue to write to")
        if queue_id < 0:
            self._next_queue += 1
            queue_id = self._next_queue % topic.write_queues
        if _is_later(target):
            return self._route_later(target, queue_id, names)
        return self._broker.route_rocketmq(target.topic, queue_id, names)

    def _route_later(self, target: SendTarget, queue_id: int, names: list[bytes]) -> Route:
        """Return the route to where a message waits that is to go to a queue of the target's topic."""
        target.answer_queue = queue_id
        if target.delay_level == HALF:
            return half_route(self._broker, target.topic, queue_id, names)
        if target.timer_queue >= 0:
            return self._broker.timer.route(target.timer_queue, waiting_prefix(target.topic, queue_id, names))
        return self._delays.route(target.delay_level, target.topic, queue_id, names)


def _is_later(target: SendTarget) -> bool:
    return target.delay_level > 0 or target.timer_queue >= 0


def parse_dispatch(text: bytes) -> list[bytes]:
    """Return the names of light queues in an INNER_MULTI_DISPATCH, each once, in their order.

    Raises:
        CommandRefusedError: One of them is no light queue's name.
    """
    names = list(dict.fromkeys(text.split(b","))) if text else []
    for name in names:
        if not is_light(name) or not is_topic_name(name):
            shown = name[:64].decode(errors="replace")
            raise CommandRefusedError(
                ResponseCode.MESSAGE_ILLEGAL, f"INNER_MULTI_DISPATCH names no light queue: {shown}"
            )
    return names


def is_space_topic(topic: bytes) -> bool:
    """Return whether a message may be published to `topic` in the topic space: MQTT's rules for topic names."""
    if not topic or len(topic) > SPACE_TOPIC_BYTES_MAX or topic.startswith(b"$"):
        return False
    if any(byte in topic for byte in (b"+", b"#", b"\0")):
        return False
    try:
        topic.decode()
    except UnicodeDecodeError:
        return False
    return True
