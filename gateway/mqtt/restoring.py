"""What a process before had in flight to durable sessions, put into their windows again at the start."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from itertools import islice
from operator import itemgetter

from gateway.mqtt.backlog import enter_retained
from gateway.mqtt.catch_up import CatchUp
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
    by_slot = {one.floor_slot: one for one in session.subscriptions.values() if one.floor_slot != NO_SLOT}
    owed = _find_owed(retained, sent)
    for one in sent:
        catch_up = retained.get(one.slot)
        if catch_up is not None:
            if one.number in owed:
                catch_up.in_flight.remove(one.offset)
                if one.state != EXACT_COMPLETE:
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
    _put_first(session)
    return bool(owed)


def _find_owed(retained: Mapping[int, CatchUp], sent: Sequence[SentBefore]) -> set[int]:
    """Return the numbers of the retained messages that are still in flight.

    One may have been sent for several SUBSCRIBEs, and each time is brought to its end: the oldest left first.
    """
    counts = {slot: Counter(catch_up.in_flight) for slot, catch_up in retained.items()}
    owed = set()
    for one in reversed(sent):
        if one.slot in counts and counts[one.slot][one.offset] > 0:
            counts[one.slot][one.offset] -= 1
            owed.add(one.number)
    return owed


def _put_first(session: Session) -> None:
    """Have what is in the window be the first in flight of each catch-up, in the order in which it leaves it."""
    window = session.window
    if window is not None:
        for number, catch_up in sorted((session.retained_inflight or {}).items(), reverse=True):
            catch_up.in_flight.appendleft(window.offset_of(number))


def restore_retained(session: Session, delivery: Delivery) -> bool:
    """Put the retained messages that were in flight at QoS 1 into the window of a session, after all else, once each.

    Returns:
        Whether what is written down of those in flight is to be written anew.
    """
    in_window: dict[int, list[int]] = {}
    for number, catch_up in (session.retained_inflight or {}).items():
        if session.window is not None:
            in_window.setdefault(catch_up.slot, []).append(session.window.offset_of(number))
    owed, is_changed = [], False
    for catch_up in (session.catch_ups or {}).values():
        there = in_window.get(catch_up.slot, [])
        rest = sorted({*islice(catch_up.in_flight, len(there), None)}.difference(there))
        is_changed |= len(there) + len(rest) < len(catch_up.in_flight)
        catch_up.in_flight = deque([*there, *rest])
        owed += [(offset, catch_up) for offset in rest]
    for offset, catch_up in sorted(owed, key=itemgetter(0)):
        enter_retained(session, delivery.inflight_max, catch_up, offset, ONCE_SENT)
    return is_changed
