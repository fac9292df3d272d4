from __future__ import annotations

import json

import pytest

from gateway.rocketmq.errors import CommandRefusedError
from gateway.settings.models import RocketmqSettings
from lmq.remoting.commands import Command
from tests.support.full_definitions import set_room_for_definitions
from tests.support.rocketmq_door import DoorSite, bodies_of


def set_topic(peer, topic: str = "T", read: int = 16, write: int = 16, perm: int = 6, **more: object):
    """Make or change a topic as RocketMQ's tools do."""
    ext = {"topic": topic, "defaultTopic": "TBW102", "readQueueNums": read, "writeQueueNums": write, "perm": perm}
    return peer.ask(17, **(ext | {"topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "order": "false"} | more))


def route_of(peer, topic: str = "T") -> dict[str, int]:
    answer = peer.ask(105, topic=topic)
    return json.loads(bytes(answer.body))["queueDatas"][0] if answer.code == 0 else {}


def test_a_topic_has_as_many_queues_as_it_was_made_with_and_as_it_is_given_later(peer):
    assert set_topic(peer, read=32, write=20).code == 0
    assert (route_of(peer)["readQueueNums"], route_of(peer)["writeQueueNums"]) == (32, 20)
    assert peer.send(b"x", e="31").code == 0  # as on the official broker: the larger number counts
    assert bodies_of(peer.pull("T", queueId=31)) == [b"x"]
    assert peer.send(b"x", e="32").code == 29
    assert set_topic(peer, read=1000, write=1000).code == 0
    assert peer.send(b"y", e="999").code == 0
    assert set_topic(peer, read=4, write=4).code == 0
    assert peer.send(b"x", e="31").code == 29
    assert peer.pull("T", queueId=31).code == 29
    assert set_topic(peer, read=32, write=4).code == 0
    assert bodies_of(peer.pull("T", queueId=31)) == [b"x"]


def test_permissions_of_a_topic_hold_at_once(peer):
    set_topic(peer)
    assert peer.send(b"x").code == 0
    set_topic(peer, perm=4)
    assert peer.send(b"x").code == 16
    assert route_of(peer)["perm"] == 4
    set_topic(peer, perm=2)
    assert peer.send(b"y").code == 0
    assert peer.pull("T").code == 16


def test_a_topic_outlives_a_restart_and_tells_what_was_set(tmp_path, engine_maker):
    site = DoorSite(tmp_path / "d", make_engine=engine_maker)
    set_topic(site.connect(), read=9, write=10, order="true", topicSysFlag=2)
    site.close()
    site = DoorSite(tmp_path / "d", make_engine=engine_maker)
    said = json.loads(bytes(site.connect().ask(351, topic="T").body))
    assert said == {
        "attributes": {},
        "order": True,
        "perm": 6,
        "readQueueNums": 9,
        "topicFilterType": "SINGLE_TAG",
        "topicName": "T",
        "topicSysFlag": 2,
        "writeQueueNums": 10,
    }
    site.close()


def test_the_message_type_of_a_topic_is_kept_until_it_is_changed(tmp_path, engine_maker):
    site = DoorSite(tmp_path / "d", make_engine=engine_maker)
    peer = site.connect()

    def told(peer):
        return json.loads(bytes(peer.ask(351, topic="T").body))["attributes"]

    assert set_topic(peer, attributes="+message.type=FIFO").code == 0
    assert told(peer) == {"message.type": "FIFO"}
    assert set_topic(peer, read=2, write=2).code == 0
    assert peer.send(b"x").code == 0
    site.close()
    site = DoorSite(tmp_path / "d", make_engine=engine_maker)
    peer = site.connect()
    assert told(peer) == {"message.type": "FIFO"}
    assert set_topic(peer, attributes="+message.type=DELAY").code == 0
    assert told(peer) == {"message.type": "DELAY"}
    assert set_topic(peer, attributes="-message.type").code == 0
    assert told(peer) == {}
    site.close()


def test_a_topic_without_queues_to_write_takes_nothing(peer):
    assert set_topic(peer, read=4, write=0).code == 0
    assert peer.send(b"x", e="-1").code == 16


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"topic": "bad name"}, 29),
        ({"topic": "t" * 128}, 29),
        ({"topic": "SCHEDULE_TOPIC_XXXX"}, 29),
        ({"topic": "TBW102"}, 29),
        ({"topic": "LMQ_PARENT"}, 29),
        ({"topic": "LMQ_GAP"}, 29),
        ({"topic": "%LMQ%a"}, 29),
        ({"read": 65_536}, 29),
        ({"write": -1}, 29),
        ({"perm": 8}, 29),
        ({"attributes": "+cleanup.policy=COMPACTION"}, 29),
        ({"attributes": "+message.type=FIFO,+queue.type=BatchCQ"}, 29),
        ({"attributes": "+message.type=fifo"}, 29),
        ({"attributes": "message.type=FIFO"}, 29),
        ({"write": "x"}, 1),
    ],
)
def test_a_topic_that_cannot_be_is_refused(peer, changes, code):
    assert set_topic(peer, **changes).code == code


