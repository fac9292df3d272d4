"""The seam of a replay: from the end of what is stored it goes on in the light queue of its filter.

Both queues end at one moment, which is the seam: nothing is left out and nothing comes twice. It is crossed with
nothing in flight, for that is known by its offsets in the queue that was read. A replay that has been at the end for
long, and always with something in flight, waits there: else it would read the log as a whole for ever.
To a durable session nothing more is sent until its new place is on disk, so that a process that is killed goes on
either before the seam or after it.
"""

from __future__ import annotations

from functools import partial

from core.broker import Broker
from core.errors import LmqError
from core.lmq.queue_name import mqtt_queue_name
from gateway.mqtt.delivery import Delivery
from gateway.mqtt.session import BEHIND, NO_SLOT, OFFLINE, SETTLING, Subscription
from gateway.mqtt.session_rows import UNKNOWN_FIRST
from gateway.mqtt.session_table import SessionTable
from gateway.mqtt.sieve import has_own_form
from gateway.mqtt.topics import plain_filter

TRIES_MAX = 100  # at the end with something in flight, before a replay waits there for its acknowledgements


class Handover:
    """All replays of a door that are at their seam.

    Args:
        broker: Where the light queues are.
        sessions: Where durable subscriptions are written down.
        delivery: What sends; it tells which replays have come to the end, and which have nothing in flight any more.
    """

    def __init__(self, broker: Broker, sessions: SessionTable, delivery: Delivery) -> None:
        self._broker = broker
        self._sessions = sessions
        self._delivery = delivery
        self._seams: dict[Subscription, tuple[int, int]] = {}  # the light queue, and its end at the seam
        self._tries: dict[Subscription, int] = {}
        delivery.on_replay_over = self._go_on

    def forget(self, subscription: Subscription) -> None:
        """Forget a subscription that is given up."""
        self._seams.pop(subscription, None)
        self._tries.pop(subscription, None)

    def _go_on(self, subscription: Subscription) -> None:
        """Take a replay as far as it can go now: it has come to the end, or nothing of it is in flight any more."""
        window = subscription.session.window
        is_settled = window is None or not window.count_of(subscription.source)
        if subscription.state == BEHIND:
            if subscription.position < self._broker.max_offset(subscription.queue_ref):
                return
            tries = self._tries[subscription] = self._tries.get(subscription, 0) + 1
            if not is_settled and tries < TRIES_MAX:
                return
            del self._tries[subscription]
            queue_ref = self._broker.intern_queue(mqtt_queue_name(plain_filter(subscription.topic_filter)))
            self._seams[subscription] = queue_ref, self._broker.max_offset(queue_ref)
            self._delivery.stop(subscription)
            subscription.state = SETTLING
        if is_settled and subscription in self._seams:
            self._move(subscription)

    def _move(self, subscription: Subscription) -> None:
        subscription.is_replay = False
        subscription.queue_ref, subscription.position = self._seams.pop(subscription)
        subscription.first_offset = UNKNOWN_FIRST  # what the replay sent lies before, and what it began behind
        subscription.dup_until = 0
        subscription.eras = ()
        subscription.done_before = None
        subscription.is_solo = has_own_form(subscription)
        if subscription.floor_slot == NO_SLOT:
            self._sessions.keep_moved(subscription)
            self._begin(subscription, None)
        else:
            self._sessions.keep_moved(subscription, partial(self._begin, subscription))

    def _begin(self, subscription: Subscription, error: LmqError | None) -> None:
        if error is None and subscription.state == SETTLING:
            subscription.state = OFFLINE
            if subscription.session.outlet is not None:
                self._delivery.start(subscription)
