"""What a process before had in flight to durable sessions, put into their windows again at the start."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

from gateway.mqtt.backlog import enter_retained
from gateway.mqtt.delivery import Delivery
from gateway.mqtt.exact import SentBefore
from gateway.mqtt.inflight import EXACT_COMPLETE, ONCE_SENT
from gateway.mqtt.session import NO_SLOT, RETAINED_SOURCE, Session


def restore_exact(session: Session, sent: Sequence[SentBefore], window_max: int) -> bool:
    """Put messages at QoS 2 into the window of a session, which has nothing else yet, by their numbers.

    They are not read again in their queues; nor are those that were completed before something older was.

    Returns:
        Whether retained messages were among them: what is written down of those in flight is to be written anew.
    """
    retained = {catch_up.slot: catch_up for catch_up in (session.catch_ups or {}).values()}
    newest = {(one.slot, one.offset): one for one in sent}  # one may have been sent for several SUBSCRIBEs
    restored: dict[int, list[int]] = {}
    by_slot = {one.floor_slot: one for one in session.subscriptions.values() if one.floor_slot != NO_SLOT}
    for one in sent:
        catch_up = retained.get(one.slot)
        if catch_up is not None:
            if newest[one.slot, one.offset] is one and one.offset in catch_up.in_flight:
                catch_up.in_flight.remove(one.offset)
                in_flight = restored.setdefault(one.slot, [])
                if one.state != EXACT_COMPLETE:
                    in_flight.append(one.offset)
                    session.open_window(window_max).restore(one.number, RETAINED_SOURCE, one.offset, one.state)
                    session.retained_inflight = session.retained_inflight or {}
                    session.retained_inflight[one.number] = catch_up
            continue
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
    for slot, in_flight in restored.items():  # in the order in which they leave the window
        retained[slot].in_flight.extendleft(reversed(in_flight))
    return bool(restored)


def restore_retained(session: Session, delivery: Delivery) -> None:
    """Put the retained messages that were in flight at QoS 1 into the window of a session, after all else."""
    numbers = session.retained_inflight or {}
    done = {
        (catch_up.slot, session.window.offset_of(n)) for n, catch_up in numbers.items() if session.window is not None
    }
    owed = [
        (offset, one)
        for one in (session.catch_ups or {}).values()
        for offset in one.in_flight
        if (one.slot, offset) not in done
    ]
    for offset, catch_up in sorted(owed, key=itemgetter(0)):
        enter_retained(session, delivery.inflight_max, catch_up, offset, ONCE_SENT)
