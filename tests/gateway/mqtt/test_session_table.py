from __future__ import annotations

import pytest

from core.row_format import FIRST
from gateway.mqtt import session_table
from gateway.mqtt.catch_up import CatchUps
from gateway.mqtt.exact import ExactJournal
from gateway.mqtt.inflight import EXACT_SENT
from gateway.mqtt.packets import Will
from gateway.mqtt.session import NEVER, NO_SLOT, Subscription
from gateway.mqtt.session_loader import Queues
from gateway.mqtt.session_rows import StoredWill, SubscriptionRow, pack_subscription, subscription_key
from gateway.mqtt.session_table import SessionTable
from tests.support.stores import FullPlaces, MemoryJournal, MemoryPlaces, MemoryTable


class Disk:
    """What outlives a process."""

    def __init__(self):
        self.tables = {}
        self.places = MemoryPlaces()
        self.journal = MemoryJournal()
        self.waiting = []

    def table(self, name, rows=FIRST):
        return self.tables.setdefault(name, MemoryTable())

    def open(self, now_ms=0, ends=None):
        self.waiting.clear()
        self.catch_ups = CatchUps(self.journal, self.places)
        table = SessionTable(
            self.table, self.places, self.catch_ups, ExactJournal(MemoryJournal()), self.waiting.append
        )
        self.places.lose_owners()
        self.taken_up = []
        queues = Queues(self.take_up, len, lambda: 0, None, None, lambda queue_ref: (ends or {}).get(queue_ref, 100))
        table.load(queues, 1_000, now_ms)
        return table

    def take_up(self, client_id, topic_filter):
        self.taken_up.append((client_id, topic_filter))
        return len(topic_filter)

    def become_durable(self):
        for callback in self.waiting:
            callback(None)
        self.waiting.clear()


@pytest.fixture
def disk():
    return Disk()


def subscribe(table, session, topic_filter, qos, position, retained_until=0):
    made = Subscription(session, topic_filter, qos, len(topic_filter), position)
    session.subscriptions[topic_filter] = made
    table.keep_subscription(made, position, retained_until)
    return made


def test_clean_sessions_leave_no_trace(disk):
    table = disk.open()
    session = table.create(b"c", b"", 0)
    made = subscribe(table, session, b"t", 1, 5)
    assert made.floor_slot == NO_SLOT
    assert len(disk.open()) == 0
    table.forget_subscription(made)
    table.remove(session)
    assert table.find(b"c") is None


def test_durable_session_comes_back_with_its_places(disk):
    table = disk.open()
    session = table.create(b"c", b"", NEVER)
    made = subscribe(table, session, b"a/#", 1, 7)
    subscribe(table, session, b"zero", 0, 9)
    disk.places.set(made.floor_slot, 10)
    disk.places.set(made.sent_slot, 14)
    again = disk.open(ends={3: 20, 4: 40}).find(b"c")
    assert again.is_persistent
    back = again.subscriptions[b"a/#"]
    assert (back.qos, back.queue_ref, back.position, back.dup_until) == (1, 3, 10, 14)
    zero = again.subscriptions[b"zero"]
    assert (zero.qos, zero.position, zero.floor_slot) == (0, 40, NO_SLOT)


def test_what_is_owed_of_retained_messages_comes_back(disk):
    table = disk.open()
    session = table.create(b"c", b"", NEVER)
    owed, done = (subscribe(table, session, name, 1, 0, retained_until=900) for name in (b"a", b"b"))
    disk.places.set(done.retained_slot, 0)
    assert {name: one.until for name, one in session.catch_ups.items()} == {b"a": 900, b"b": 900}
    again = disk.open().find(b"c")
    assert {name: one.until for name, one in again.catch_ups.items()} == {b"a": 900}
    table = disk.open()
    table.forget_subscription(table.find(b"c").subscriptions[b"a"])
    assert not table.find(b"c").catch_ups
    assert disk.places.get(owed.retained_slot) == 900  # a process that is killed now has the subscription again
    disk.become_durable()
    assert disk.places.used_count == 3  # those of the other one


def test_catch_up_goes_on_where_it_was_and_a_new_subscribe_begins_anew(disk):
    table = disk.open()
    made = subscribe(table, table.create(b"c", b"", NEVER), b"a", 1, 0, retained_until=900)
    disk.catch_ups.note_sent(made.session.find_catch_up(b"a"), 300, is_in_flight=True)
    table = disk.open()
    back = table.find(b"c").subscriptions[b"a"]
    catch_up = back.session.find_catch_up(b"a")
    assert (catch_up.cursor, list(catch_up.in_flight)) == (301, [300])
    table.keep_subscription(back, 0, 950)
    assert (catch_up.cursor, catch_up.until, list(catch_up.in_flight)) == (0, 950, [300])
    catch_up = disk.open().find(b"c").find_catch_up(b"a")
    assert (catch_up.cursor, catch_up.until, list(catch_up.in_flight)) == (0, 950, [300])


