from __future__ import annotations

from gateway.mqtt.exact_records import SentBefore
from gateway.mqtt.inflight import EXACT_COMPLETE, EXACT_RECEIVED, EXACT_SENT
from gateway.mqtt.restoring import restore_exact
from gateway.mqtt.session import Session, Subscription


def make_session():
    session = Session(b"c", b"", is_persistent=True)
    made = session.subscriptions[b"t"] = Subscription(session, b"t", 2, 0, 10)
    made.floor_slot = 3
    return session, made


def test_messages_have_their_numbers_again_and_those_between_are_nobodys():
    session, made = make_session()
    restore_exact(session, [SentBefore(70_000, 3, 10, EXACT_SENT), SentBefore(70_003, 3, 13, EXACT_RECEIVED)], 8)
    window = session.window
    assert window is not None
    assert (window.tail, window.head) == (70_000, 70_004)
    assert window.next_unacked(70_001) == 70_003
    assert (window.state_of(70_003), window.offset_of(70_003)) == (EXACT_RECEIVED, 13)
    assert made.dup_until == 14
    window.drop(70_000)
    assert window.tail == 70_003


def test_what_was_settled_or_is_anothers_is_left_out():
    session, made = make_session()
    restore_exact(session, [SentBefore(1, 3, 9, EXACT_SENT), SentBefore(2, 4, 20, EXACT_SENT)], 8)
    assert session.window is None
    assert made.done_before is None


def test_what_was_completed_out_of_order_is_known_and_not_in_flight():
    session, made = make_session()
    restore_exact(session, [SentBefore(5, 3, 12, EXACT_COMPLETE)], 8)
    assert made.done_before == {12: 5}
    window = session.window
    assert window is not None
    assert (window.tail, window.head, window.room()) == (6, 6, 8)


def test_no_message_gets_the_number_of_one_that_was_completed_before():
    session, made = make_session()
    restore_exact(session, [SentBefore(5, 3, 12, EXACT_SENT), SentBefore(6, 3, 13, EXACT_COMPLETE)], 8)
    window = session.window
    assert window is not None
    assert (window.tail, window.head, window.room()) == (5, 7, 7)
    assert (window.count_of(made.source), window.next_unacked(5), window.next_unacked(6)) == (1, 5, 7)
    window.drop(5)
    assert (window.tail, window.room()) == (7, 8)
