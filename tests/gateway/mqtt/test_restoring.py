from __future__ import annotations

from gateway.mqtt.exact_records import SentBefore
from gateway.mqtt.inflight import EXACT_COMPLETE, EXACT_RECEIVED, EXACT_SENT
from gateway.mqtt.restoring import restore, restore_exact
from gateway.mqtt.session import GONE, Ended, Session, Subscription


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


def make_ended(session, position=10):
    gone = Subscription(session, b"t", 2, 0, position)
    gone.state, gone.floor_slot, gone.retained_slot = GONE, 6, 8
    ended = Ended(gone, None)
    session.keep_ended(ended)
    return ended


def test_what_a_subscription_that_ended_has_under_way_is_in_the_window_again():
    session = Session(b"c", b"", is_persistent=True)
    ended = make_ended(session)
    ended.owed = [11, 14]
    restore(session, [SentBefore(4, 6, 12, EXACT_RECEIVED), SentBefore(9, 5, 13, EXACT_SENT)], 8)
    window = session.window
    assert window is not None
    assert (window.tail, window.head, window.count_of(ended.subscription.source)) == (4, 7, 3)
    assert [window.offset_of(number) for number in (4, 5, 6)] == [12, 11, 14]
    assert [window.state_of(number) for number in (4, 5, 6)] == [EXACT_RECEIVED, 0, 0]


def test_what_was_sent_before_a_subscription_went_to_qos_0_and_back_is_not_read_again():
    session, made = make_session()
    ended = make_ended(session)
    made.position = 12
    sent = [SentBefore(number, 6, 10 + number, state) for number, state in enumerate([1, 2, 1, EXACT_COMPLETE])]
    for one in sent:
        one.slots = (made.floor_slot, *one.slots)
    restore(session, sent, 8)
    assert (made.done_before, made.dup_until) == ({12: 2, 13: 3}, 14)
    window = session.window
    assert window is not None
    assert (window.tail, window.head, window.count_of(ended.subscription.source)) == (0, 4, 3)
