"""Loads sessions from their rows, one by one, when they are asked for.

At the start only what has to be known without a client is read: which filters are routed to, and whose they are. A
session that is not loaded is a row of keys; all else of it stays where it was written down.

Source: docs/decisions/0068-sessions-are-loaded-when-asked-for.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import NamedTuple, Protocol

from core.row_format import FIRST, RowFormat
from gateway.mqtt.catch_up import CatchUp, CatchUps
from gateway.mqtt.eras import cut_eras
from gateway.mqtt.exact import ExactJournal
from gateway.mqtt.exact_records import SentBefore
from gateway.mqtt.inflight import EXACT_COMPLETE
from gateway.mqtt.replay import is_replay
from gateway.mqtt.restoring import catch_ups_of, choose_owed, restore
from gateway.mqtt.session import GONE, NO_SLOT, NOTHING_OWED, Ended, Session, ShareGroup, Subscription
from gateway.mqtt.session_rows import (
    REPLAY_OVER,
    EndedRow,
    SessionRow,
    SubscriptionRow,
    parse_ended,
    parse_session,
    parse_subscription,
)
from gateway.mqtt.topics import is_shared

STEP_COUNT = 16  # subscriptions that are looked at in one step, some 50 us
Resting = tuple[bytes, ...]  # a session that is not loaded: its client identifier, and the keys of its subscriptions


class TableLike(Protocol):
    """A durable map."""

    def get(self, key: bytes) -> bytes | None:
        """Return the value of `key`, or None."""

    def put(self, key: bytes, value: bytes) -> None:
        """Set the value of `key`."""

    def delete(self, key: bytes) -> None:
        """Remove `key`."""

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Give all keys and values."""


class MakeTable(Protocol):
    """Makes or opens a durable map by name."""

    def __call__(self, name: str, rows: RowFormat = FIRST, /) -> TableLike:
        """Return it; its rows have a form."""


class PlacesTable(Protocol):
    """Numbers that survive a killed process, in slots that their owner remembers."""

    def reserve(self, slots_in_use: Iterable[int]) -> None:
        """Say at the start which slots are owned."""

    def acquire(self, value: int = 0) -> int:
        """Return a free slot, with a number in it."""

    def release(self, slot: int) -> None:
        """Give a slot back."""

    def get(self, slot: int) -> int:
        """Return the number of a slot."""

    def set(self, slot: int, value: int) -> None:
        """Set the number of a slot."""


class Queues(NamedTuple):
    """Where subscriptions that are written down read: what the loader asks of the door."""

    take_up: Callable[[bytes, bytes], int]  # routes to a filter of a client from the start on; gives its light queue
    of_filter: Callable[[bytes], int]  # of one that was taken up
    of_history: Callable[[], int]  # that replays are read from
    group_of: Callable[[bytes], ShareGroup]  # of a shared filter that was taken up
    own: Callable[[bytes, int, bytes], None]  # has no member of it be handed the message of an offset: it is a client's
    max_offset: Callable[[int], int]
    note_given_again: Callable[[Session], None] = lambda _: None  # what one that is loaded is sent once more


