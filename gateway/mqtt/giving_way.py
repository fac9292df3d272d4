"""Which messages give way where more wait for a client than may: of each subscription the oldest, in proportion.

What may wait is a client's, over all its subscriptions. That is to cost nothing for each message, so it is looked at
when something is about to be read for the client: where it has several subscriptions, all at once, once a second.
Where it has very many, that is done in steps, and the client waits for the end.
"""

from __future__ import annotations

from collections.abc import Iterator

from gateway.mqtt.feeds import Desk, keep_places
from gateway.mqtt.queued import Queued, is_limited
from gateway.mqtt.session import BEHIND, NO_SLOT, OFFLINE, Session, Subscription
from gateway.mqtt.session_loader import Resting
from gateway.mqtt.session_table import SessionTable

LOOK_MS = 1_000  # from one look at all subscriptions of a client to the next
AT_ONCE_COUNT = 256  # subscriptions that are looked at in one turn, some 1 ms
STEP_COUNT = 16  # subscriptions between two looks at the clock
_LOOKING = 2**62  # the moment of the next look while one is under way


def skip_oldest(desk: Desk, subscription: Subscription, now_ms: int) -> bool:
    """Let the oldest of too many messages go before a subscription is read for.

    Returns:
        Whether it may be read for. If not, its session is woken when that is known.
    """
    if not desk.queued.limits.has_any or not is_limited(subscription):
        return True
    session = subscription.session
    if len(session.subscriptions) > 1 and now_ms >= session.next_look_ms:
        if len(session.subscriptions) > AT_ONCE_COUNT:
            session.next_look_ms = _LOOKING
            desk.queued.chores.start(_look_in_steps(desk, session, now_ms), is_long=True)
        else:
            session.next_look_ms = now_ms + LOOK_MS
            for _ in let_go_oldest(desk, session, now_ms):
                pass
    if session.next_look_ms == _LOOKING:
        return False
    _skip(desk, subscription, desk.queued.find_first_for(subscription), now_ms)
    return True


def let_go_of_idle(desk: Desk, sessions: SessionTable, client_id: bytes, now_ms: int) -> Iterator[None]:
    """Let the oldest of too many messages go that wait for a client without a connection, in steps.

    Its session is not loaded by that. Where it is loaded meanwhile, or has a connection, nothing more is done: the
    client is looked at when something is read for it. Nor is anything done where the last time is not over: both would
    let the same messages go, and more than they are to.
    """
    under_way = desk.queued.letting_go
    if client_id in under_way:
        return
    under_way.add(client_id)
    try:
        yield from _let_go_while_idle(desk, sessions, client_id, now_ms)
    finally:
        under_way.discard(client_id)


def _let_go_while_idle(desk: Desk, sessions: SessionTable, client_id: bytes, now_ms: int) -> Iterator[None]:
    found = sessions.find_as_is(client_id)
    if found is None or (isinstance(found, Session) and found.outlet is not None):
        return
    if isinstance(found, Session):
        steps = let_go_oldest(desk, found, now_ms)
    else:
        steps = _look_and_let_go(desk, sessions, found, now_ms)
    for _ in steps:
        yield
        if sessions.find_as_is(client_id) is not found or (isinstance(found, Session) and found.outlet is not None):
            return


def _look_and_let_go(desk: Desk, sessions: SessionTable, resting: Resting, now_ms: int) -> Iterator[None]:
    looked: Session | None = None
    try:
        for one in sessions.loader.look_in_steps(resting):
            looked = one
            yield
        assert looked is not None
        yield from let_go_oldest(desk, looked, now_ms)
    finally:
        if looked is not None:
            looked.end()
            looked.subscriptions.clear()  # each refers to the session


class Waiting:
    """What waits by one subscription."""

    __slots__ = ("amount", "first", "subscription")

    def __init__(self, subscription: Subscription, first: int) -> None:
        self.subscription = subscription
        self.first = first  # the oldest that stays
        self.amount = 0  # messages or bytes


