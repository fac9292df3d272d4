from __future__ import annotations

import json

import pytest

from gateway.rocketmq.errors import CommandRefusedError
from lmq.remoting.commands import Command
from tests.support.rocketmq_pop import pop
from tests.support.rocketmq_tools import Stranger, ask_tool, join


@pytest.fixture
def filled(site, peer):
    """Four messages on queue 0 of T, a second apart; the group g is at 3."""
    for _ in range(4):
        peer.send(b"x")
        site.now_ms += 1_000
    peer.ask(15, consumerGroup="g", topic="T", queueId=0, commitOffset=3)
    return peer


def reset(peer, at_ms, **more):
    return ask_tool(peer, 222, **({"topic": "T", "group": "g", "timestamp": at_ms, "isForce": "true"} | more))


def committed(peer, queue_id=0):
    return peer.ask(14, consumerGroup="g", topic="T", queueId=queue_id, setZeroIfNotFound="false").ext.get("offset")


def test_a_group_goes_on_at_a_moment(site, filled):
    answer = reset(filled, site.now_ms - 3_500)
    assert b'{{"brokerName":"lmq","queueId":0,"topic":"T"}:1,' in bytes(answer.body)
    assert committed(filled) == "1"
    reset(filled, -1)
    assert committed(filled) == "4"
    reset(filled, 0)
    assert (committed(filled), committed(filled, 3)) == ("0", "0")


def test_a_group_goes_only_back_where_it_is_not_forced_on(site, filled):
    reset(filled, -1, isForce="false")
    assert committed(filled) == "3"
    reset(filled, 0, isForce="false")
    assert committed(filled) == "0"


def test_one_queue_goes_on_at_an_offset(filled):
    assert reset(filled, -1, queueId=0, offset=2).code == 0
    assert committed(filled) == "2"
    reset(filled, -1, queueId=0, offset=99)
    assert committed(filled) == "4"
    assert committed(filled, 1) is None


def test_clients_of_the_group_are_told_where_to_go_on(site, filled):
    java, cpp = join(site, "c1"), join(site, "c2", language="CPP")
    other = join(site, "c3", group="other")
    java.take()
    reset(filled, 0)
    (as_list,) = cpp.take()
    assert json.loads(bytes(as_list.body))["offsetTable"][0] == {
        "brokerName": "lmq",
        "offset": 0,
        "queueId": 0,
        "topic": "T",
    }
    (push,) = java.take()
    assert (push.code, push.is_one_way, push.ext["group"], push.ext["topic"]) == (220, True, "g", "T")
    assert bytes(push.body).startswith(b'{"offsetTable":{{"brokerName":"lmq","queueId":0,"topic":"T"}:0,')
    assert other.take() == []


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"topic": "Unknown"}, 17),
        ({"group": ""}, 26),
        ({"group": "g" * 256}, 26),
        ({"queueId": 9}, 29),
        ({"timestamp": "soon"}, 1),
        ({"offset": "x"}, 1),
    ],
)
def test_a_reset_that_cannot_be_is_refused(filled, changes, code):
    assert reset(filled, 0, **changes).code == code
    assert committed(filled) == "3"


def test_who_may_not_configure_resets_nothing(site, filled):
    stranger = Stranger()
    steps = site.door.tools.resets.reset(Command(222, ext={"group": "g", "topic": "T", "timestamp": "0"}), stranger, 0)
    with pytest.raises(CommandRefusedError) as caught:
        next(steps)
    assert caught.value.code == 16
    assert committed(filled) == "3"


def test_a_group_that_takes_by_pop_goes_on_there_too(site, filled):
    assert len(pop(filled)) == 1
    reset(filled, site.now_ms - 3_500)
    assert [message.offset for message in pop(filled)] == [1, 2, 3]
    site.door.claims.commit_floors()
    assert committed(filled) == "1"