class SessionLoader:
    """Reads what is written down of durable sessions.

    Args:
        session_rows: The table of sessions.
        subscription_rows: The table of subscriptions.
        places: Where durable subscriptions keep their places.
        catch_ups: What they are owed of retained messages.
        exact: What they are in the middle of at QoS 2.
        ended_rows: The table of those that ended while messages were under way.
    """

    def __init__(
        self,
        session_rows: TableLike,
        subscription_rows: TableLike,
        places: PlacesTable,
        catch_ups: CatchUps,
        exact: ExactJournal,
        *,
        ended_rows: TableLike,
    ) -> None:
        self._session_rows = session_rows
        self._subscription_rows = subscription_rows
        self._ended_rows = ended_rows
        self._ended: dict[bytes, list[EndedRow]] = {}  # of sessions that are not loaded
        self._places = places
        self._catch_ups = catch_ups
        self._exact = exact
        self.window_max: Callable[[], int] = _no_room  # how many messages may be in flight
        self._unfinished: set[bytes] = set()  # clients whose session is not loaded, and in the middle of something
        self._queues: Queues | None = None
        self._started_ms = 0

    @property
    def queues(self) -> Queues:
        """Where subscriptions read."""
        assert self._queues is not None  # `read` comes first
        return self._queues

    def read(self, queues: Queues, next_version: int, now_ms: int, others: Iterable[int]) -> dict[bytes, Resting]:
        """Return all sessions that were written down; the journal of QoS 2 was read.

        Args:
            queues: Where subscriptions read.
            next_version: Above the versions of all retained messages.
            now_ms: When this is.
            others: Slots that are not subscriptions'.
        """
        self._queues, self._started_ms = queues, now_ms
        found: dict[bytes, Resting] = {row[0]: row[:1] for row in self._session_rows.items()}
        rows = list(self._subscription_rows.items())
        self._places.reserve(chain(_slots_of(rows), self._read_ended(found, rows), others))
        long: dict[bytes, list[bytes]] = {}  # of clients with several subscriptions
        owed: dict[int, bytes] = {}
        for key, value in rows:
            client_id, _, topic_filter = key.partition(b"\x00")
            owner = found.get(client_id)
            if owner is None:  # a process was killed between two commits
                self._subscription_rows.delete(key)
                continue
            if len(owner) == 1:
                found[owner[0]] = (owner[0], key)
            else:
                long.setdefault(owner[0], list(owner)).append(key)
            row = parse_subscription(value)
            queue_ref = queues.take_up(owner[0], topic_filter)
            if row.floor_slot != NO_SLOT and self._check_places(topic_filter, row, queue_ref):
                owed[row.retained_slot] = owner[0]
        for client_id, keys in long.items():
            found[client_id] = tuple(keys)
        for client_id, ended in self._ended.items():
            self._ended[client_id] = [self._within(each) for each in ended]
            slots_owed = (each.was.retained_slot for each in ended)
            owed.update({slot: client_id for slot in slots_owed if self._places.get(slot) > 0})
        self._catch_ups.load(owed, next_version)
        self._unfinished = {*owed.values(), *self._ended, *self._exact.choose(partial(self._choose_sent, found))}
        self._catch_ups.finish_load()  # first: what is complete is forgotten in the journal of QoS 2
        self._exact.finish_load()
        return found

    def _read_ended(self, sessions: dict[bytes, Resting], rows: list[tuple[bytes, bytes]]) -> set[int]:
        """Read which subscriptions ended while messages were under way; return their slots.

        A gateway of before, which knows no such rows, may have ended a session, or given slots to other subscriptions.
        """
        found = [(key, parse_ended(value)) for key, value in self._ended_rows.items()]
        slots = {slot for _, row in found for slot in row.was[1:4]}
        others = {slot for slot in _slots_of(rows) if slot in slots} if slots else slots
        for key, row in found:
            client_id, own = key.partition(b"\x00")[0], row.was[1:4]
            if client_id not in sessions or not others.isdisjoint(own):
                self._ended_rows.delete(key)
                slots.difference_update(own)
            else:
                self._ended.setdefault(client_id, []).append(row)
        return slots

    def _within(self, row: EndedRow) -> EndedRow:
        """Return a row without what a power cut took: what has its offset next is another message."""
        end = self._end_of(row.topic_filter, row.was)
        return row._replace(owed=[offset for offset in row.owed if offset < end])

    def _check_places(self, topic_filter: bytes, row: SubscriptionRow, queue_ref: int) -> bool:
        """Return whether retained messages are owed.

        A machine that failed may have lost the end of the queue but not the places. They are set to that end before
        the queue grows again: what comes then is new to the session.
        """
        end = self.queues.max_offset(self.queues.of_history() if _replays(topic_filter, row) else queue_ref)
        for slot in (row.floor_slot, row.sent_slot):
            if end < self._places.get(slot) < NOTHING_OWED:
                self._places.set(slot, end)
        return self._places.get(row.retained_slot) > 0

    def _choose_sent(
        self, sessions: dict[bytes, Resting], client_id: bytes, sent: list[SentBefore]
    ) -> list[SentBefore] | None:
        """Return what is still to be known of what a client was sent at QoS 2, None where it has no session.

        Below the place of its subscription all is settled. Past the end of its queue a power cut took the message: what
        has its offset next is another one, which the session was not sent. What is a client's of a shared one is nobody
        else's: the kill may have come before it was done for the group.
        """
        if client_id not in sessions:
            return None
        live = [*self._slots_of(sessions[client_id])]
        ended = [(topic_filter, row) for topic_filter, row, _ in self._ended.get(client_id, ())]
        known = {row.floor_slot: self._known_of(topic_filter, row) for topic_filter, row in live + ended}
        ended_slots = {row.floor_slot for _, row in ended}
        slots = [row.retained_slot for _, row in live + ended]
        owed = choose_owed({slot: self._catch_ups.found_in_flight(slot) for slot in slots}, sent)
        chosen = []
        for one in sent:
            if one.number in owed:
                chosen.append(one)
                continue
            is_done = one.state == EXACT_COMPLETE
            one.slots = tuple(
                slot
                for slot in one.slots
                if slot in known and one.offset in known[slot][0] and not (is_done and slot in ended_slots)
            )
            if one.slots:
                chosen.append(one)
            for topic_filter in {known[slot][1] for slot in one.slots}:
                if is_shared(topic_filter):
                    self.queues.own(topic_filter, one.offset, client_id)
        return chosen

    def _known_of(self, topic_filter: bytes, row: SubscriptionRow) -> tuple[range, bytes]:
        """Return which queue offsets of a subscription are to be known if they were sent, and its filter."""
        return range(self._places.get(row.floor_slot), self._end_of(topic_filter, row)), topic_filter

    def is_unfinished(self, client_id: bytes) -> bool:
        """Return whether a session that is not loaded is in the middle of something."""
        return client_id in self._unfinished

    def load(self, resting: Resting) -> Session:
        """Return a session as what is written down says it is, to go on with."""
        session = self._make_session(resting, self._catch_ups.take_back)
        if session.client_id in self._unfinished:
            self._unfinished.discard(session.client_id)
            self._ended.pop(session.client_id, None)
            catch_ups = catch_ups_of(session)
            before = [one.in_flight.copy() for one in catch_ups]
            restore(session, self._exact.take_back(session), self.window_max())
            for catch_up, was in zip(catch_ups, before, strict=True):
                self._catch_ups.note_order(catch_up, was)
        self.queues.note_given_again(session)
        return session

    def look(self, resting: Resting) -> Session:
        """Return what `load` would, to be looked at."""
        session = self._make_session(resting, self._catch_ups.look)
        if session.client_id in self._unfinished:
            restore(session, self._exact.look(session.client_id), self.window_max())
        return session

    def _queue_of(self, topic_filter: bytes, row: SubscriptionRow) -> int:
        """Return the queue that a subscription reads; -1 where it has ended and the queue is not there."""
        queues = self.queues
        return queues.of_history() if _replays(topic_filter, row) else queues.of_filter(topic_filter)

    def _end_of(self, topic_filter: bytes, row: SubscriptionRow) -> int:
        """Return the end of that queue."""
        queue_ref = self._queue_of(topic_filter, row)
        return 0 if queue_ref < 0 else self.queues.max_offset(queue_ref)

    def look_in_steps(self, resting: Resting) -> Iterator[Session | None]:
        """Give what `look` returns, at the last step, and None at those before.

        The caller stops where the session is loaded or removed between two steps.
        """
        session = self._make_session(resting[:1], self._catch_ups.look)
        for number, _ in enumerate(self._fill(session, resting, self._catch_ups.look)):
            if number % STEP_COUNT == 0:
                yield None
        if session.client_id in self._unfinished:
            restore(session, self._exact.look(session.client_id), self.window_max())
        yield session

    def _make_session(self, resting: Resting, catch_up: Callable[[int, bytes, int], CatchUp]) -> Session:
        client_id = resting[0]
        row = self.row_of(client_id)
        session = Session(client_id, row.owner, is_persistent=True)
        session.expiry_s = row.expiry_s
        for _ in self._fill(session, resting, catch_up):
            pass
        return session

    def _fill(
        self, session: Session, resting: Resting, catch_up: Callable[[int, bytes, int], CatchUp]
    ) -> Iterator[None]:
        """Give a session its subscriptions, one in each step."""
        client_id, *keys = resting
        for topic_filter, each in self._subscriptions(client_id, keys):
            session.subscriptions[topic_filter] = self._make_live(session, topic_filter, each)
            until = self._places.get(each.retained_slot) if each.floor_slot != NO_SLOT else 0
            if until:
                session.keep_catch_up(catch_up(each.retained_slot, topic_filter, until))
            yield
        for row in self._ended.get(client_id, ()):
            session.keep_ended(self._make_ended(session, row, catch_up))
            yield

    def _make_ended(self, session: Session, row: EndedRow, catch_up: Callable[[int, bytes, int], CatchUp]) -> Ended:
        """Return a subscription that ended, with what is under way at QoS 1 in the window."""
        topic_filter, was, owed = row
        gone = self._make(session, topic_filter, was)
        self._load_places(gone, was)
        gone.state = GONE
        until = self._places.get(was.retained_slot)
        ended = Ended(gone, catch_up(was.retained_slot, topic_filter, until) if until else None)
        if ended.catch_up is not None:
            ended.catch_up.cursor = until
        ended.owed = owed.copy()
        ended.is_kept = True
        return ended

    def row_of(self, client_id: bytes) -> SessionRow:
        """Return what is written down of a session; one that was connected at the end is idle since the start."""
        value = self._session_rows.get(client_id)
        assert value is not None
        row = parse_session(value)
        return row if row.idle_since_ms else row._replace(idle_since_ms=self._started_ms)

    def _subscriptions(self, client_id: bytes, keys: Iterable[bytes]) -> Iterator[tuple[bytes, SubscriptionRow]]:
        for key in keys:
            value = self._subscription_rows.get(key)
            assert value is not None
            yield key[len(client_id) + 1 :], parse_subscription(value)

    def _make(self, session: Session, topic_filter: bytes, row: SubscriptionRow) -> Subscription:
        queue_ref = self._queue_of(topic_filter, row)
        made = Subscription(session, topic_filter, row.qos, queue_ref, self._end_of(topic_filter, row))
        made.first_offset, made.is_replay = row.first_offset, _replays(topic_filter, row)
        made.options, made.identifier = row.options & ~REPLAY_OVER, row.identifier
        return made

    def _make_live(self, session: Session, topic_filter: bytes, row: SubscriptionRow) -> Subscription:
        made = self._make(session, topic_filter, row)
        if is_shared(topic_filter):
            made.group = self.queues.group_of(topic_filter)
        if row.floor_slot != NO_SLOT:
            self._load_places(made, row)
        elif not row.qos:
            made.dup_until = made.position
        made.eras = cut_eras(row.eras, made.position)
        return made

    def _load_places(self, made: Subscription, row: SubscriptionRow) -> None:
        made.floor_slot, made.sent_slot, made.retained_slot = row.floor_slot, row.sent_slot, row.retained_slot
        made.dup_until = min(self._places.get(made.sent_slot), made.position)
        made.position = min(self._places.get(made.floor_slot), made.position)

    def _slots_of(self, resting: Resting) -> Iterator[tuple[bytes, SubscriptionRow]]:
        """Give filter and row of each subscription at QoS 1."""
        client_id, *keys = resting
        return (each for each in self._subscriptions(client_id, keys) if each[1].floor_slot != NO_SLOT)

    def places_of(self, resting: Resting) -> Iterator[tuple[int, int, bool]]:
        """Give queue and first unacknowledged offset of each subscription at QoS 1, and whether it is shared.

        The session may be loaded meanwhile, and its subscriptions end.
        """
        client_id, *keys = resting
        for key in keys:
            value = self._subscription_rows.get(key)
            if value is None:
                continue
            topic_filter, row = key[len(client_id) + 1 :], parse_subscription(value)
            if row.floor_slot != NO_SLOT and not _replays(topic_filter, row):
                place = self._places.get(row.floor_slot)
                yield self.queues.of_filter(topic_filter), place, is_shared(topic_filter)

    def places_of_ended(self, client_id: bytes) -> Iterator[tuple[int, int]]:
        """Give queue and first offset under way of what ended of a session that is not loaded."""
        for topic_filter, was, _ in self._ended.get(client_id, ()):
            if not _replays(topic_filter, was) and (queue_ref := self.queues.of_filter(topic_filter)) >= 0:
                yield queue_ref, self._places.get(was.floor_slot)

    def ended_filters(self, client_id: bytes) -> list[bytes]:
        """Return what of that was subscribed to; nothing where the session is loaded."""
        return [row.topic_filter for row in self._ended.get(client_id, ())]


def _no_room() -> int:
    return 0


def filters_of(resting: Resting) -> list[bytes]:
    """Return what a session that is not loaded subscribed to."""
    client_id, *keys = resting
    return [key[len(client_id) + 1 :] for key in keys]


def _replays(topic_filter: bytes, row: SubscriptionRow) -> bool:
    return is_replay(topic_filter) and not row.options & REPLAY_OVER


def _slots_of(rows: Iterable[tuple[bytes, bytes]]) -> Iterator[int]:
    for _, value in rows:
        for slot in parse_subscription(value)[1:4]:
            if slot != NO_SLOT:
                yield slot
