from __future__ import annotations

import pytest

from gateway.rocketmq.errors import CommandRefusedError
from gateway.rocketmq.send_route import is_space_topic, parse_dispatch
from gateway.rocketmq.topic_table import Topic
from tests.support.rocketmq_door import bodies_of


def test_dispatch_lists_are_light_queues_each_once():
    assert parse_dispatch(b"") == []
    assert parse_dispatch(b"%LMQ%a,%LMQ%b,%LMQ%a") == [b"%LMQ%a", b"%LMQ%b"]
    with pytest.raises(CommandRefusedError):
        parse_dispatch(b"%LMQ%" + b"x" * 200)


@pytest.mark.parametrize(
    ("topic", "allowed"),
    [(b"a", True), (b"a//b", True), ("größe".encode(), True), (b"", False), (b"a/#", False), (b"+", False)]
    + [(b"$SYS/x", False), (b"a\0", False), (b"\xff", False), (b"x" * 65_536, False)],
)
def test_topics_that_can_be_published_to(topic, allowed):
    assert is_space_topic(topic) == allowed


def test_a_topic_that_changes_is_looked_at_again(site, peer):
    assert peer.send(b"1", e="3").code == 0
    site.door.topics.set(b"T", Topic(2, 2))
    assert peer.send(b"2", e="3").code == 29
    site.door.topics.set(b"T", Topic(16, 16))
    assert peer.send(b"3", e="15").code == 0
    assert bodies_of(peer.pull("T", queueId=3)) == [b"1"]
    assert bodies_of(peer.pull("T", queueId=15)) == [b"3"]
    site.door.topics.set(b"T", Topic(16, 16, 4))
    assert peer.send(b"4", e="3").code == 16
    site.door.topics.set(b"T", Topic(16, 16, 2))
    assert peer.send(b"4", e="3").code == 0
    assert peer.pull("T", queueId=3).code == 16
