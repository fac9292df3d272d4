"""The sessions of a door: found by client identifier, durable ones written down so that they survive the process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from core.errors import LmqError
from gateway.mqtt.catch_up import CatchUps
from gateway.mqtt.exact import ExactJournal
from gateway.mqtt.kept_wills import KeptWills
from gateway.mqtt.queued import Behind, is_limited
from gateway.mqtt.session import ABREAST, NEVER, NO_SLOT, NOTHING_OWED, OFFLINE, Session, Subscription
from gateway.mqtt.session_loader import MakeTable, PlacesTable, Queues, Resting, SessionLoader, filters_of
from gateway.mqtt.session_outlines import Outline, outline_of
from gateway.mqtt.session_rows import (
    WILL_ROWS,
    pack_session,
    pack_subscription,
    subscription_key,
)
from gateway.mqtt.slot_ends import SlotEnds, row_of

TALLIED_A_STEP = 64  # sessions, whose subscriptions are counted
_EXACT = 2


class SessionTable:
    """All sessions. A durable one is loaded when it is asked for the first time since the start.

    Slots are given back only when the change that frees them is durable: else a killed process could find two
    subscriptions with one slot.

    Args:
        table: Makes or opens a durable map by name, with the form of its rows.
        places: Where durable subscriptions keep their places.
        catch_ups: What they are owed of retained messages.
        exact: What they are in the middle of at QoS 2.
        when_kept: Calls back when all changes so far are kept.
    """

    def __init__(
        self,
        table: MakeTable,
        places: PlacesTable,
        catch_ups: CatchUps,
        exact: ExactJournal,
        when_kept: Callable[[Callable[[LmqError | None], None]], None],
    ) -> None:
        self._session_rows = table("mqtt_sessions")
        self._subscription_rows = table("mqtt_subscriptions")
        self.wills = KeptWills(table("mqtt_wills", WILL_ROWS), places, when_kept)
        ended_rows = table("mqtt_ended")
        self.loader = SessionLoader(
            self._session_rows, self._subscription_rows, places, catch_ups, exact, ended_rows=ended_rows
        )
        self._ends = SlotEnds(ended_rows, places, catch_ups, exact, when_kept)
        self.note_left = self._ends.settle
        self._places = places
        self._catch_ups = catch_ups
        self._exact = exact
        self._when_kept = when_kept
        self.find_first: Callable[[int], int] | None = None  # gives what of a queue is for those that are behind
        self.changes = 0  # goes up when a session or a subscription comes or goes
        self._sessions: dict[bytes, Session | Resting] = {}
        self._resting_count = 0
        self._idle_since_ms: dict[Session, int] = {}  # of those that are loaded

    def __len__(self) -> int:
        """Return how many sessions there are."""
        return len(self._sessions)

    @property
    def idle_count(self) -> int:
        """How many have no connection."""
        return self._resting_count + len(self._idle_since_ms)

    def __iter__(self) -> Iterator[Session]:
        """Give all sessions, to be looked at. One that is not loaded is shown as it would be now, and stays unloaded.

        They may come and go meanwhile.
        """
        for client_id in list(self._sessions):
            with self.looking(client_id) as session:
                if session is not None:
                    yield session

    def __reversed__(self) -> Iterator[bytes]:
        """Give the clients of all sessions, those first that came last; each is the same object while it is there.

        None may come or go meanwhile.
        """
        return reversed(self._sessions)

    def clients(self) -> Iterator[bytes]:
        """Give the clients of all sessions, which may come and go meanwhile."""
        return iter(list(self._sessions))

    def is_there(self, client_id: bytes) -> bool:
        """Return whether one of `__reversed__` still has the session that it had then."""
        found = self._sessions.get(client_id)
        return found is not None and (found.client_id if isinstance(found, Session) else found[0]) is client_id

    def load(self, queues: Queues, next_version: int, now_ms: int) -> None:
        """Read which sessions were written down, and what they are in the middle of; the journal of QoS 2 was read.

        Args:
            queues: Where their subscriptions read.
            next_version: Above the versions of all retained messages.
            now_ms: When this is.
        """
        self._sessions.update(self.loader.read(queues, next_version, now_ms, self.wills.slots()))
        self._resting_count = len(self._sessions)

    def loaded(self) -> Iterator[Session]:
        """Give the sessions that are loaded."""
        return (one for one in list(self._sessions.values()) if isinstance(one, Session))

    def find(self, client_id: bytes) -> Session | None:
        """Return the session of a client, or None; it is loaded by that."""
        found = self._sessions.get(client_id)
        if found is None or isinstance(found, Session):
            return found
        session = self._sessions[found[0]] = self.loader.load(found)
        self._ends.settle_all(session)
        self._idle_since_ms[session] = self.loader.row_of(client_id).idle_since_ms
        self._resting_count -= 1
        return session

    @contextmanager
    def looking(self, client_id: bytes, *topic_filters: bytes) -> Iterator[Session | None]:
        """Give the session of a client to be looked at, or None; it is not loaded by that.

        With filters it may have no other subscriptions: some have thousands, each of which takes some 3 us.
        """
        found = self._sessions.get(client_id)
        if found is None or isinstance(found, Session):
            yield found
            return
        if topic_filters:
            wanted = {subscription_key(client_id, topic_filter) for topic_filter in topic_filters}
            found = (found[0], *wanted.intersection(found[1:]))
        session = self.loader.look(found)
        try:
            yield session
        finally:
            session.end()
            session.subscriptions.clear()  # each refers to the session

    def find_as_is(self, client_id: bytes) -> Session | Resting | None:
        """Return the session of a client as it is, loaded or not: the same object as long as that does not change."""
        return self._sessions.get(client_id)

    def outline(self, client_id: bytes) -> Outline | None:
        """Return what there is to tell of a client's session, or None; it is not loaded by that."""
        found = self._sessions.get(client_id)
        if found is None:
            return None
        if isinstance(found, Session):
            return outline_of(found)
        if self.loader.is_unfinished(client_id):
            with self.looking(client_id) as session:
                return None if session is None else outline_of(session)
        row = self.loader.row_of(client_id)
        return Outline(found[0], row.owner, None, True, row.expiry_s, len(found) - 1, 0)  # noqa: FBT003 # a field

    def outlines(self) -> Iterator[Outline]:
        """Give what there is to tell of all sessions; they may come and go meanwhile."""
        return filter(None, map(self.outline, list(self._sessions)))

    def tally(self, client_id: bytes) -> tuple[int, int]:
        """Return how many subscriptions and how many messages in flight a client's session has; it is not loaded."""
        found = self._sessions.get(client_id)
        if isinstance(found, Session):
            window = found.window
            return len(found.subscriptions), 0 if window is None else window.head - window.tail
        if found is None:
            return 0, 0
        outline = self.outline(client_id) if self.loader.is_unfinished(client_id) else None
        return len(found) - 1, 0 if outline is None else outline.inflight_count

    def tallies(self) -> Iterator[tuple[int, int]]:
        """Give what `tally` says of all sessions, of some together in each step."""
        clients = list(self._sessions)
        for at in range(0, len(clients), TALLIED_A_STEP):
            subscriptions, inflight = zip(*map(self.tally, clients[at : at + TALLIED_A_STEP]), strict=True)
            yield sum(subscriptions), sum(inflight)

    def filters_of(self, client_id: bytes) -> list[bytes]:
        """Return what the session of a client subscribed to; it is not loaded by that."""
        found = self._sessions.get(client_id)
        if found is None:
            return []
        return list(found.subscriptions) if isinstance(found, Session) else filters_of(found)

    def filters_to_read(self, client_id: bytes) -> list[bytes]:
        """Return that, and what a client unsubscribed from and has messages under way of: all that it may be sent."""
        found = self._sessions.get(client_id)
        if isinstance(found, Session):
            ended = [one.subscription.topic_filter for one in found.all_ended()]
        else:
            ended = self.loader.ended_filters(client_id)
        return [*self.filters_of(client_id), *ended]

    def owner_of(self, client_id: bytes) -> bytes:
        """Return the user that the session of a client belongs to; empty: anonymous clients, or nobody."""
        outline = self.outline(client_id)
        return (outline.owner if outline is not None else None) or b""

    def create(self, client_id: bytes, owner: bytes, expiry_s: int) -> Session:
        """Make the session of a client that has none; one with an expiry is durable."""
        self.changes += 1
        session = self._sessions[client_id] = Session(client_id, owner, is_persistent=expiry_s > 0)
        session.expiry_s = expiry_s
        if session.is_persistent:
            self._write(session, 0)
        return session

    def note_online(self, session: Session, owner: bytes, expiry_s: int) -> None:
        """Write down that a session has a connection again, its owner, and for how long it outlives the connection."""
        session.owner = owner
        session.expiry_s = expiry_s
        if self._idle_since_ms.pop(session, None) is not None:
            self._write(session, 0)

    def note_idle(self, session: Session, now_ms: int) -> None:
        """Write down since when a durable session has no connection."""
        self._idle_since_ms[session] = now_ms
        self._write(session, now_ms)

    def _write(self, session: Session, idle_since_ms: int) -> None:
        assert session.owner is not None
        self._session_rows.put(session.client_id, pack_session(idle_since_ms, session.owner, session.expiry_s))

    def find_expired(self, now_ms: int, limit_s: int) -> Iterator[Session | None]:
        """Give the durable sessions that have had no connection for as long as they live, `limit_s` at most.

        None stands for each of the others, so that the search can go on in many turns; meanwhile some may come and go.
        """
        for client_id in list(self._sessions):
            found = self._sessions.get(client_id)
            if isinstance(found, Session):
                yield found if self.is_expired(found, now_ms, limit_s) else None
            elif found is not None:
                row = self.loader.row_of(client_id)
                is_over = _is_over(row.idle_since_ms, min(row.expiry_s, limit_s), now_ms)
                yield self.find(client_id) if is_over else None

    def is_expired(self, session: Session, now_ms: int, limit_s: int) -> bool:
        """Return whether a session has had no connection for as long as it lives, `limit_s` at most."""
        since_ms = self._idle_since_ms.get(session)
        return since_ms is not None and _is_over(since_ms, min(session.expiry_s, limit_s), now_ms)

    def remove(self, session: Session) -> None:
        """End a session; the caller has ended its subscriptions."""
        self.changes += 1
        del self._sessions[session.client_id]
        self._idle_since_ms.pop(session, None)
        if session.is_persistent:
            self._session_rows.delete(session.client_id)
            self._ends.end_all(session)
        if session.is_persistent and session.exact_number:
            self._ends.when_ended([partial(self._exact.forget, session)])
        else:
            self._exact.forget(session)

    def keep_subscription(self, subscription: Subscription, position: int, retained_until: int) -> None:
        """Write down a new or changed subscription of a durable session.

        Args:
            subscription: What the session wants.
            position: Where it stands in its queue.
            retained_until: The retained messages stored before that place in the log are to be sent, 0 for none.
        """
        self.changes += 1
        session = subscription.session
        if not session.is_persistent:
            return
        is_shared = subscription.group is not None  # its place is the group's
        wants_places = subscription.qos == _EXACT if is_shared else subscription.qos > 0
        if wants_places and subscription.floor_slot == NO_SLOT:
            position = NOTHING_OWED if is_shared else position
            subscription.floor_slot = self._places.acquire(position)
            subscription.sent_slot = self._places.acquire(position)
            subscription.retained_slot = self._places.acquire()
            self._exact.note_slot(subscription)
        ended = [] if subscription.qos else self._ends.give_back(subscription, stays=True)
        if subscription.qos and retained_until and not is_shared:
            self._begin_catch_up(subscription, retained_until)
        self._write_subscription(subscription)
        self._ends.when_ended(ended)

    def _write_subscription(self, subscription: Subscription) -> None:
        key = subscription_key(subscription.session.client_id, subscription.topic_filter)
        self._subscription_rows.put(key, pack_subscription(row_of(subscription)))

    def note_place(self, subscription: Subscription) -> None:
        """Write down where a durable subscription begins, which was not known when it was kept."""
        if subscription.floor_slot != NO_SLOT:
            self._places.set(subscription.floor_slot, subscription.position)
            self._places.set(subscription.sent_slot, subscription.position)

    def keep_moved(self, subscription: Subscription, then: Callable[[LmqError | None], None] | None = None) -> None:
        """Write down that a durable subscription stands in another queue, at its position, with nothing in flight.

        Its new place gets new slots: a process that is killed before that is durable goes on from the old ones. `then`
        is called when it is.
        """
        if not subscription.session.is_persistent:
            return
        if subscription.floor_slot != NO_SLOT:
            old = (subscription.floor_slot, subscription.sent_slot)
            subscription.floor_slot = self._places.acquire(subscription.position)
            subscription.sent_slot = self._places.acquire(subscription.position)
            self._write_subscription(subscription)
            self._ends.release_old(subscription.session, old)
            if then is not None:
                self._when_kept(then)
        else:
            self._write_subscription(subscription)

    def _begin_catch_up(self, subscription: Subscription, retained_until: int) -> None:
        session = subscription.session
        before = session.find_catch_up(subscription.topic_filter)
        if before is None:
            made = self._catch_ups.begin(subscription.retained_slot, subscription.topic_filter, retained_until)
            session.keep_catch_up(made)
        else:
            if subscription.qos != _EXACT:  # what was completed at QoS 2 may be sent again at QoS 1
                self._exact.forget_done(session, before.slot)
            self._catch_ups.restart(before, retained_until)

    def forget_subscription(self, subscription: Subscription, leave: Callable[[], None] = lambda: None) -> None:
        """Remove what was written down of a subscription.

        Args:
            subscription: It ends.
            leave: Lets it leave its group, which may call `keep_alone`: one commit has all of that.
        """
        self.changes += 1
        session, ended = subscription.session, []
        if session.is_persistent:
            self._subscription_rows.delete(subscription_key(session.client_id, subscription.topic_filter))
            ended = self._ends.give_back(subscription, has_session=self._has(session))
        leave()
        self._ends.when_ended(ended)
        self._ends.note_alone()

    def keep_alone(self, subscription: Subscription) -> None:
        """Write down what a subscription that ends has of a group that ends, too."""
        if subscription.session.is_persistent and self._has(subscription.session):
            self._ends.keep_alone(subscription)

    def _has(self, session: Session) -> bool:
        return self._sessions.get(session.client_id) is session

    def held_positions(self) -> Iterator[tuple[int, int]]:
        """Give queue and first unacknowledged offset of each durable subscription at QoS 1.

        Sessions may come and go between two of them: those that come need nothing that was there before.
        """
        for client_id in list(self._sessions):
            for queue_ref, place in self._places_of(self._sessions.get(client_id)):
                position = place if self.find_first is None else max(place, self.find_first(queue_ref))
                if position < NOTHING_OWED:
                    yield queue_ref, position

    def _places_of(self, found: Session | Resting | None) -> Iterator[tuple[int, int]]:
        if isinstance(found, Session):
            ended = [one.subscription for one in found.all_ended()]
            for one in [*found.subscriptions.values(), *ended] if found.is_persistent else ():
                if one.floor_slot != NO_SLOT and not one.is_replay and one.queue_ref >= 0:
                    yield one.queue_ref, self._places.get(one.floor_slot)
        elif found is not None:
            for queue_ref, place, _ in self.loader.places_of(found):
                yield queue_ref, place
            yield from self.loader.places_of_ended(found[0])

    def behind(self) -> Iterator[Behind | None]:
        """Give each subscription at QoS 1 that is by itself, and may be behind in its queue.

        None stands for each session. They may come and go meanwhile.
        """
        for client_id in list(self._sessions):
            found = self._sessions.get(client_id)
            if isinstance(found, Session):
                for one in list(found.subscriptions.values()):
                    if is_limited(one) and one.state != ABREAST:
                        yield Behind(client_id, one.queue_ref, one.position, one.state == OFFLINE)
            elif found is not None:
                for queue_ref, place, shares in self.loader.places_of(found):
                    if not shares:
                        yield Behind(client_id, queue_ref, place, is_away=True)
            yield None


def _is_over(idle_since_ms: int, expiry_s: int, now_ms: int) -> bool:
    return expiry_s != NEVER and idle_since_ms + 1000 * expiry_s <= now_ms