class Division:
    """Divides a limit among subscriptions in proportion to what waits; what one leaves goes to the next ones.

    Args:
        total: What waits for all together.
        limit: What may.
    """

    __slots__ = ("_limit", "_passed", "_total", "_used")

    def __init__(self, total: int, limit: int) -> None:
        self._total = max(total, 1)
        self._limit = min(limit, total)
        self._passed = 0  # of `total`
        self._used = 0  # of `limit`

    def allow(self, waiting: int) -> int:
        """Return how much of what waits for the next one may stay; `use` says how much does."""
        self._passed += waiting
        return min(self._passed * self._limit // self._total - self._used, waiting)

    def use(self, size: int) -> None:
        """Count so much of the limit as used."""
        self._used += size


def _look_in_steps(desk: Desk, session: Session, now_ms: int) -> Iterator[None]:
    for _ in let_go_oldest(desk, session, now_ms):
        yield
        if session.next_look_ms != _LOOKING:
            return  # the client is gone
    session.next_look_ms = now_ms + LOOK_MS
    desk.wake(session)


def let_go_oldest(desk: Desk, session: Session, now_ms: int) -> Iterator[None]:
    """Let the oldest of too many messages go that wait for a client, some of its subscriptions in a step."""
    queued = desk.queued
    limit = queued.limits.of(session)
    found: list[Waiting] = []
    for number, one in enumerate(list(session.subscriptions.values())):
        if number % STEP_COUNT == 0:
            yield
        if _is_waiting(one):
            found.append(Waiting(one, max(one.position, queued.find_first_for(one))))
    if limit.messages:
        yield from _keep_messages(queued, found, limit.messages)
    if limit.size:
        yield from _keep_bytes(queued, found, limit.size)
    for number, each in enumerate(found):
        if number % STEP_COUNT == 0:
            yield
        if _is_waiting(each.subscription):  # it may have ended between two steps
            _skip(desk, each.subscription, each.first, now_ms)


def _is_waiting(subscription: Subscription) -> bool:
    return subscription.state in {BEHIND, OFFLINE} and is_limited(subscription)


def _keep_messages(queued: Queued, found: list[Waiting], limit: int) -> Iterator[None]:
    """Find what stays of each subscription, so that it is no more than so many messages together."""
    total = 0
    for number, each in enumerate(found):
        if number % STEP_COUNT == 0:
            yield
        each.amount = max(queued.end_of(each.subscription.queue_ref) - each.subscription.position, 0)
        total += each.amount
    division = Division(total, limit)
    for number, each in enumerate(found if total > limit else ()):
        if number % STEP_COUNT == 0:
            yield
        kept = division.allow(each.amount)
        division.use(kept)
        each.first = max(each.first, each.subscription.position + each.amount - kept)


def _keep_bytes(queued: Queued, found: list[Waiting], limit: int) -> Iterator[None]:
    """Find what stays of each subscription, so that it is no more than so many bytes together, or one message."""
    total = 0
    for number, each in enumerate(found):
        if number % STEP_COUNT == 0:
            yield
        each.amount = queued.size_from(each.subscription.queue_ref, limit, each.first)
        total += each.amount
    division = Division(total, limit)
    kept, last = 0, None
    for number, each in enumerate(found if total > limit else ()):
        if number % STEP_COUNT == 0:
            yield
        allowed = division.allow(each.amount)
        if allowed < each.amount:
            ref = each.subscription.queue_ref
            each.first = max(each.first, queued.find_within(ref, limit, allowed))
            each.amount, last = queued.size_from(ref, limit, each.first), each
        division.use(each.amount)
        kept += each.amount
    if last is not None and not kept:
        last.first -= 1  # a message that is larger than the limit, alone


def _skip(desk: Desk, subscription: Subscription, first: int, now_ms: int) -> None:
    """Let what is before an offset go."""
    if first > subscription.position:
        desk.note_skipped(subscription, first, "queue_full", now_ms)
        subscription.position = first
        if subscription.floor_slot != NO_SLOT:
            keep_places(desk, subscription, first)