def test_topics_are_listed_and_deleted(peer):
    set_topic(peer, "B")
    set_topic(peer, "A")
    assert json.loads(bytes(peer.ask(206).body)) == {"topicList": ["A", "B"]}
    assert peer.ask(215, topic="A").code == 0
    assert peer.ask(216, topic="A").code == 0
    assert route_of(peer, "A") == {}
    assert peer.pull("A").code == 17


def test_a_topic_that_a_send_makes_has_as_many_queues_as_the_setting_allows(tmp_path, engine_maker):
    site = DoorSite(tmp_path / "d", RocketmqSettings(auto_topic_queues=32), make_engine=engine_maker)
    peer = site.connect()
    assert route_of(peer, "TBW102")["writeQueueNums"] == 32
    peer.send(b"x", d="20")
    assert route_of(peer)["writeQueueNums"] == 20
    peer.send(b"x", topic="U", d="200")
    assert route_of(peer, "U")["writeQueueNums"] == 32
    site.close()


# Groups


def set_group(peer, **settings: object):
    return peer.ask(200, json.dumps({"groupName": "g"} | settings).encode())


def test_a_group_has_as_many_attempts_and_retry_queues_as_it_was_given(site, peer):
    assert set_group(peer, retryMaxTimes=1, retryQueueNums=3).code == 0
    offset = int(peer.send(b"bad", j="1").ext["msgId"][16:], 16)
    assert peer.ask(36, offset=offset, group="g", delayLevel=0).code == 0
    assert bodies_of(peer.pull("%DLQ%g")) == [b"bad"]
    peer.ask(34, b'{"clientID":"c","consumerDataSet":[{"groupName":"g"}]}')
    assert route_of(peer, "%RETRY%g")["writeQueueNums"] == 3
    set_group(peer, retryQueueNums=5)
    assert route_of(peer, "%RETRY%g")["writeQueueNums"] == 5
    set_group(peer, retryQueueNums=0)
    assert peer.ask(36, offset=offset, group="g", delayLevel=-1).code == 0  # dropped, as the group wants it
    assert len(bodies_of(peer.pull("%DLQ%g"))) == 1


def test_a_group_that_may_not_consume_is_refused_its_pulls(peer):
    peer.send(b"x")
    assert peer.pull("T").code == 0
    set_group(peer, consumeEnable=False)
    assert peer.pull("T").code == 16
    assert peer.pull("T", consumerGroup="other").code == 0
    set_group(peer, consumeBroadcastEnable=False)
    assert peer.pull("T").code == 0
    peer.ask(34, b'{"clientID":"c","consumerDataSet":[{"groupName":"g","messageModel":"BROADCASTING"}]}')
    assert peer.pull("T").code == 16


def test_members_of_a_group_that_wants_no_news_get_none(site, peer):
    set_group(peer, notifyConsumerIdsChangedEnable=False)
    said = {"clientID": "c1", "consumerDataSet": [{"groupName": "g"}]}
    peer.ask(34, json.dumps(said).encode())
    site.connect().ask(34, json.dumps(said | {"clientID": "c2"}).encode())
    assert peer.take() == []


def test_a_group_tells_what_was_set_and_forgets_it_with_its_offsets(site, peer):
    set_group(peer, retryMaxTimes=3, consumeMessageOrderly=True)
    said = json.loads(bytes(peer.ask(352, group="g").body))
    assert (said["retryMaxTimes"], said["consumeMessageOrderly"]) == (3, True)
    assert json.loads(bytes(peer.ask(352, group="never").body))["consumeMessageOrderly"] is False
    assert json.loads(bytes(peer.ask(352, group="never").body))["retryMaxTimes"] == 16
    assert list(json.loads(bytes(peer.ask(201).body))["subscriptionGroupTable"]) == ["g"]
    peer.send(b"x")
    peer.ask(15, consumerGroup="g", topic="T", queueId=0, commitOffset=1)
    assert peer.ask(207, groupName="g", cleanOffset="true").code == 0
    assert json.loads(bytes(peer.ask(201).body))["subscriptionGroupTable"] == {}
    assert site.broker.consumer_offsets.get(b"g", b"T/0") is None


def test_members_of_a_deleted_group_are_not_told_of_the_next_group_of_that_name(site, peer):
    acknowledgers = site.broker.pop.acknowledgers
    peer.send(b"x", e="0")
    acknowledgers.note_run((b"T/0", b"g"), 0, 1, acknowledgers.code_of(b"one"))
    peer.ask(15, consumerGroup="g", topic="T", queueId=0, commitOffset=1)
    peer.ask(207, groupName="g", cleanOffset="true")
    assert acknowledgers.find((b"T/0", b"g"), 0) == b""


