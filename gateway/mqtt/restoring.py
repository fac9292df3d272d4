"""What a process before had in flight to durable sessions, put into their windows again as they are loaded."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from itertools import islice
from operator import itemgetter

from gateway.mqtt.backlog import enter_retained
from gateway.mqtt.catch_up import CatchUp
from gateway.mqtt.exact_records import SentBefore
from gateway.mqtt.inflight import EXACT_COMPLETE, ONCE_SENT
from gateway.mqtt.session import GONE, NO_SLOT, RETAINED_SOURCE, Session, Subscription


def restore(session: Session, sent: Sequence[SentBefore], window_max: int) -> None:
    """Put what was in flight into the window of a session, which has nothing yet.

    First what was at QoS 2, then what was at QoS 1 of subscriptions that ended, then of retained messages.
    """
    restore_exact(session, sent, window_max)
    for ended in session.all_ended():
        for offset in ended.owed:
            session.open_window(window_max).push_one(ended.subscription.source, offset, ONCE_SENT)
        ended.owed = []
    restore_retained(session, window_max)


def restore_exact(session: Session, sent: Sequence[SentBefore], window_max: int) -> None:
    """Put messages at QoS 2 into the window of a session, which has nothing else yet, by their numbers.

    They are not read again in their queues; nor are those that were completed before something older was. No message
    gets the number of one of them: the journal says by numbers which were completed.
    """
    retained = {catch_up.slot: catch_up for catch_up in catch_ups_of(session)}
    last = -1
    by_slot = {one.floor_slot: one for one in session.subscriptions.values() if one.floor_slot != NO_SLOT}
    by_slot.update({each.subscription.floor_slot: each.subscription for each in session.all_ended()})
    for one in sent:
        catch_up = retained.get(one.slots[0])
        if catch_up is not None:
            catch_up.in_flight.remove(one.offset)
            session.open_window(window_max).restore(one.number, RETAINED_SOURCE, one.offset, one.state)
            session.retained_inflight = session.retained_inflight or {}
            session.retained_inflight[one.number] = catch_up
            continue
        found = [by_slot[slot] for slot in one.slots if slot in by_slot and one.offset >= by_slot[slot].position]
        if not found:
            continue
        last = one.number
        for subscription in found:
            _know_sent(subscription, one)
        if one.state != EXACT_COMPLETE:  # what a subscription left as it went to QoS 0 is of the one that ended
            source = next((each for each in found if each.state == GONE), found[0]).source
            session.open_window(window_max).restore(one.number, source, one.offset, one.state)
    if last >= 0:
        session.open_window(window_max).skip_to(last + 1)
    _put_first(session)


def _know_sent(reader: Subscription, one: SentBefore) -> None:
    """Have a subscription not read a message again that it was sent."""
    if reader.state == GONE or reader.group is not None:
        return
    reader.done_before = reader.done_before or {}
    reader.done_before[one.offset] = one.number
    reader.dup_until = max(reader.dup_until, one.offset + 1)


def catch_ups_of(session: Session) -> list[CatchUp]:
    """Return what a session is owed of retained messages, and what is under way of that where a subscription ended."""
    ended = [one.catch_up for one in session.all_ended() if one.catch_up is not None]
    return [*(session.catch_ups or {}).values(), *ended]


def choose_owed(in_flight: Mapping[int, deque[int]], sent: Sequence[SentBefore]) -> set[int]:
    """Return the numbers of retained messages that are still in flight; finished ones are taken out.

    One may have been sent for several SUBSCRIBEs, and each time is brought to its end: the oldest left first.

    Args:
        in_flight: What is in flight of each catch-up, by its slot.
        sent: What the session was sent, in its order.
    """
    counts = {slot: Counter(versions) for slot, versions in in_flight.items()}
    owed = set()
    for one in reversed(sent):
        slot = one.slots[0]  # a retained message has one
        if slot in counts and counts[slot][one.offset] > 0:
            counts[slot][one.offset] -= 1
            if one.state == EXACT_COMPLETE:
                in_flight[slot].remove(one.offset)
            else:
                owed.add(one.number)
    return owed


def _put_first(session: Session) -> None:
    """Have what is in the window be the first in flight of each catch-up, in the order in which it leaves it."""
    window = session.window
    if window is not None:
        for number, catch_up in sorted((session.retained_inflight or {}).items(), reverse=True):
            catch_up.in_flight.appendleft(window.offset_of(number))


def restore_retained(session: Session, window_max: int) -> None:
    """Put retained messages that were in flight at QoS 1 into the window of a session, after all else, once each."""
    in_window: dict[int, list[int]] = {}
    for number, catch_up in (session.retained_inflight or {}).items():
        if session.window is not None:
            in_window.setdefault(catch_up.slot, []).append(session.window.offset_of(number))
    owed = []
    for catch_up in catch_ups_of(session):
        there = in_window.get(catch_up.slot, [])
        rest = sorted({*islice(catch_up.in_flight, len(there), None)}.difference(there))
        catch_up.in_flight = deque([*there, *rest])
        owed += [(offset, catch_up) for offset in rest]
    for offset, catch_up in sorted(owed, key=itemgetter(0)):
        enter_retained(session, window_max, catch_up, offset, ONCE_SENT)
