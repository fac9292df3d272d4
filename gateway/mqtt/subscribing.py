"""Subscriptions of sessions, from the packet to the filter that is bound in the broker.

A packet may have thousands of filters and a session thousands of subscriptions. So whatever is done for each of them is
an iterator, which does a step whenever it is asked for the next item.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

from core.broker import Broker
from core.errors import DiskFullError, QueueLimitError
from core.lmq.queue_name import MQTT, mqtt_queue_name
from core.metrics import DoorMetrics
from gateway.auth.permissions import Permissions
from gateway.auth.topic_rights import Asking
from gateway.mqtt.delivery import Delivery
from gateway.mqtt.exclusive import Exclusive
from gateway.mqtt.handover import Handover
from gateway.mqtt.opening import Opening
from gateway.mqtt.packets import (
    HANDLING_MASK,
    HANDLING_NEW,
    NO_LOCAL,
    QOS_MASK,
    RETAIN_AS_PUBLISHED,
    Subscribe,
    Unsubscribe,
)
from gateway.mqtt.reason_codes import SUBSCRIBE_FAILURE, ReasonCode
from gateway.mqtt.replay import History, is_replay, parse_start
from gateway.mqtt.rewriting import Rewriting
from gateway.mqtt.session import Session, Subscription
from gateway.mqtt.session_table import SessionTable
from gateway.mqtt.sharing import Sharing
from gateway.mqtt.sieve import has_own_form
from gateway.mqtt.sys_tree import SysTree
from gateway.mqtt.topics import is_shared, plain_filter, split_replay
from gateway.net.protocol import Transport
from gateway.runtime.chores import Chores

GRANTED_QOS_MAX = 2  # all levels that MQTT has


class GrantedFilter(NamedTuple):
    """A filter of a SUBSCRIBE, the code of its answer, and whether retained messages are sent for it, and which."""

    topic_filter: bytes
    code: int
    wants_retained: bool
    retained_until: int = 0  # those before this version: what came after the SUBSCRIBE comes by the queue


Granted = list[GrantedFilter]
Steps = Iterator[Opening | Asking | None]  # of work; an opening is to be over before the next step


class Plan(NamedTuple):
    """A filter of a SUBSCRIBE before anything is changed, why it is refused, and the queues that it is to begin in."""

    topic_filter: bytes
    options: int
    refused: ReasonCode | None
    queue_refs: tuple[int, ...]  # none where the session has the subscription


class Answer:
    """The answer to a SUBSCRIBE or UNSUBSCRIBE, what begins with it, and whether anything was changed."""

    __slots__ = ("data", "granted", "has_changed")

    def __init__(self, data: bytes, granted: Granted, *, has_changed: bool = True) -> None:
        self.data = data
        self.granted = granted
        self.has_changed = has_changed


class Subscribing:
    """Makes and ends subscriptions: binding, place in the queue, what is written down.

    Args:
        broker: Where filters are bound to the light queues that bear their names.
        sessions: Where durable subscriptions are written down.
        delivery: What sends to subscriptions.
        metrics: The door's.
        count_max: Subscriptions that one session may have.
    """

    def __init__(
        self, broker: Broker, sessions: SessionTable, delivery: Delivery, metrics: DoorMetrics, count_max: int
    ) -> None:
        self.chores = Chores(broker)
        self.sharing = Sharing(delivery)
        self.sharing.leave_alone = sessions.keep_alone
        self.exclusive = Exclusive()
        self.history = History(broker)
        self.rewriting = Rewriting((), broker.caches)
        self.subscription_count = 0
        self.sys_tree: SysTree | None = None
        self.history.on_found = self._begin
        self.handover = Handover(broker, sessions, delivery)
        self._broker = broker
        self._sessions = sessions
        self._delivery = delivery
        self._metrics = metrics
        self.count_max = count_max
        self._leaving: set[bytes] = set()  # clients whose session is being let go of

    def bind(self, topic_filter: bytes) -> int:
        """Bind a filter to its light queue, once more, and return the queue.

        Raises:
            QueueLimitError: It is new, and there are too many.
        """
        inner = plain_filter(topic_filter)
        name = mqtt_queue_name(inner)
        self._broker.long_names.note(name, MQTT, b"", inner)
        queue_ref = self._broker.intern_queue(name)
        self._broker.bind_filter(inner, name, hides_dollar=True)
        return queue_ref

    def find_queue(self, topic_filter: bytes) -> int:
        """Return the light queue of a filter that is bound."""
        return self._broker.find_queue(mqtt_queue_name(plain_filter(topic_filter)))

    def take_up(self, client_id: bytes, topic_filter: bytes) -> int:
        """Route to a filter that a client's durable session has, whether that is loaded or not; return its queue."""
        queue_ref = self.bind(topic_filter)
        self.subscription_count += 1
        if is_shared(topic_filter):
            self.sharing.take_up(topic_filter)
        self.exclusive.take(client_id, topic_filter)
        return queue_ref

    def subscribe(
        self, session: Session, packet: Subscribe, may: Permissions, now_ms: int, then: Callable[[int, Granted], None]
    ) -> Steps:
        """Make or change subscriptions, to be started by `start`; at the end call `then` with the packet's identifier.

        Nothing is changed before all of the packet was seen to be sound, and the ends of new queues are known.
        """
        filters = []
        for wanted in packet.filters:
            filters.append(wanted)
            yield None
        opening = Opening(self._broker)
        plans: list[Plan] = []
        fresh: set[bytes] = set()
        refused = ReasonCode.QUOTA_EXCEEDED if self._lacks_room(session, filters) else None
        for wanted in filters:
            plans.append(self._plan(session, wanted, may, now_ms, fresh, refused=refused))
            for queue_ref in plans[-1].queue_refs:
                opening.ask(queue_ref)
            yield None
        if not opening.is_over:
            yield opening
        granted = []
        for plan in plans:
            if plan.refused is None:
                yield from self._await_end(plan.topic_filter)
            granted.append(self._subscribe(session, plan, packet.identifier, opening.failed, now_ms))
            yield None
        then(packet.packet_id, granted)

    def _lacks_room(self, session: Session, filters: list[tuple[bytes, int]]) -> bool:
        """Return whether what is subscribed to would wait until the disk has room again."""
        topic_filters = [one for one, _ in filters]
        ends = self.sharing.ends
        if not session.is_persistent and not any(is_shared(one) and ends.is_awaited(one) for one in topic_filters):
            return False
        try:
            self._broker.check_room()
        except DiskFullError:
            return True
        return False

    def _await_end(self, topic_filter: bytes) -> Iterator[Opening]:
        """Wait until the end of a group is durable, before another of its name begins."""
        while is_shared(topic_filter) and self.sharing.ends.is_awaited(topic_filter):
            ending = Opening(self._broker)
            ending.wait(partial(self.sharing.ends.tell, topic_filter))
            yield ending

    def _plan(
        self,
        session: Session,
        wanted: tuple[bytes, int],
        may: Permissions,
        now_ms: int,
        fresh: set[bytes],
        *,
        refused: ReasonCode | None,
    ) -> Plan:
        """Return what is to become of a filter.

        `fresh` are those before it in the packet that are new, `refused` is why none of them can be had, if so.
        """
        topic_filter, options = wanted
        topic_filter = self.rewriting.subscribed(topic_filter, session.client_id, session.owner or b"")
        is_new = topic_filter not in session.subscriptions and topic_filter not in fresh
        count = len(session.subscriptions) + len(fresh) + len(session.ended or ()) // 2  # each is there twice
        refused = self._why_not(count, topic_filter, may, now_ms, is_new=is_new) or refused
        queue_refs: tuple[int, ...] = ()
        if refused is None and is_new:
            try:
                queue_refs = self.intern_queues(topic_filter)
                fresh.add(topic_filter)
            except QueueLimitError:
                refused = ReasonCode.QUOTA_EXCEEDED
        return Plan(topic_filter, options, refused, queue_refs)

    def intern_queues(self, topic_filter: bytes) -> tuple[int, ...]:
        """Return the queues that a subscription to a filter begins in: its own, and for a replay what is stored.

        Raises:
            QueueLimitError: One is new, and there are too many.
        """
        queue_ref = self._broker.intern_queue(mqtt_queue_name(plain_filter(topic_filter)))
        return (queue_ref, self.history.intern_queue()) if is_replay(topic_filter) else (queue_ref,)

    def _subscribe(self, session: Session, plan: Plan, identifier: int, failed: set[int], now_ms: int) -> GrantedFilter:
        topic_filter, options, refused, queue_refs = plan
        found = session.subscriptions.get(topic_filter)
        if not failed.isdisjoint(queue_refs):
            refused = ReasonCode.UNSPECIFIED_ERROR
        elif found is None and refused is None and not self.exclusive.is_free(topic_filter):
            refused = ReasonCode.QUOTA_EXCEEDED  # another client took it meanwhile
        granted = min(options & QOS_MASK, GRANTED_QOS_MAX)
        handling = options & HANDLING_MASK
        shares = is_shared(topic_filter)
        is_time = handling == 0 or (handling == HANDLING_NEW and found is None)
        wants_retained = is_time and not shares and not is_replay(topic_filter)
        if refused is None and found is None:
            found = session.subscriptions[topic_filter] = self._make(session, topic_filter, granted, now_ms)
            self.subscription_count += 1
            if shares:
                found.group = self.sharing.enter(topic_filter, is_durable=session.is_persistent)
            self.exclusive.take(session.client_id, topic_filter)
        if refused is not None or found is None:
            return GrantedFilter(topic_filter, refused or ReasonCode.UNSPECIFIED_ERROR, wants_retained=False)
        self._set_options(found, granted, options & (NO_LOCAL | RETAIN_AS_PUBLISHED), identifier)
        until = self._broker.next_version
        owed_until = until if wants_retained and len(self._broker.retained) else 0
        self._sessions.keep_subscription(found, self._delivery.position_of(found), owed_until)
        return GrantedFilter(topic_filter, granted, wants_retained, until)

    def _make(self, session: Session, topic_filter: bytes, qos: int, now_ms: int) -> Subscription:
        queue_ref = self.bind(topic_filter)
        if not is_replay(topic_filter):
            return Subscription(session, topic_filter, qos, queue_ref, self._broker.max_offset(queue_ref))
        return self.history.make(session, topic_filter, qos, now_ms)

    def _begin(self, subscription: Subscription, begins: bool) -> None:  # noqa: FBT001  # told by position
        """Write down where a replay is whose start was looked for, and begin if it was granted meanwhile."""
        session = subscription.session
        if session.subscriptions.get(subscription.topic_filter) is subscription:
            self._sessions.note_place(subscription)
            if begins and session.outlet is not None:
                self._delivery.start(subscription)

    def _why_not(
        self, count: int, topic_filter: bytes, may: Permissions, now_ms: int, *, is_new: bool
    ) -> ReasonCode | None:
        """Return why a filter is refused, None where it is not; the session has `count` subscriptions."""
        plain = plain_filter(topic_filter)
        is_start = is_new and is_replay(topic_filter)
        if not plain or (is_start and parse_start(split_replay(topic_filter)[0], now_ms) is None):
            return ReasonCode.TOPIC_FILTER_INVALID
        if not may.may_subscribe(plain):
            return ReasonCode.NOT_AUTHORIZED
        if is_new and (count >= self.count_max or not self.exclusive.is_free(topic_filter)):
            return ReasonCode.QUOTA_EXCEEDED
        return None

    def find_plain(self, topic_filters: Iterable[bytes], session: Session) -> Iterator[bytes]:
        """Give what a session's client is to be allowed to read, to subscribe to these filters."""
        for one in topic_filters:
            plain = plain_filter(self.rewriting.subscribed(one, session.client_id, session.owner or b""))
            if plain:
                yield plain

    def _set_options(self, subscription: Subscription, qos: int, options: int, identifier: int) -> None:
        """Go by what a SUBSCRIBE says, also where it changes a subscription that there is, MQTT-3.8.4-3."""
        self._delivery.note_era(subscription, qos | options & NO_LOCAL)
        subscription.options = options
        subscription.identifier = identifier
        is_solo = has_own_form(subscription)
        if is_solo != subscription.is_solo:
            if subscription.group is None:  # a group writes to each member in a form of its own as it is
                self._delivery.set_aside(subscription)
            subscription.is_solo = is_solo
        if subscription.qos != qos:
            self._delivery.change_qos(subscription, qos)

    def start(self, session: Session, granted: Granted) -> None:
        """Begin to send for what was granted: retained messages, and what came since."""
        self.chores.start(self._start(session, session.outlet, granted))

    def _start(self, session: Session, outlet: Transport | None, granted: Granted) -> Iterator[None]:
        for topic_filter, code, wants_retained, retained_until in granted:
            subscription = session.subscriptions.get(topic_filter)
            if outlet is None or session.outlet is not outlet:
                return  # its connection is gone, and begins with all of them if it comes back
            if code < SUBSCRIBE_FAILURE and subscription is not None:
                if not self.history.is_sought(subscription):
                    self._delivery.start(subscription)
                if self.sys_tree is not None:
                    self.sys_tree.watch(subscription, wants_retained=wants_retained)
                if wants_retained:
                    self._delivery.send_retained(subscription, code, retained_until)
            yield

    def refuse_ends(self, packet: Unsubscribe, then: Callable[[int, list[int]], None]) -> Iterator[None]:
        """End nothing; at the end call `then` as `unsubscribe` does."""
        codes: list[int] = []
        for _ in packet.filters:
            codes.append(ReasonCode.IMPLEMENTATION_ERROR)
            yield
        then(packet.packet_id, codes)

    def unsubscribe(
        self, session: Session, packet: Unsubscribe, then: Callable[[int, list[int]], None]
    ) -> Iterator[None]:
        """End subscriptions; at the end call `then` with the packet's identifier and a code for each filter."""
        filters = []
        for topic_filter in packet.filters:
            filters.append(topic_filter)
            yield
        codes: list[int] = []
        for sent in filters:
            topic_filter = self.rewriting.subscribed(sent, session.client_id, session.owner or b"")
            subscription = session.subscriptions.get(topic_filter)
            if subscription is not None:
                self._end(subscription)
            codes.append(ReasonCode.SUCCESS if subscription is not None else ReasonCode.NO_SUBSCRIPTION_EXISTED)
            yield
        then(packet.packet_id, codes)

    def end_denied(self, session: Session, may: Permissions) -> list[bytes]:
        """End what a session without a connection subscribed to and its user may not read any more; return the filters.

        What is in flight of them is not sent again.
        """
        self._delivery.revoke(session, may)
        denied = [
            one for one in session.subscriptions.values() if not may.may_subscribe(plain_filter(one.topic_filter))
        ]
        for subscription in denied:
            self._end(subscription)
        return [subscription.topic_filter for subscription in denied]

    def _end(self, subscription: Subscription) -> None:
        self.subscription_count -= 1
        self._delivery.stop(subscription)
        self.handover.forget(subscription)
        self._sessions.forget_subscription(subscription, partial(self.sharing.leave, subscription))
        self.exclusive.give_back(subscription.session.client_id, subscription.topic_filter)
        subscription.session.drop_subscription(subscription)
        inner = plain_filter(subscription.topic_filter)
        self._broker.unbind_filter(inner, mqtt_queue_name(inner))

    # Sessions without a connection

    def is_leaving(self, client_id: bytes) -> bool:
        """Return whether the client's last session, or its last connection, is still being let go of."""
        return client_id in self._leaving

    def pause(self, session: Session) -> None:
        """Send no more to a durable session: its connection is gone."""
        self._delivery.pause(session)
        self._leave(session, self._pause(session))

    def _pause(self, session: Session) -> Iterator[None]:
        for subscription in list(session.subscriptions.values()):
            self._delivery.stop(subscription)
            yield
        session.rest()

    def end_session(self, session: Session) -> None:
        """End a session and all that it subscribed to."""
        self._delivery.note_session_end(session)
        self._delivery.pause(session)
        self._sessions.remove(session)
        self._delivery.queued.limits.forget(session.client_id)
        self._metrics.sessions = len(self._sessions)
        if session.subscriptions:
            self._leave(session, self._end_all(session))
        else:
            session.rest()
            session.end()

    def _end_all(self, session: Session) -> Iterator[None]:
        for subscription in list(session.subscriptions.values()):
            self._end(subscription)
            yield
        session.rest()
        session.end()

    def _leave(self, session: Session, work: Iterator[None]) -> None:
        self._leaving.add(session.client_id)
        self.chores.start(self._and_left(session.client_id, work))

    def _and_left(self, client_id: bytes, work: Iterator[None]) -> Iterator[None]:
        try:
            yield from work
        finally:
            self._leaving.discard(client_id)
