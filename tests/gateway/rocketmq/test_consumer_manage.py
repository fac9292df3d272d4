from __future__ import annotations

import pytest

from lmq.remoting.message_codec import decode_records
from tests.support.rocketmq_door import NOW_MS, DoorSite


@pytest.fixture
def filled(site, peer):
    for i in range(3):
        site.now_ms = NOW_MS + i * 1000
        peer.send(b"m%d" % i, properties="INNER_MULTI_DISPATCH\x01%LMQ%a\x02")
    return peer


QUEUES = pytest.mark.parametrize("topic", ["T", "%LMQ%a"])


@QUEUES
def test_a_queue_tells_where_it_begins_and_ends(filled, topic):
    assert filled.ask(30, topic=topic, queueId=0).ext == {"offset": "3"}
    assert filled.ask(31, topic=topic, queueId=0).ext == {"offset": "0"}
    assert filled.ask(32, topic=topic, queueId=0).ext == {"timestamp": str(NOW_MS)}


@QUEUES
@pytest.mark.parametrize(("at", "lower", "upper"), [(-1, 0, 0), (0, 0, 0), (500, 1, 0), (1000, 1, 1), (9999, 3, 2)])
def test_an_offset_is_found_by_store_time(filled, topic, at, lower, upper):
    def ask(**more: str) -> int:
        return int(filled.ask(29, topic=topic, queueId=0, timestamp=NOW_MS + at, **more).ext["offset"])

    assert ask() == lower
    assert ask(boundaryType="LOWER") == lower
    assert ask(boundaryType="upper") == upper


@pytest.mark.parametrize("topic", ["T", "%LMQ%never"])
def test_an_empty_queue_is_all_zeros(site, peer, topic):
    peer.send()
    queue = 0 if topic.startswith("%") else 3
    assert peer.ask(30, topic=topic, queueId=queue).ext == {"offset": "0"}
    assert peer.ask(31, topic=topic, queueId=queue).ext == {"offset": "0"}
    assert peer.ask(29, topic=topic, queueId=queue, timestamp=5).ext == {"offset": "0"}
    assert peer.ask(32, topic=topic, queueId=queue).ext == {"timestamp": "-1"}


@QUEUES
def test_a_group_goes_on_where_it_committed_also_after_a_restart(tmp_path, engine_maker, topic):
    site = DoorSite(tmp_path / "d", make_engine=engine_maker)
    peer = site.connect()
    peer.send(b"x", properties="INNER_MULTI_DISPATCH\x01%LMQ%a\x02")
    assert peer.ask(15, consumerGroup="g", topic=topic, queueId=0, commitOffset=1).code == 0
    assert peer.ask(14, consumerGroup="g", topic=topic, queueId=0).ext == {"offset": "1"}
    peer.ask(15, consumerGroup="g", topic=topic, queueId=0, commitOffset=0)
    site.turn()
    site.close()
    site = DoorSite(tmp_path / "d", make_engine=engine_maker)
    peer = site.connect()
    assert peer.ask(14, consumerGroup="g", topic=topic, queueId=0).ext == {"offset": "0"}
    site.close()


def test_a_new_group_begins_at_0_of_a_young_queue_unless_it_asks_not_to(filled):
    ask = {"consumerGroup": "new", "topic": "T", "queueId": 0}
    assert filled.ask(14, **ask).ext == {"offset": "0"}
    assert filled.ask(14, **ask, setZeroIfNotFound="true").ext == {"offset": "0"}
    answer = filled.ask(14, **ask, setZeroIfNotFound="false")
    assert (answer.code, answer.ext) == (22, {})


def test_a_negative_commit_says_nothing(filled):
    filled.ask(15, consumerGroup="g", topic="T", queueId=0, commitOffset=2)
    assert filled.ask(15, consumerGroup="g", topic="T", queueId=0, commitOffset=-1).code == 0
    assert filled.ask(14, consumerGroup="g", topic="T", queueId=0).ext == {"offset": "2"}


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"topic": "Unknown"}, 17),
        ({"queueId": 9}, 29),
        ({"queueId": -1}, 29),
        ({"queueId": "x"}, 1),
        ({"commitOffset": 2**47}, 29),
        ({"consumerGroup": ""}, 26),
    ],
)
def test_a_commit_that_cannot_be_is_refused(filled, changes, code):
    ext = {"consumerGroup": "g", "topic": "T", "queueId": 0, "commitOffset": 1} | changes
    assert filled.ask(15, **ext).code == code


def test_a_message_is_found_by_its_physical_offset(filled):
    sent = filled.send(b"this one")
    answer = filled.ask(33, topic="T", offset=int(sent.ext["msgId"][16:], 16))
    (record,) = decode_records(bytes(answer.body))
    assert record.body == b"this one"


@pytest.mark.parametrize("offset", [-1, 1, 10**15])
def test_an_offset_without_a_record_is_answered_1(filled, offset):
    answer = filled.ask(33, topic="T", offset=offset)
    assert (answer.code, bytes(answer.body)) == (1, b"")


@pytest.mark.parametrize("group", ["", "g" * 256])
def test_a_group_that_no_client_can_have_commits_nothing(site, peer, group):
    peer.send()
    assert peer.ask(15, consumerGroup=group, topic="T", queueId=0, commitOffset=1).code == 26
    peer.pull("T", consumerGroup=group, sysFlag=0x4 | 0x1, commitOffset=1)
    assert list(site.broker.consumer_offsets.items()) == []