def test_places_after_the_end_of_a_queue_are_cut_to_it(disk):
    table = disk.open()
    subscribe(table, table.create(b"c", b"", NEVER), b"t", 1, 50)
    back = disk.open(ends={1: 30}).find(b"c").subscriptions[b"t"]
    assert (back.position, back.dup_until) == (30, 30)


def test_slots_are_free_again_only_when_the_change_is_durable(disk):
    table = disk.open()
    made = subscribe(table, table.create(b"c", b"", NEVER), b"t", 1, 0)
    table.forget_subscription(made)
    assert disk.places.used_count == 3
    disk.become_durable()
    assert disk.places.used_count == 0


def test_subscription_that_goes_down_to_qos_0_gives_its_slots_back(disk):
    table = disk.open()
    made = subscribe(table, table.create(b"c", b"", NEVER), b"t", 1, 0)
    made.qos = 0
    table.keep_subscription(made, 3, 0)
    disk.become_durable()
    assert disk.places.used_count == 0
    assert list(table.held_positions()) == []
    made.qos = 1
    table.keep_subscription(made, 8, 0)
    assert list(table.held_positions()) == [(1, 8)]


def test_row_without_its_session_is_thrown_away(disk):
    table = disk.open()
    subscribe(table, table.create(b"c", b"", NEVER), b"t", 1, 0)
    disk.tables["mqtt_sessions"].delete(b"c")
    assert len(disk.open()) == 0
    assert len(disk.tables["mqtt_subscriptions"]) == 0


def end_under_way(table, session):
    """End a subscription of which a message at QoS 2 is under way."""
    made = subscribe(table, session, b"t", 2, 5)
    session.open_window(8).push_one(made.source, 5, EXACT_SENT)
    table.forget_subscription(made)
    session.drop_subscription(made)
    return made


def test_slots_of_a_subscription_that_ended_are_free_when_nothing_of_it_is_under_way(disk):
    table = disk.open()
    session = table.create(b"c", b"", NEVER)
    made = end_under_way(table, session)
    slot = made.floor_slot
    disk.become_durable()
    assert (disk.places.used_count, len(disk.tables["mqtt_ended"])) == (3, 1)
    session.window.drop(0)
    session.free_source(made)
    table.note_left(session, slot)
    assert (disk.places.used_count, len(disk.tables["mqtt_ended"])) == (3, 0)
    disk.become_durable()
    assert (disk.places.used_count, session.ended) == (0, None)


def test_subscription_that_ended_with_nothing_under_way_any_more_is_forgotten_when_its_session_is_loaded(disk):
    table = disk.open()
    end_under_way(table, table.create(b"c", b"", NEVER))  # what the journal of QoS 2 has of it is lost here
    table = disk.open()
    assert disk.places.used_count == 3
    assert table.find(b"c").ended is None
    disk.become_durable()
    assert (disk.places.used_count, len(disk.tables["mqtt_ended"])) == (0, 0)


def test_row_of_a_subscription_that_ended_is_thrown_away_without_its_session_or_where_others_have_its_slots(disk):
    table = disk.open()
    for client_id in (b"a", b"b", b"c"):
        end_under_way(table, table.create(client_id, b"", NEVER))
    disk.tables["mqtt_sessions"].delete(b"a")
    other = SubscriptionRow(1, 3, 20, 21, 0, 0)  # as a version before would have it, which knows no such rows
    disk.places.values |= {20: 0, 21: 0}
    disk.tables["mqtt_subscriptions"].put(subscription_key(b"b", b"u"), pack_subscription(other))
    table = disk.open()
    assert [(key[:1], len(row) > 0) for key, row in disk.tables["mqtt_ended"].items()] == [(b"c", True)]
    assert disk.places.owned == {3, 20, 21, 6, 7, 8}


def test_what_a_power_cut_took_of_what_was_under_way_is_not_what_has_its_place_next(disk):
    table = disk.open()
    session = table.create(b"c", b"", NEVER)
    made = subscribe(table, session, b"t", 1, 5)
    for offset in (5, 6):
        session.open_window(8).push_one(made.source, offset)
    table.forget_subscription(made)
    session.drop_subscription(made)
    ends = {1: 6}
    table = disk.open(ends=ends)
    ends[1] = 100  # others publish
    window = table.find(b"c").window
    assert [window.offset_of(number) for number in range(window.tail, window.head)] == [5]


