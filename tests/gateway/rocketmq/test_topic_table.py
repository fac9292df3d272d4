from __future__ import annotations

import pytest

from gateway.rocketmq.errors import CommandRefusedError
from gateway.rocketmq.topic_table import PERM_INHERIT, TopicTable, queue_key
from tests.support.stores import MemoryTable


def table(rows=None, **changes) -> TopicTable:
    return TopicTable(
        rows if rows is not None else MemoryTable(), b"PARENT", **({"topics_max": 10, "makes_topics": True} | changes)
    )


def test_a_topic_is_made_from_the_template_and_outlives_the_table():
    rows = MemoryTable()
    topic = table(rows).open_for_send(b"T", b"TBW102", 4)
    assert (topic.read_queues, topic.write_queues, topic.perm) == (4, 4, 6)
    again = table(rows).get(b"T")
    assert (again.read_queues, again.write_queues, again.perm) == (4, 4, 6)
    assert table(rows).open_for_send(b"T2", b"TBW102", 100).write_queues == 8
    assert table(rows).open_for_send(b"T3", b"TBW102", -1).write_queues == 1


def test_the_template_the_parent_and_light_queues_are_built_in():
    topics = table()
    assert topics.get(b"TBW102").perm & PERM_INHERIT
    assert topics.get(b"PARENT").write_queues == 1
    assert topics.get(b"%LMQ%whatever").read_queues == 1


def test_retry_topics_are_there_with_one_queue_and_without_an_entry():
    topics = table(topics_max=0)
    assert topics.get(b"%RETRY%g").write_queues == 1
    assert topics.find(b"%RETRY%bad name") is None
    assert topics.open_for_send(b"%RETRY%" + b"g" * 200, b"TBW102", 4).write_queues == 1


@pytest.mark.parametrize(
    ("name", "default", "code"),
    [
        (b"", b"TBW102", 29),
        (b"a b", b"TBW102", 29),
        (b"t" * 128, b"TBW102", 29),
        (b"%RETRY%" + b"t" * 250, b"TBW102", 29),
        (b"\xff", b"TBW102", 29),
        (b"SCHEDULE_TOPIC_XXXX", b"TBW102", 16),
        (b"LMQ_DISPATCH_SET", b"TBW102", 16),
        (b"LMQ_GAP", b"TBW102", 16),
        (b"T", b"LMQ_GAP", 17),
        (b"T", b"OTHER", 17),
        (b"T", b"PARENT", 17),
    ],
)
def test_a_topic_that_may_not_be_is_refused(name, default, code):
    with pytest.raises(CommandRefusedError) as caught:
        table().open_for_send(name, default, 4)
    assert caught.value.code == code


def test_topics_are_limited_in_number():
    topics = table(topics_max=1)
    topics.open_for_send(b"A", b"TBW102", 4)
    with pytest.raises(CommandRefusedError) as caught:
        topics.open_for_send(b"B", b"TBW102", 4)
    assert caught.value.code == 2
    assert topics.find(b"C") is None


def test_without_auto_creation_an_unknown_topic_stays_unknown():
    topics = table(makes_topics=False)
    with pytest.raises(CommandRefusedError) as caught:
        topics.open_for_send(b"T", b"TBW102", 4)
    assert caught.value.code == 17
    assert not topics.get(b"TBW102").perm & PERM_INHERIT


def test_queues_have_keys_and_light_queues_are_their_own():
    assert queue_key(b"T", 3) == b"T/3"
    assert queue_key(b"%LMQ%x", 0) == b"%LMQ%x"


def test_topics_are_made_as_the_settings_say_now():
    topics = table(makes_topics=False)
    topics.reload(topics_max=1, makes_topics=True)
    assert topics.get(b"TBW102").perm & PERM_INHERIT
    topics.open_for_send(b"T", b"TBW102", 4)
    with pytest.raises(CommandRefusedError, match="there are 1 topics already"):
        topics.open_for_send(b"T2", b"TBW102", 4)
    topics.reload(topics_max=10, makes_topics=False)
    assert not topics.get(b"TBW102").perm & PERM_INHERIT
    assert topics.open_for_send(b"T", b"TBW102", 4).write_queues == 4
