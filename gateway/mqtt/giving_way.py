"""Which messages give way where more wait for a client than may: of each subscription the oldest, in proportion.

What may wait is a client's, over all its subscriptions. That is to cost nothing for each message, so it is looked at
when something is about to be read for the client: where it has several subscriptions, all at once, once a second.
"""

from __future__ import annotations

from gateway.mqtt.feeds import Desk
from gateway.mqtt.queued import Queued, is_limited
from gateway.mqtt.queued_limits import WaitingMax
from gateway.mqtt.session import BEHIND, OFFLINE, Session, Subscription

LOOK_MS = 1_000  # from one look at all subscriptions of a client to the next


def skip_oldest(desk: Desk, subscription: Subscription, now_ms: int) -> None:
    """Let the oldest of too many messages go before a subscription is read for."""
    if not desk.queued.limits.has_any or not is_limited(subscription):
        return
    session = subscription.session
    if len(session.subscriptions) > 1 and now_ms >= session.next_look_ms:
        session.next_look_ms = now_ms + LOOK_MS
        skip_oldest_of_all(desk, session, now_ms)
    _skip(desk, subscription, desk.queued.find_first_for(subscription), now_ms)


def skip_oldest_of_all(desk: Desk, session: Session, now_ms: int) -> list[Subscription]:
    """Let the oldest of too many messages go that wait for a client; return the subscriptions that lost some."""
    queued = desk.queued
    waiting = [one for one in session.subscriptions.values() if one.state in {BEHIND, OFFLINE} and is_limited(one)]
    firsts = _find_firsts(queued, waiting, queued.limits.of(session))
    return [one for one, first in zip(waiting, firsts, strict=True) if _skip(desk, one, first, now_ms)]


def divide(waiting: list[int], limit: int) -> list[int]:
    """Return how much of what waits in each of several places may stay: in proportion, and `limit` together."""
    total = sum(waiting)
    if total <= limit:
        return waiting
    kept: list[int] = []
    passed = given = 0
    for count in waiting:
        passed += count
        kept.append(passed * limit // total - given)
        given += kept[-1]
    return kept


def _find_firsts(queued: Queued, waiting: list[Subscription], limit: WaitingMax) -> list[int]:
    """Return the first offset of each subscription that is within the client's limits."""
    firsts = [max(one.position, queued.find_first_for(one)) for one in waiting]
    if limit.messages:
        ends = [queued.end_of(one.queue_ref) for one in waiting]
        counts = [max(end - one.position, 0) for one, end in zip(waiting, ends, strict=True)]
        kept = divide(counts, limit.messages)
        firsts = [max(first, end - count) for first, end, count in zip(firsts, ends, kept, strict=True)]
    if limit.size:
        places = [(one.queue_ref, limit.size) for one in waiting]
        sizes = [queued.size_from(*place, first) for place, first in zip(places, firsts, strict=True)]
        for number, (size, kept_size) in enumerate(zip(sizes, divide(sizes, limit.size), strict=True)):
            if kept_size < size:
                firsts[number] = max(firsts[number], queued.find_within(*places[number], kept_size))
    return firsts


def _skip(desk: Desk, subscription: Subscription, first: int, now_ms: int) -> bool:
    """Let what is before an offset go; return whether that was anything."""
    if first <= subscription.position:
        return False
    desk.note_skipped(subscription, first, "queue_full", now_ms)
    subscription.position = first
    return True
