"""Subscriptions of sessions, from the packet to the filter that is bound in the broker."""

from __future__ import annotations

from core.broker import Broker
from core.errors import QueueLimitError
from core.lmq.queue_name import mqtt_queue_name
from gateway.auth.permissions import Permissions
from gateway.mqtt.delivery import Delivery
from gateway.mqtt.packets import Subscribe, Unsubscribe
from gateway.mqtt.reason_codes import SUBSCRIBE_FAILURE
from gateway.mqtt.session import Session, Subscription
from gateway.mqtt.session_table import SessionTable
from gateway.mqtt.topics import SHARED_PREFIX

GRANTED_QOS_MAX = 1


class Subscribing:
    """Makes and ends subscriptions: binding, place in the queue, what is written down.

    Args:
        broker: Where filters are bound to the light queues that bear their names.
        sessions: Where durable subscriptions are written down.
        delivery: What sends to subscriptions.
        count_max: Subscriptions that one session may have.
    """

    def __init__(self, broker: Broker, sessions: SessionTable, delivery: Delivery, count_max: int) -> None:
        self._broker = broker
        self._sessions = sessions
        self._delivery = delivery
        self.count_max = count_max

    def open_queue(self, topic_filter: bytes) -> int:
        """Bind a filter to its light queue, once more, and return the queue.

        Raises:
            QueueLimitError: It is new, and there are too many.
        """
        name = mqtt_queue_name(topic_filter)
        queue_ref = self._broker.open_queue(name)
        self._broker.bind_filter(topic_filter, name, hides_dollar=True)
        return queue_ref

    def subscribe(self, session: Session, packet: Subscribe, may: Permissions) -> list[int]:
        """Make or change subscriptions, to be started by `start`; return the code for each filter."""
        return [self._subscribe(session, topic_filter, qos, may) for topic_filter, qos in packet.filters]

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

    def start(self, session: Session, packet: Subscribe, codes: list[int]) -> None:
        """Begin to send for what `subscribe` granted: retained messages, and what came since."""
        for (topic_filter, _), code in zip(packet.filters, codes, strict=True):
            subscription = session.subscriptions.get(topic_filter)
            if code != SUBSCRIBE_FAILURE and subscription is not None:
                self._delivery.start(subscription)
                self._delivery.send_retained(subscription, code)

    def unsubscribe(self, session: Session, packet: Unsubscribe) -> None:
        """End subscriptions; those that are not there are none."""
        for topic_filter in packet.filters:
            subscription = session.subscriptions.get(topic_filter)
            if subscription is not None:
                self._end(subscription)

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

    def end_session(self, session: Session) -> None:
        """End a session and all that it subscribed to."""
        for subscription in list(session.subscriptions.values()):
            self._end(subscription)
        session.end()
        self._sessions.remove(session)
