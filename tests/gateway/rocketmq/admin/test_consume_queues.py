from __future__ import annotations

import json

import pytest

from gateway.rocketmq.admin import consume_queues
from gateway.rocketmq.errors import CommandRefusedError
from lmq.remoting.commands import Command
from tests.support.rocketmq_door import records_of
from tests.support.rocketmq_tools import Stranger, ask_tool, join


def look(peer, **changes: object):
    fields = {"topic": "T", "queueId": 0, "index": 0, "count": 10}
    return ask_tool(peer, 321, **(fields | changes))


def test_each_message_is_told_by_its_place_and_the_hash_of_its_tag(peer):
    peer.send(b"a", properties="TAGS\x01TagA\x02")
    peer.send(b"b")
    records = records_of(peer.pull("T"))
    said = json.loads(bytes(look(peer).body))
    assert (said["minQueueIndex"], said["maxQueueIndex"]) == (0, 2)
    assert [(row["physicOffset"], row["tagsCode"]) for row in said["queueData"]] == [
        (records[0].physical_offset, 2598919), (records[1].physical_offset, 0),
    ]  # fmt: skip
    assert said["queueData"][1]["physicOffset"] == said["queueData"][0]["physicSize"]


def test_a_stretch_is_told_from_its_first_message(peer):
    for _ in range(80):
        peer.send(b"x")
    assert len(json.loads(bytes(look(peer, index=3, count=70).body))["queueData"]) == 70
    assert len(json.loads(bytes(look(peer, index=78).body))["queueData"]) == 2
    assert json.loads(bytes(look(peer, index=99).body))["queueData"] == []
    assert json.loads(bytes(look(peer, count=-1).body))["queueData"] == []


def test_no_more_than_so_many_are_told(peer, monkeypatch):
    monkeypatch.setattr(consume_queues, "COUNT_MAX", 2)
    for _ in range(3):
        peer.send(b"x")
    assert len(json.loads(bytes(look(peer, count=1_000_000).body))["queueData"]) == 2


def test_a_group_is_told_with_what_it_wants_or_that_it_is_away(site, peer):
    peer.send(b"x")
    said = json.loads(bytes(look(peer, consumerGroup="g").body))
    assert said["filterData"] == "g@T is not online!"
    join(site, "c1")
    said = json.loads(bytes(look(peer, consumerGroup="g").body))
    assert said["subscriptionData"]["subString"] == "a || b"


@pytest.mark.parametrize("changes", [{"topic": "None"}, {"queueId": 7}, {"queueId": -1}])
def test_a_queue_that_is_none_is_refused(peer, changes):
    peer.send(b"x")
    answer = look(peer, **changes)
    assert (answer.code, "is not exist!" in answer.remark) == (1, True)


def test_a_client_that_may_not_read_sees_nothing(site, peer):
    peer.send(b"x")
    request = Command(321, ext={"topic": "T", "queueId": "0", "index": "0", "count": "1"})
    with pytest.raises(CommandRefusedError) as caught:
        next(site.door.tools.queues.tell(request, Stranger()))
    assert caught.value.code == 16
