"""The sessions of a door: found by client identifier, durable ones written down so that they survive the process."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import pairwise
from typing import Protocol

from core.errors import LmqError
from gateway.mqtt.catch_up import CatchUps
from gateway.mqtt.exact import ExactJournal
from gateway.mqtt.packets import Will
from gateway.mqtt.properties import NO_PROPERTIES, OF_WILL, decode_properties, encode_properties
from gateway.mqtt.replay import is_replay
from gateway.mqtt.session import NEVER, NO_SLOT, NOTHING_OWED, Session, Subscription

_SUBSCRIPTION = struct.Struct(">Bqqq")  # granted QoS, slots
REPLAY_OVER = 0x80  # beside the options: a replay reads its filter's own queue
_OPTIONS = struct.Struct(">BI")  # what MQTT 5 adds: options, subscription identifier
_SESSION = struct.Struct(">qBI")  # when its connection went, 0 while it has one; version; how long it lives then
_SESSION_VERSION = 2  # the owner's name follows
_SESSION_1 = struct.Struct(">qB")  # without how long it lives
_OLD_SESSION = struct.Struct(">q")  # without an owner
_WILL = struct.Struct(">BHHH")  # QoS and retain flag, sizes of topic, user and host
_WILL_RETAIN = 0x04
_WILL_PROPERTIES = 0x08  # those of MQTT 5 are there, before the body
_WILL_DUE = 0x10  # when it is published stands before the body, and before those
_EXACT = 2
_DUE = struct.Struct(">q")


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


class StoredWill:
    """A will and whose it is; `due_ms` is when it is published, 0 while its client is connected."""

    __slots__ = ("client_id", "due_ms", "host", "user", "will")

    def __init__(self, client_id: bytes, user: bytes, host: bytes, will: Will, due_ms: int = 0) -> None:
        self.client_id = client_id
        self.user = user
        self.host = host
        self.will = will
        self.due_ms = due_ms


class SessionTable:
    """All sessions.

    Slots are given back only when the change that frees them is durable: else a killed process could find two
    subscriptions with one slot.

    Args:
        table: Makes or opens a durable map by name.
        places: Where durable subscriptions keep their places.
        catch_ups: What they are owed of retained messages.
        exact: What they are in the middle of at QoS 2.
        when_kept: Calls back when all changes so far are kept.
    """

    def __init__(
        self,
        table: Callable[[str], TableLike],
        places: PlacesTable,
        catch_ups: CatchUps,
        exact: ExactJournal,
        when_kept: Callable[[Callable[[LmqError | None], None]], None],
    ) -> None:
        self._session_rows = table("mqtt_sessions")
        self._subscription_rows = table("mqtt_subscriptions")
        self._will_rows = table("mqtt_wills")
        self._places = places
        self._catch_ups = catch_ups
        self._exact = exact
        self._when_kept = when_kept
        self.find_first: Callable[[int], int] | None = None  # gives what of a queue is for those that are behind
        self._sessions: dict[bytes, Session] = {}
        self._idle_since_ms: dict[Session, int] = {}

    def __len__(self) -> int:
        """Return how many sessions there are."""
        return len(self._sessions)

    @property
    def idle_count(self) -> int:
        """How many have no connection."""
        return len(self._idle_since_ms)

    def __iter__(self) -> Iterator[Session]:
        """Give all sessions."""
        return iter(self._sessions.values())

    def __reversed__(self) -> Iterator[Session]:
        """Give all sessions, those first that came last."""
        return reversed(self._sessions.values())

    def load(
        self,
        open_queue: Callable[[bytes], int],
        max_offset: Callable[[int], int],
        next_version: int,
        now_ms: int,
        open_history: Callable[[], int],
    ) -> None:
        """Make the sessions that were written down.

        Args:
            open_queue: Gives the queue of a filter.
            max_offset: Gives the end of a queue.
            next_version: Above the versions of all retained messages.
            now_ms: When this is.
            open_history: Gives the queue that replays are read from.
        """
        for client_id, row in self._session_rows.items():
            idle_since_ms, user, expiry_s = _parse_session(row)
            session = self._sessions[client_id] = Session(client_id, user, is_persistent=True)
            session.expiry_s = expiry_s
            self._idle_since_ms[session] = idle_since_ms or now_ms
        rows = list(self._subscription_rows.items())
        self._places.reserve(
            [slot for _, row in rows for slot in _SUBSCRIPTION.unpack_from(row)[1:] if slot != NO_SLOT]
        )
        self._catch_ups.load()
        for key, row in rows:
            client_id, _, topic_filter = key.partition(b"\x00")
            owner = self._sessions.get(client_id)
            if owner is None:  # a process was killed between two commits
                self._subscription_rows.delete(key)
            else:
                queue_ref = open_queue(topic_filter)
                qos = _SUBSCRIPTION.unpack_from(row)[0]
                options, identifier = (
                    _OPTIONS.unpack_from(row, _SUBSCRIPTION.size) if len(row) > _SUBSCRIPTION.size else (0, 0)
                )
                replays = is_replay(topic_filter) and not options & REPLAY_OVER
                queue_ref = open_history() if replays else queue_ref
                made = Subscription(owner, topic_filter, qos, queue_ref, max_offset(queue_ref))
                made.first_offset = 0
                made.is_replay, made.options, made.identifier = replays, options & ~REPLAY_OVER, identifier
                self._load_places(made, row, next_version)
                owner.subscriptions[topic_filter] = made
        self._catch_ups.finish_load()

    def _load_places(self, subscription: Subscription, row: bytes, next_version: int) -> None:
        _, floor_slot, sent_slot, retained_slot = _SUBSCRIPTION.unpack_from(row)
        if floor_slot == NO_SLOT:
            return
        subscription.floor_slot = floor_slot
        subscription.sent_slot = sent_slot
        subscription.retained_slot = retained_slot
        # A machine that failed may have lost the end of the queue but not the places.
        end = subscription.position
        subscription.position = min(self._places.get(floor_slot), end)
        subscription.dup_until = min(self._places.get(sent_slot), end)
        until = self._places.get(retained_slot)
        if until:
            catch_up = self._catch_ups.take_back(retained_slot, subscription.topic_filter, until, next_version)
            subscription.session.keep_catch_up(catch_up)

    def find(self, client_id: bytes) -> Session | None:
        """Return the session of a client, or None."""
        return self._sessions.get(client_id)

    def owner_of(self, client_id: bytes) -> bytes:
        """Return the user that the session of a client belongs to; empty: anonymous clients, or nobody."""
        session = self._sessions.get(client_id)
        return (session.owner if session is not None else None) or b""

    def create(self, client_id: bytes, owner: bytes, expiry_s: int) -> Session:
        """Make the session of a client that has none; one with an expiry is durable."""
        session = self._sessions[client_id] = Session(client_id, owner, is_persistent=expiry_s > 0)
        session.expiry_s = expiry_s
        if session.is_persistent:
            self._write(session, 0)
        return session

    def note_online(self, session: Session, owner: bytes, expiry_s: int) -> None:
        """Write down that a session has a connection again, whose it is from now on, and how long it lives after it."""
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
        self._session_rows.put(
            session.client_id, _SESSION.pack(idle_since_ms, _SESSION_VERSION, session.expiry_s) + session.owner
        )

    def find_expired(self, now_ms: int, limit_s: int) -> Iterator[Session | None]:
        """Give the durable sessions that have had no connection for as long as they live, `limit_s` at most.

        None stands for each of the others, so that the search can go on in many turns; meanwhile some may come and go.
        """
        for session in list(self._idle_since_ms):
            yield session if self.is_expired(session, now_ms, limit_s) else None

    def is_expired(self, session: Session, now_ms: int, limit_s: int) -> bool:
        """Return whether a session has had no connection for as long as it lives, `limit_s` at most."""
        expiry_s = min(session.expiry_s, limit_s)
        since_ms = self._idle_since_ms.get(session)
        return expiry_s != NEVER and since_ms is not None and since_ms + 1000 * expiry_s <= now_ms

    def remove(self, session: Session) -> None:
        """End a session; the caller has ended its subscriptions."""
        del self._sessions[session.client_id]
        self._idle_since_ms.pop(session, None)
        if session.is_persistent:
            self._session_rows.delete(session.client_id)
        self._exact.forget(session)

    def keep_subscription(self, subscription: Subscription, position: int, retained_until: int) -> None:
        """Write down a new or changed subscription of a durable session.

        Args:
            subscription: What the session wants.
            position: Where it stands in its queue.
            retained_until: The retained messages stored before that place in the log are to be sent, 0 for none.
        """
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
        elif not subscription.qos:
            self._give_back(subscription)
        if subscription.qos and retained_until and not is_shared:
            self._begin_catch_up(subscription, retained_until)
        self._write_subscription(subscription)

    def _write_subscription(self, subscription: Subscription) -> None:
        is_over = is_replay(subscription.topic_filter) and not subscription.is_replay
        row = _SUBSCRIPTION.pack(
            subscription.qos, subscription.floor_slot, subscription.sent_slot, subscription.retained_slot
        ) + _OPTIONS.pack(subscription.options | (REPLAY_OVER if is_over else 0), subscription.identifier)
        self._subscription_rows.put(b"%b\x00%b" % (subscription.session.client_id, subscription.topic_filter), row)

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
            self._when_kept(partial(self._release_moved, subscription.session, old))
            if then is not None:
                self._when_kept(then)
        else:
            self._write_subscription(subscription)

    def _release_moved(self, session: Session, slots: tuple[int, int], error: LmqError | None) -> None:
        if error is None:
            self._exact.forget_slot(session, slots[0])  # all of it is complete, and below the old place
            self._release(slots, error)

    def _begin_catch_up(self, subscription: Subscription, retained_until: int) -> None:
        session = subscription.session
        before = session.find_catch_up(subscription.topic_filter)
        if before is None:
            made = self._catch_ups.begin(subscription.retained_slot, subscription.topic_filter, retained_until)
            session.keep_catch_up(made)
        else:
            if subscription.qos != _EXACT:  # what was completed at QoS 2 may be sent again at QoS 1
                self._exact.forget_slot(session, before.slot)
            self._catch_ups.restart(before, retained_until)

    def forget_subscription(self, subscription: Subscription) -> None:
        """Remove what was written down of a subscription."""
        session = subscription.session
        if not session.is_persistent:
            return
        self._subscription_rows.delete(b"%b\x00%b" % (session.client_id, subscription.topic_filter))
        self._give_back(subscription)

    def _give_back(self, subscription: Subscription) -> None:
        catch_up = subscription.session.find_catch_up(subscription.topic_filter)
        if catch_up is not None:
            self._catch_ups.end(catch_up)
            self._exact.forget_slot(subscription.session, catch_up.slot)
            subscription.session.drop_catch_up(catch_up)
        if subscription.floor_slot != NO_SLOT:
            self._exact.forget_slot(subscription.session, subscription.floor_slot)
        slots = (subscription.floor_slot, subscription.sent_slot, subscription.retained_slot)
        subscription.floor_slot = subscription.sent_slot = subscription.retained_slot = NO_SLOT
        if slots[0] != NO_SLOT:
            self._when_kept(partial(self._release, slots))

    def _release(self, slots: tuple[int, ...], error: LmqError | None) -> None:
        if error is not None:
            return  # the next start may find the subscription, and its places
        for slot in slots:
            self._places.release(slot)

    def held_positions(self) -> Iterator[tuple[int, int]]:
        """Give queue and first unacknowledged offset of each durable subscription at QoS 1.

        Sessions may come and go between two of them: those that come need nothing that was there before.
        """
        for session in list(self._sessions.values()):
            if session.is_persistent and self._sessions.get(session.client_id) is session:
                for subscription in list(session.subscriptions.values()):
                    if subscription.floor_slot != NO_SLOT and not subscription.is_replay:
                        position = self._held_from(subscription)
                        if position < NOTHING_OWED:
                            yield subscription.queue_ref, position

    def _held_from(self, subscription: Subscription) -> int:
        place = self._places.get(subscription.floor_slot)
        return place if self.find_first is None else max(place, self.find_first(subscription.queue_ref))

    def keep_will(self, stored: StoredWill) -> None:
        """Write down a will, so that it is published also when the process is killed."""
        will = stored.will
        flags = (
            will.qos
            | (_WILL_RETAIN if will.is_retained else 0)
            | _WILL_PROPERTIES
            | (_WILL_DUE if stored.due_ms else 0)
        )
        head = _WILL.pack(flags, len(will.topic), len(stored.user), len(stored.host))
        properties = encode_properties(will.properties.items())
        if stored.due_ms:
            properties = _DUE.pack(stored.due_ms) + properties
        self._will_rows.put(stored.client_id, head + will.topic + stored.user + stored.host + properties + will.body)

    def forget_will(self, client_id: bytes) -> None:
        """Remove a client's will."""
        self._will_rows.delete(client_id)

    def wills(self) -> list[StoredWill]:
        """Return all wills that were written down."""
        return [_parse_will(client_id, row) for client_id, row in list(self._will_rows.items())]