@pytest.mark.parametrize(
    "settings",
    [
        {"groupName": ""},
        {"groupName": "g h"},
        {"retryMaxTimes": "3"},
        {"consumeEnable": 1},
        {"retryQueueNums": -1},
        {"consumeMessageOrderly": "true"},
        {"groupSysFlag": 1},
        {"attributes": {"+lite.bind.topic": "T"}},
    ],
)
def test_a_group_that_cannot_be_is_refused(peer, settings):
    assert set_group(peer, **settings).code == 29


class Stranger:
    """A client that may set nothing up."""

    def write(self, data: bytes) -> None:
        raise AssertionError(data)

    def may_configure(self, _name: bytes, _kind: str = "") -> bool:
        return False


def test_who_may_not_configure_changes_nothing(site, peer):
    set_topic(peer)
    admin = site.door.admin
    queues = {"topic": "T", "perm": "6", "readQueueNums": "1", "writeQueueNums": "1"}
    for refused, request in (
        (admin.set_topic, Command(17, ext=queues)),
        (admin.delete_topic, Command(215, ext=queues)),
        (admin.set_group, Command(200, body=b'{"groupName":"g"}')),
        (lambda *asked: admin.delete_group(*asked, print), Command(207, ext={"groupName": "g"})),
    ):
        with pytest.raises(CommandRefusedError) as caught:
            refused(request, Stranger())
        assert caught.value.code == 16
    assert route_of(peer)["readQueueNums"] == 16


def test_what_is_made_changed_and_removed_is_told_with_the_doing(site, peer):
    told = []
    site.authenticator.events.listen(told.append)
    set_topic(peer)
    set_topic(peer, write=3)
    peer.ask(215, topic="T")
    peer.ask(215, topic="T")  # there is none any more
    peer.send(topic="Made")
    peer.send(topic="Made")
    set_group(peer, groupName="g")
    peer.ask(401, json.dumps({"topic": "Made", "consumerGroup": "g", "mode": "POP"}).encode())
    peer.ask(222, topic="Made", group="g", timestamp=-1)
    peer.ask(207, groupName="g", cleanOffset="true")
    peer.ask(25, b"autoCreateTopicEnable=false\n")
    peer.ask(100, namespace="N", key="k", value="v")
    found = [(event.kind, event.fields.get("topic"), event.fields.get("group")) for event in told]
    assert found == [
        ("topic.created", "T", None),
        ("topic.changed", "T", None),
        ("topic.deleted", "T", None),
        ("topic.created", "Made", None),
        ("group.set", None, "g"),
        ("group.set", "Made", "g"),
        ("group.reset", "Made", "g"),
        ("group.deleted", None, "g"),
        ("settings.changed", None, None),
        ("admin.changed", None, None),
    ]
    assert {(event.actor.door, event.actor.conn_id) for event in told} == {("rocketmq", peer.transport.conn_id)}


def test_topics_and_groups_are_refused_while_the_disk_has_no_room_for_them(site, peer):
    set_topic(peer, read=4)
    set_room_for_definitions(site.store, False)
    assert (set_topic(peer, "New").code, set_topic(peer, read=5).code, set_group(peer).code) == (2, 2, 2)
    assert (peer.ask(105, topic="New").code, route_of(peer)["readQueueNums"]) == (17, 4)
    assert json.loads(bytes(peer.ask(201).body))["subscriptionGroupTable"] == {}
    set_room_for_definitions(site.store, True)
    assert (set_topic(peer, "New").code, set_topic(peer, read=5).code, set_group(peer).code) == (0, 0, 0)


def test_a_group_is_not_deleted_while_that_would_wait_for_room(site, peer):
    set_group(peer)
    set_room_for_definitions(site.store, False, is_stuck=True)
    assert peer.ask(207, groupName="g", cleanOffset="true").code == 2
    assert list(json.loads(bytes(peer.ask(201).body))["subscriptionGroupTable"]) == ["g"]
    set_room_for_definitions(site.store, False)
    assert peer.ask(207, groupName="g", cleanOffset="true").code == 0


@pytest.mark.parametrize("name", ["", "a b", "TBW102", "LMQ_PARENT", "SCHEDULE_TOPIC_XXXX"])
def test_a_topic_of_our_own_or_of_an_impossible_name_is_not_deleted(peer, name):
    for code in (215, 216):
        assert peer.ask(code, topic=name).code == 29
        assert peer.ask(code, topic="Unknown").code == 0


@pytest.mark.parametrize("name", ["", "a b"])
def test_a_group_that_there_cannot_be_is_not_shown(peer, name):
    assert peer.ask(352, group=name).code == 26
