from __future__ import annotations

import json

import pytest

from gateway.events import Actor, Events
from gateway.rocketmq.errors import CommandRefusedError
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


class Operator:
    def __init__(self, *, may: bool = True) -> None:
        self._may = may

    def may_configure(self, _name: bytes, _kind: str = "") -> bool:
        return self._may

    def actor(self) -> Actor:
        return Actor(Events(), "rocketmq", 1, "peer")


def perm_of(found: TopicRoute) -> int:
    answer = found.get_route(Command(105, ext={"topic": "T"}), "x:1")
    return json.loads(answer.body)["queueDatas"][0]["perm"]


def test_producers_are_led_away_and_back():
    found = routes()
    ours, other = (Command(205, ext={"brokerName": name}) for name in ("gate-1", "gate-2"))
    assert found.wipe_write(other, Operator()).ext == {"wipeTopicCount": "0"}
    assert perm_of(found) == 6
    assert found.wipe_write(ours, Operator()).ext == {"wipeTopicCount": "1"}
    assert perm_of(found) == 4
    assert found.add_write(ours, Operator()).ext == {"addTopicCount": "1"}
    assert perm_of(found) == 6


def test_producers_are_led_away_by_operators_only():
    found = routes()
    with pytest.raises(CommandRefusedError):
        found.wipe_write(Command(205, ext={"brokerName": "gate-1"}), Operator(may=False))
    assert perm_of(found) == 6


def test_the_cluster_is_one_broker():
    answer = routes().get_cluster(Command(106), "[::1]:10911")
    said = json.loads(answer.body)
    assert said["brokerAddrTable"]["gate-1"]["brokerAddrs"] == {"0": "[::1]:10911"}
    assert said["clusterAddrTable"] == {"DefaultCluster": ["gate-1"]}
