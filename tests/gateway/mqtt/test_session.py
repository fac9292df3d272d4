from __future__ import annotations

from core.message import FLAG_MARK, StoredBatch
from gateway.mqtt.catch_up import CatchUp
from gateway.mqtt.columns import RunColumns
from gateway.mqtt.session import GONE, Ended, Session, Subscription


def subscription(session, topic_filter):
    made = session.subscriptions[topic_filter] = Subscription(session, topic_filter, 1, 0, 0)
    return made


def push(session, one, count):
    batch = StoredBatch(count)
    batch.count = count
    for i in range(count):
        batch.flag[i] = FLAG_MARK | 1
    return session.open_window(10).push(batch, one.source)


def test_sources_are_numbered_from_1_because_0_is_for_retained_messages():
    session = Session(b"c", b"", is_persistent=False)
    assert [subscription(session, name).source for name in (b"a", b"b")] == [1, 2]


def test_source_of_an_ended_subscription_is_used_again():
    session = Session(b"c", b"", is_persistent=False)
    first = subscription(session, b"a")
    subscription(session, b"b")
    session.drop_subscription(first)
    assert first.state == GONE
    assert subscription(session, b"c").source == 1
    assert subscription(session, b"d").source == 3


def test_source_with_messages_in_flight_is_kept_until_they_are_acknowledged():
    session = Session(b"c", b"", is_persistent=False)
    first = subscription(session, b"a")
    push(session, first, 2)
    session.drop_subscription(first)
    assert subscription(session, b"b").source == 2
    columns = RunColumns(2)
    columns.packet_ids[0], columns.packet_ids[1], columns.ack_count = 1, 2, 2
    session.window.acknowledge(columns)
    session.free_source(first)
    assert subscription(session, b"c").source == 1


def test_what_is_in_flight_can_be_parted_from_a_subscription():
    session = Session(b"c", b"", is_persistent=True)
    one = subscription(session, b"a")
    push(session, one, 2)
    gone = session.part(one)
    assert (gone.state, gone.topic_filter, session.subscriptions) == (GONE, b"a", {b"a": one})
    assert [session.window.count_of(each.source) for each in (gone, one)] == [2, 0]
    assert session.sources == [None, gone, one]
    push(session, one, 1)
    assert session.sources[session.window.source_of(2)] is one


def test_subscription_that_ended_is_over_when_nothing_of_it_is_under_way():
    session = Session(b"c", b"", is_persistent=True)
    one = subscription(session, b"a")
    one.floor_slot, one.retained_slot = 3, 5
    push(session, one, 1)
    catch_up = CatchUp(5, b"a", 100)
    ended = Ended(one, catch_up)
    session.keep_ended(ended)
    session.drop_subscription(one)
    assert (session.ended, session.all_ended()) == ({3: ended, 5: ended}, [ended])
    assert (ended.has_some, ended.is_over) == (True, False)
    session.window.drop(0)
    session.free_source(one)
    assert (ended.has_some, ended.is_over) == (False, False)
    catch_up.is_ended = True
    assert ended.is_over
    session.drop_ended(ended)
    assert session.ended is None


def test_window_is_made_when_it_is_needed_and_knows_all_sources():
    session = Session(b"c", b"", is_persistent=False)
    one, two = subscription(session, b"a"), subscription(session, b"b")
    assert session.window is None
    assert session.room(10) == 10
    push(session, two, 3)
    assert session.room(10) == 7
    assert (session.window.count_of(one.source), session.window.count_of(two.source)) == (0, 3)
    later = subscription(session, b"c")
    assert session.window.count_of(later.source) == 0


def test_resting_session_waits_for_nothing():
    session = Session(b"c", b"", is_persistent=True)
    session.blocked.append(subscription(session, b"a"))
    session.rest()
    assert session.blocked == []
