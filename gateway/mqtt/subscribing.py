"""Subscriptions of sessions, from the packet to the filter that is bound in the broker.

A packet may have thousands of filters and a session thousands of subscriptions. So whatever is done for each of them is
an iterator, which does a step whenever it is asked for the next item.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from core.broker import Broker
from core.errors import QueueLimitError
from core.lmq.queue_name import mqtt_queue_name
from core.metrics import DoorMetrics
from gateway.auth.permissions import Permissions
from gateway.chores import Chores
from gateway.mqtt.delivery import Delivery
from gateway.mqtt.packets import Subscribe, Unsubscribe
from gateway.mqtt.reason_codes import SUBSCRIBE_FAILURE
from gateway.mqtt.session import Session, Subscription
from gateway.mqtt.session_table import SessionTable
from gateway.mqtt.topics import SHARED_PREFIX
from gateway.net.protocol import Transport

GRANTED_QOS_MAX = 2

Granted = list[tuple[bytes, int]]
"""The filters of a SUBSCRIBE in their order, each with the code that it is answered with."""


class Answer:
    """The answer to a SUBSCRIBE or UNSUBSCRIBE, and what begins with it."""

    __slots__ = ("data", "granted")

    def __init__(self, data: bytes, granted: Granted) -> None:
        self.data = data
        self.granted = granted


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
        self._broker = broker
        self._sessions = sessions
        self._delivery = delivery
        self._metrics = metrics
        self.count_max = count_max
        self._leaving: set[bytes] = set()  # clients whose session is being let go of

    def open_queue(self, topic_filter: bytes) -> int:
        """Bind a filter to its light queue, once more, and return the queue.

        Raises:
            QueueLimitError: It is new, and there are too many.
        """
        name = mqtt_queue_name(topic_filter)
        queue_ref = self._broker.open_queue(name)
        self._broker.bind_filter(topic_filter, name, hides_dollar=True)
        return queue_ref

    def subscribe(
        self, session: Session, packet: Subscribe, may: Permissions, then: Callable[[int, Granted], None]
    ) -> Iterator[None]:
        """Make or change subscriptions, to be started by `start`; at the end call `then` with the packet's identifier.

        Nothing is changed before all of the packet was seen to be sound.
        """
        filters = []
        for wanted in packet.filters:
            filters.append(wanted)
            yield
        granted = []
        for topic_filter, qos in filters:
            granted.append((topic_filter, self._subscribe(session, topic_filter, qos, may)))
            yield
        then(packet.packet_id, granted)

    def _subscribe(self, session: Session, topic_filter: bytes, qos: int, may: Permissions) -> int:
        found = session.subscriptions.get(topic_filter)
        is_full = found is None and len(session.subscriptions) >= self.count_max
        if is_full or topic_filter.startswith(SHARED_PREFIX) or not may.may_subscribe(topic_filter):
            return SUBSCRIBE_FAILURE
        granted = min(qos, GRANTED_QOS_MAX)
        if found is None:
            try:
                queue_ref = self.open_queue(topic_filter)
            except QueueLimitError:
                return SUBSCRIBE_FAILURE
            position = self._broker.max_offset(queue_ref)
            found = session.subscriptions[topic_filter] = Subscription(
                session, topic_filter, granted, queue_ref, position
            )
        elif found.qos != granted:
            self._delivery.change_qos(found, granted)
        retained_until = self._broker.written_until if len(self._broker.retained) else 0
        self._sessions.keep_subscription(found, self._delivery.position_of(found), retained_until)
        return granted

    def start(self, session: Session, granted: Granted) -> None:
        """Begin to send for what was granted: retained messages, and what came since."""
        self.chores.start(self._start(session, session.outlet, granted))

    def _start(self, session: Session, outlet: Transport | None, granted: Granted) -> Iterator[None]:
        for topic_filter, code in granted:
            subscription = session.subscriptions.get(topic_filter)
            if outlet is None or session.outlet is not outlet:
                return  # its connection is gone, and begins with all of them if it comes back
            if code != SUBSCRIBE_FAILURE and subscription is not None:
                self._delivery.start(subscription)
                self._delivery.send_retained(subscription, code)
            yield

    def unsubscribe(self, session: Session, packet: Unsubscribe, then: Callable[[int], None]) -> Iterator[None]:
        """End subscriptions, those that are not there are none; at the end call `then` with the packet's identifier."""
        filters = []
        for topic_filter in packet.filters:
            filters.append(topic_filter)
            yield
        for topic_filter in filters:
            subscription = session.subscriptions.get(topic_filter)
            if subscription is not None:
                self._end(subscription)
            yield
        then(packet.packet_id)

    def end_denied(self, session: Session, may: Permissions) -> list[bytes]:
        """End what a session without a connection subscribed to and its user may not read any more; return the filters.

        What is in flight of them is not sent again.
        """
        self._delivery.revoke(session, may)
        denied = [one for one in session.subscriptions.values() if not may.may_subscribe(one.topic_filter)]
        for subscription in denied:
            self._end(subscription)
        return [subscription.topic_filter for subscription in denied]

    def _end(self, subscription: Subscription) -> None:
        self._delivery.stop(subscription)
        self._sessions.forget_subscription(subscription)
        subscription.session.drop_subscription(subscription)
        self._broker.unbind_filter(subscription.topic_filter, mqtt_queue_name(subscription.topic_filter))

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
        self._delivery.pause(session)
        self._sessions.remove(session)
        self._metrics.sessions = len(self._sessions)
        self._leave(session, self._end_all(session))

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
