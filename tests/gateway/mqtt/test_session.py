from __future__ import annotations

from core.message import FLAG_MARK, StoredBatch
from gateway.mqtt.columns import RunColumns
from gateway.mqtt.session import GONE, Session, Subscription


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
