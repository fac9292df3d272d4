from __future__ import annotations

from gateway.mqtt.catch_up import CatchUp
from gateway.mqtt.exact_records import (
    COMPLETE,
    NAME,
    NAME_HEAD,
    NOBODY,
    RECEIVED,
    RECORD,
    SENT,
    TAKEN,
    Found,
    SentBefore,
    done_changes,
    ended_changes,
    found_changes,
    mark_record,
    name_records,
    open_changes,
    sent_changes,
    sent_of,
)
from gateway.mqtt.inflight import EXACT_COMPLETE, EXACT_RECEIVED, EXACT_SENT
from gateway.mqtt.session import Session, Subscription


def test_a_mark_is_one_more_than_the_end_of_the_log_so_that_0_is_none():
    assert RECORD.unpack(mark_record(0)) == (NOBODY, TAKEN << 24, 1, 0)


def test_a_long_name_is_cut_into_records_that_make_it_again():
    name = bytes(range(100))
    records = name_records(7, name)
    assert [NAME_HEAD.unpack_from(record) for record in records] == [(7, NAME << 24)] * 3
    assert b"".join(record[NAME_HEAD.size :] for record in records) == name


def test_what_was_found_is_written_as_it_was_sent_and_how_far_it_came():
    found = Found(b"c")
    found.sent = {4: SentBefore(4, 3, 40, EXACT_SENT), 5: SentBefore(5, 3, 41, EXACT_COMPLETE)}
    assert list(found_changes(found)) == [
        (SENT << 24 | 3, 4, 40),
        (SENT << 24 | 3, 5, 41),
        (COMPLETE << 24, 5, 0),
    ]


def test_a_session_without_messages_on_their_way_has_no_changes():
    session = Session(b"c", b"", is_persistent=True)
    assert list(sent_changes(session)) == []
    session.open_window(4)
    assert list(sent_changes(session)) == []


def test_what_was_sent_for_a_subscription_that_ended_is_written_as_far_as_it_came_since():
    session = Session(b"c", b"", is_persistent=True)
    subscription, other = (Subscription(session, topic_filter, 2, 1, 0) for topic_filter in (b"a", b"b"))
    window = session.open_window(8)
    for one, offset, state in [
        (subscription, 10, EXACT_SENT),
        (other, 20, EXACT_SENT),
        (subscription, 11, EXACT_SENT),
        (subscription, 12, EXACT_RECEIVED),
        (subscription, 13, 0),
    ]:
        window.push_one(one.source, offset, state)
    sent = sent_of(subscription)
    assert sent == {0: 10, 2: 11, 3: 12}
    window.drop(0)  # which leaves the window
    session.end()
    assert list(ended_changes(session, {5: sent})) == [
        (SENT << 24 | 5, 0, 10),
        (COMPLETE << 24, 0, 0),
        (SENT << 24 | 5, 2, 11),
        (SENT << 24 | 5, 3, 12),
        (RECEIVED << 24, 3, 0),
    ]
    assert list(sent_changes(session)) == []


def test_what_a_subscription_may_still_come_to_is_written_as_far_as_it_came():
    session = Session(b"c", b"", is_persistent=True)
    one = Subscription(session, b"a", 2, 1, 0)
    one.floor_slot = 7
    window = session.open_window(8)
    window.restore(3, one.source, 12, EXACT_RECEIVED)
    one.done_before = {10: 1, 12: 3}
    assert list(done_changes(one)) == [
        (SENT << 24 | 7, 1, 10),
        (COMPLETE << 24, 1, 0),
        (SENT << 24 | 7, 3, 12),
        (RECEIVED << 24, 3, 0),
    ]


def test_a_message_that_is_known_by_two_slots_is_known_until_both_are_forgotten():
    found = Found(b"c")
    found.note_sent(1, 3, 10)
    found.sent[1].state = EXACT_RECEIVED
    found.note_sent(1, 6, 10)
    found.note_sent(1, 6, 10)
    assert (found.sent[1].slots, found.sent[1].state) == ((3, 6), EXACT_SENT)
    assert list(found_changes(found)) == [(SENT << 24 | 3, 1, 10), (SENT << 24 | 6, 1, 10)]
    found.forget_slot(3)
    assert found.sent[1].slots == (6,)
    found.forget_slot(6)
    assert found.sent == {}


def test_a_number_that_is_used_again_is_of_its_newest_message():
    found = Found(b"c")
    found.note_sent(1, 3, 10)
    found.note_sent(1, 6, 11)
    assert [(one.slots, one.offset) for one in found.sent.values()] == [((6,), 11)]


def test_retained_messages_that_are_under_way_are_written_as_far_as_they_came():
    session = Session(b"c", b"", is_persistent=True)
    window, catch_up, other = session.open_window(8), CatchUp(4, b"a", 100), CatchUp(5, b"b", 100)
    session.retained_inflight = {}
    for owner, state in [(catch_up, EXACT_SENT), (catch_up, EXACT_RECEIVED), (other, EXACT_SENT), (catch_up, 0)]:
        session.retained_inflight[window.push_one(0, 50 + window.head, state)] = owner
    window.drop(0)
    assert open_changes(session, 4) == [(SENT, 4, 1, 51), (RECEIVED, 0, 1, 0)]


def test_what_a_subscription_left_under_way_as_it_went_to_qos_0_is_known_by_both_when_it_ends():
    session = Session(b"c", b"", is_persistent=True)
    one = Subscription(session, b"a", 2, 1, 0)
    window = session.open_window(8)
    window.restore(3, one.source, 12, EXACT_SENT)
    one.done_before = {10: 1, 12: 3}
    gone = session.part(one)
    window.push_one(one.source, 20, EXACT_SENT)
    assert (sent_of(one), sent_of(gone)) == ({1: 10, 3: 12, 4: 20}, {3: 12})