def _parse_session(row: bytes) -> tuple[int, bytes | None, int]:
    """Return since when a session is idle, 0 for not, whose it is, None where the row does not say, and its expiry."""
    if len(row) == _OLD_SESSION.size:
        return int(_OLD_SESSION.unpack(row)[0]), None, NEVER
    since_ms, version = _SESSION_1.unpack_from(row)
    if version == 1:
        return int(since_ms), row[_SESSION_1.size :], NEVER
    return int(since_ms), row[_SESSION.size :], int(_SESSION.unpack_from(row)[2])


def _parse_will(client_id: bytes, row: bytes) -> StoredWill:
    flags, *sizes = _WILL.unpack_from(row)
    ends = [_WILL.size]
    for size in sizes:
        ends.append(ends[-1] + size)
    topic, user, host = (row[start:end] for start, end in pairwise(ends))
    properties, body_at, due_ms = NO_PROPERTIES, ends[-1], 0
    if flags & _WILL_DUE:
        (due_ms,) = _DUE.unpack_from(row, body_at)
        body_at += _DUE.size
    if flags & _WILL_PROPERTIES:
        properties, body_at = decode_properties(row, body_at, OF_WILL)
    will = Will(topic, row[body_at:], flags & 3, bool(flags & _WILL_RETAIN), properties)
    return StoredWill(client_id, user, host, will, due_ms)
