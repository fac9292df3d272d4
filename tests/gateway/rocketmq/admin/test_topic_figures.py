from __future__ import annotations

import json

from tests.support.rocketmq_tools import ask_tool


def set_topic(peer, topic, queues=2, **more):
    ext = {"topic": topic, "defaultTopic": "TBW102", "readQueueNums": queues, "writeQueueNums": queues, "perm": 6}
    assert peer.ask(17, **(ext | {"topicFilterType": "SINGLE_TAG"} | more)).code == 0


def test_figures_of_a_topic_have_each_queue(site, peer):
    set_topic(peer, "T")
    peer.send(b"x", e="1")
    site.now_ms += 5
    peer.send(b"y", e="1")
    body = bytes(ask_tool(peer, 202, topic="T").body)
    assert body == (
        b'{"offsetTable":{{"brokerName":"lmq","queueId":0,"topic":"T"}:{"lastUpdateTimestamp":0,"maxOffset":0,"minOffset":0},'
        b'{"brokerName":"lmq","queueId":1,"topic":"T"}:{"lastUpdateTimestamp":%d,"maxOffset":2,"minOffset":0}},'
        b'"topicPutTps":0.0}' % site.now_ms
    )
    assert ask_tool(peer, 202, topic="Unknown").code == 17
    assert ask_tool(peer, 202).code == 1


def test_a_topic_of_very_many_queues_is_answered_in_turns(site, peer):
    set_topic(peer, "Wide", 3_000)
    body = bytes(ask_tool(peer, 202, topic="Wide").body)
    assert body.count(b'"queueId"') == 3_000


def test_all_topics_are_told_with_their_settings(peer):
    set_topic(peer, "B", 3, order="true")
    set_topic(peer, "A")
    said = json.loads(bytes(ask_tool(peer, 21).body))
    assert list(said["topicConfigTable"]) == ["A", "B"]
    assert said["topicConfigTable"]["B"]["readQueueNums"] == 3
    assert said["topicConfigTable"]["B"]["order"] is True
    assert set(said["dataVersion"]) == {"counter", "stateVersion", "timestamp"}


def test_topics_are_those_of_our_cluster(peer):
    set_topic(peer, "A")
    assert json.loads(bytes(ask_tool(peer, 224, cluster="DefaultCluster").body)) == {"topicList": ["A"]}
    assert json.loads(bytes(ask_tool(peer, 224, cluster="Other").body)) == {"topicList": []}


def test_topics_of_the_broker_are_told_with_its_address(peer):
    for code in (304, 305):
        said = json.loads(bytes(ask_tool(peer, code).body))
        assert {"SCHEDULE_TOPIC_XXXX", "TBW102", "DefaultCluster", "lmq"} <= set(said["topicList"])
        assert said["brokerAddr"] == "127.0.0.1:10911"
