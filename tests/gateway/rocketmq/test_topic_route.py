from __future__ import annotations

import json

import pytest

from gateway.rocketmq.topic_route import TopicRoute
from gateway.rocketmq.topic_table import TopicTable
from lmq.remoting.commands import Command
from tests.support.stores import MemoryTable


def routes() -> TopicRoute:
    topics = TopicTable(MemoryTable(), b"PARENT", topics_max=10, makes_topics=True)
    topics.open_for_send(b"T", b"TBW102", 3)
    return TopicRoute(topics, "gate-1", "DefaultCluster")


def test_a_route_is_one_master_with_all_queues_and_no_space():
    answer = routes().get_route(Command(105, ext={"topic": "T"}), "10.0.0.1:10911")
    assert answer.code == 0
    assert b" " not in bytes(answer.body)
    assert json.loads(answer.body) == {
        "brokerDatas": [
            {
                "brokerAddrs": {"0": "10.0.0.1:10911"},
                "brokerName": "gate-1",
                "cluster": "DefaultCluster",
                "enableActingMaster": False,
            }
        ],
        "filterServerTable": {},
        "queueDatas": [{"brokerName": "gate-1", "perm": 6, "readQueueNums": 3, "topicSysFlag": 0, "writeQueueNums": 3}],
    }


@pytest.mark.parametrize("topic", ["unknown", "LMQ_DISPATCH_SET", "LMQ_GAP"])
def test_a_topic_that_is_unknown_or_the_logs_own_has_no_route(topic):
    answer = routes().get_route(Command(105, ext={"topic": topic}), "x:1")
    assert (answer.code, bytes(answer.body)) == (17, b"")


def test_light_queues_and_the_template_have_routes():
    for topic in ("%LMQ%a", "TBW102", "PARENT"):
        assert routes().get_route(Command(105, ext={"topic": topic}), "x:1").code == 0


def test_the_cluster_is_one_broker():
    answer = routes().get_cluster(Command(106), "[::1]:10911")
    said = json.loads(answer.body)
    assert said["brokerAddrTable"]["gate-1"]["brokerAddrs"] == {"0": "[::1]:10911"}
    assert said["clusterAddrTable"] == {"DefaultCluster": ["gate-1"]}