def expired(table, *args):
    return [session for session in table.find_expired(*args) if session is not None]


def test_idle_sessions_are_found_also_by_a_new_process(disk):
    table = disk.open()
    first, second = (table.create(name, b"", NEVER) for name in (b"a", b"b"))
    table.note_idle(first, 1_000)
    assert expired(table, 999, 0) == []
    assert expired(table, 1_000, 0) == [first]
    again = disk.open(now_ms=5_000)
    assert expired(again, 1_000, 0) == [again.find(b"a")]
    assert len(expired(again, 5_000, 0)) == 2  # the process was killed while it was connected
    again.note_online(again.find(b"a"), b"", NEVER)
    assert expired(again, 1_000, 0) == []
    assert second.client_id == b"b"


def test_owner_comes_back_with_the_session(disk):
    table = disk.open()
    table.create(b"a", "Zoë".encode(), NEVER)
    table.note_idle(table.create(b"b", b"", NEVER), 1_000)
    table = disk.open()
    assert [table.find(name).owner for name in (b"a", b"b")] == ["Zoë".encode(), b""]
    assert [table.owner_of(name) for name in (b"a", b"b", b"none")] == ["Zoë".encode(), b"", b""]
    table.note_online(table.find(b"b"), b"eve", NEVER)
    assert disk.open().find(b"b").owner == b"eve"


def test_row_of_a_former_version_has_no_owner(disk):
    disk.table("mqtt_sessions").put(b"c", (1_000).to_bytes(8))
    table = disk.open(now_ms=5_000)
    session = table.find(b"c")
    assert session.owner is None
    assert expired(table, 1_000, 0) == [session]
    table.note_online(session, b"me", NEVER)
    table.note_idle(session, 2_000)
    again = disk.open()
    assert again.find(b"c").owner == b"me"
    assert expired(again, 2_000, 0) == [again.find(b"c")]


@pytest.mark.parametrize("user", [b"", b"me"])
@pytest.mark.parametrize("host", [b"\x7f\0\0\1\0\0\7\x5b", b"\0" * 20])
def test_will_comes_back_as_it_was(disk, user, host):
    table = disk.open()
    table.wills.keep(StoredWill(b"c", user, host, Will(b"w/t", b"\x00gone", 1, is_retained=True)))
    (back,) = disk.open().wills.read()
    assert (back.client_id, back.user, back.host) == (b"c", user, host)
    assert back.will == Will(b"w/t", b"\x00gone", 1, is_retained=True)
    table.wills.forget(back)
    assert disk.open().wills.read() == []


def test_subscriptions_of_sessions_are_counted_also_of_those_that_are_not_loaded(disk, monkeypatch):
    monkeypatch.setattr(session_table, "TALLIED_A_STEP", 2)
    table = disk.open()
    for number in range(5):
        session = table.create(b"%d" % number, b"", NEVER)
        for filters in range(number):
            subscribe(table, session, b"t/%d" % filters, 1, 5)
    assert [sum(counts) for counts in zip(*table.tallies(), strict=True)] == [10, 0]
    again = disk.open()
    assert list(again.loaded()) == []
    assert [sum(counts) for counts in zip(*again.tallies(), strict=True)] == [10, 0]
    assert list(again.loaded()) == []
    walk = again.tallies()
    next(walk)
    again.remove(again.find(b"4"))
    assert sum(count for count, _ in walk) == 5


def test_it_is_known_that_a_session_or_a_subscription_came_or_went(disk):
    table, known = disk.open(), []
    for expiry_s in (0, NEVER):
        session = table.create(b"c%d" % expiry_s, b"", expiry_s)
        known.append(table.changes)
        made = subscribe(table, session, b"t", 1, 5)
        known.append(table.changes)
        table.note_idle(session, 1_000)
        table.note_online(session, b"me", expiry_s)
        assert table.changes == known[-1]  # neither came or went
        table.forget_subscription(made)
        known.append(table.changes)
        table.remove(session)
        known.append(table.changes)
    assert len(set(known)) == 8


@pytest.mark.parametrize("room", [0, 2, 3])
def test_what_the_last_member_has_goes_on_without_a_row_where_there_is_no_room_for_places(disk, caplog, room):
    disk.places = FullPlaces(room)
    table = disk.open()
    session = table.create(b"c", b"", NEVER)
    member = Subscription(session, b"$share/g/t", 1, 1, 5)
    member.unacked = {session.open_window(8).push_one(member.source, 5): 5}
    table.keep_alone(member)
    assert (len(disk.table("mqtt_ended")), disk.places.used_count) == ((1, 3) if room == 3 else (0, 0))
    assert ("no room" in caplog.text) == (room < 3)
    assert session.window.once_of(member.source) == [5]
