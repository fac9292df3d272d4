from __future__ import annotations

import json

import pytest

from gateway.rocketmq.admin.group_figures import java_hash
from tests.support.rocketmq_tools import ask_tool, join


def commit(peer, offset, group="g", topic="T", queue_id=0):
    ext = {"consumerGroup": group, "topic": topic, "queueId": queue_id, "commitOffset": offset}
    assert peer.ask(15, **ext).code == 0


def test_connections_of_a_group_tell_who_wants_what(site, peer):
    join(site, "c1")
    join(site, "c2")
    said = json.loads(bytes(ask_tool(peer, 203, consumerGroup="g").body))
    assert sorted(one["clientId"] for one in said["connectionSet"]) == ["c1", "c2"]
    assert said["connectionSet"][0] | {"clientId": ""} == {
        "clientAddr": "127.0.0.1:10911", "clientId": "", "language": "JAVA", "version": 493,
    }  # fmt: skip
    wanted = said["subscriptionTable"]["T"]
    assert (wanted["subString"], wanted["tagsSet"], wanted["codeSet"]) == ("a || b", ["a", "b"], [97, 98])
    assert (said["consumeType"], said["messageModel"]) == ("CONSUME_PASSIVELY", "CLUSTERING")
    assert said["consumeFromWhere"] == "CONSUME_FROM_FIRST_OFFSET"
    gone = ask_tool(peer, 203, consumerGroup="other")
    assert (gone.code, gone.remark) == (206, "the consumer group[other] not online")


def test_progress_of_a_group_is_told_for_each_queue(site, peer):
    for body in (b"1", b"2", b"3"):
        peer.send(body)
    commit(peer, 2)
    commit(peer, 1, group="other")
    body = bytes(ask_tool(peer, 208, consumerGroup="g").body)
    assert (
        b'{"brokerName":"lmq","queueId":0,"topic":"T"}:'
        b'{"brokerOffset":3,"consumerOffset":2,"lastTimestamp":%d,"pullOffset":2}' % site.now_ms
    ) in body
    assert body.count(b'"topic":"T"') == 4
    assert body.endswith(b',"consumeTps":0.0}')
    assert bytes(ask_tool(peer, 208, consumerGroup="nobody").body) == b'{"offsetTable":{},"consumeTps":0.0}'


def test_progress_is_of_the_topics_that_a_live_group_wants(site, peer):
    peer.send(b"x")
    peer.send(b"x", topic="Old")
    commit(peer, 1)
    commit(peer, 1, topic="Old")
    join(site, "c1")
    assert b"Old" not in bytes(ask_tool(peer, 208, consumerGroup="g").body)
    assert b'"topic":"Old"' not in bytes(ask_tool(peer, 208, consumerGroup="g", topic="T").body)


def test_groups_of_a_topic_are_those_that_want_it_and_those_that_left_offsets(site, peer):
    peer.send(b"x")
    commit(peer, 1, group="left")
    join(site, "c1", group="live")
    join(site, "c2", group="elsewhere", topic="U")
    assert json.loads(bytes(ask_tool(peer, 300, topic="T").body)) == {"groupList": ["left", "live"]}
    assert json.loads(bytes(ask_tool(peer, 343, group="left").body))["topicList"] == ["T"]
    said = json.loads(bytes(ask_tool(peer, 345, group="live", topic="T").body))
    assert said["subscriptionData"]["subString"] == "a || b"
    assert json.loads(bytes(ask_tool(peer, 345, group="none", topic="T").body))["subscriptionData"] is None


def test_spans_tell_how_late_a_group_is(site, peer):
    start = site.now_ms
    for _ in range(3):
        peer.send(b"x")
        site.now_ms += 1_000
    commit(peer, 1)
    (first, *_) = json.loads(bytes(ask_tool(peer, 303, group="g", topic="T").body))["consumeTimeSpanSet"]
    assert first == {
        "consumeTimeStamp": start,
        "delayTime": 2_000,
        "maxTimeStamp": start + 2_000,
        "messageQueue": {"brokerName": "lmq", "queueId": 0, "topic": "T"},
        "minTimeStamp": start,
    }


@pytest.mark.parametrize(
    ("text", "value"), [("", 0), ("TagA", 2598919), ("polygenelubricants", -(2**31)), ("é😀", 1996812)]
)
def test_hashes_are_javas(text, value):
    assert java_hash(text) == value


def test_tools_find_a_group_by_its_retry_topic(site, peer):
    join(site, "c1", group="live")
    peer.ask(200, b'{"groupName":"made"}')
    assert json.loads(bytes(peer.ask(206).body))["topicList"] == ["%RETRY%live", "%RETRY%made"]
