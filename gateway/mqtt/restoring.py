"""What a process before had in flight to durable sessions, put into their windows again at the start."""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter

from gateway.mqtt.backlog import enter_retained
from gateway.mqtt.delivery import Delivery
from gateway.mqtt.exact import SentBefore
from gateway.mqtt.inflight import EXACT_COMPLETE, ONCE_SENT
from gateway.mqtt.session import NO_SLOT, Session


def restore_exact(session: Session, sent: Iterable[SentBefore], window_max: int) -> None:
    """Put messages at QoS 2 into the window of a session, which has nothing else yet, by their numbers.

    They are not read again in their queues; nor are those that were completed before something older was.
    """
    by_slot = {one.floor_slot: one for one in session.subscriptions.values() if one.floor_slot != NO_SLOT}
    for one in sent:
        subscription = by_slot.get(one.slot)
        if subscription is None or one.offset < subscription.position:
            continue
        if subscription.group is not None:
            subscription.group.own(one.offset)  # the kill may have come before it was done for the group
            if one.state != EXACT_COMPLETE:
                session.open_window(window_max).restore(one.number, subscription.source, one.offset, one.state)
            continue
        if subscription.done_before is None:
            subscription.done_before = {}
        subscription.done_before[one.offset] = one.number
        subscription.dup_until = max(subscription.dup_until, one.offset + 1)
        if one.state != EXACT_COMPLETE:
            session.open_window(window_max).restore(one.number, subscription.source, one.offset, one.state)


def restore_retained(session: Session, delivery: Delivery) -> None:
    """Put the retained messages that were in flight into the window of a session, after all else."""
    owed = [(offset, one) for one in (session.catch_ups or {}).values() for offset in one.in_flight]
    for offset, catch_up in sorted(owed, key=itemgetter(0)):
        enter_retained(session, delivery.inflight_max, catch_up, offset, ONCE_SENT)
