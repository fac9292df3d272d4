"""Requests wait for messages, are served in turn, and are told whether there are any."""

from __future__ import annotations

import pytest

from gateway.rocketmq.pop import service
from tests.support.rocketmq import request_frame
from tests.support.rocketmq_pop import (
    ask_pop,
    bodies,
    fill,
    pop,
    read_popped,
    start_pop,
    waiting_pop,
)


def test_a_request_waits_until_a_message_comes(site, peer):
    fill(peer, 1)
    pop(peer)
    other = site.connect()
    waiting_pop(other)
    peer.send(b"new")
    site.turn()
    (answer,) = other.take()
    assert (answer.opaque, bodies(read_popped(answer))) == (77, [b"new"])
    assert other.handler.held == {}


def test_a_request_waits_for_a_queue_that_nobody_sent_to_and_makes_none(site, peer):
    fill(peer, 1)
    pop(peer)
    other = site.connect()
    waiting_pop(other, queueId=3)
    assert site.broker.find_queue(b"T/3") == -1
    peer.send(b"new", e="3")
    site.turn()
    (answer,) = other.take()
    assert bodies(read_popped(answer)) == [b"new"]


def test_a_request_waits_until_a_message_is_shown_again(site, peer):
    fill(peer, 1)
    pop(peer, invisibleTime=2_000)
    other = site.connect()
    waiting_pop(other)
    site.now_ms += 2_000
    site.turn()
    (answer,) = other.take()
    assert [(message.body, message.attempts) for message in read_popped(answer)] == [(b"m0", 1)]


def test_a_request_whose_time_is_over_is_answered_so_once(site, peer):
    fill(peer, 1)
    pop(peer)
    waiting_pop(peer, pollTime=3_000)
    assert peer.handler.next_deadline_ms() == site.now_ms + 3_000
    site.now_ms += 3_000
    peer.handler.on_timer(site.now_ms)
    (answer,) = peer.take()
    assert (answer.code, answer.remark, answer.ext["invisibleTime"]) == (210, "NO_MESSAGE_IN_QUEUE", "60000")
    peer.send(b"new")
    assert peer.take() == []
    assert peer.handler.held == {}


def test_waiting_consumers_are_served_in_turn_one_message_each(site, peer):
    fill(peer, 1)
    pop(peer)
    others = [site.connect() for _ in range(3)]
    for other in others:
        waiting_pop(other, maxMsgNums=1)
    for i in range(3):
        peer.send(b"n%d" % i)
        site.turn()
        assert [len(other.take()) for other in others] == [int(one == i) for one in range(3)]


def test_no_more_than_so_many_wait(site, peer, monkeypatch):
    fill(peer, 1)
    pop(peer)
    monkeypatch.setattr(service, "WAITING_MAX", 2)
    for _ in range(2):
        waiting_pop(peer)
    assert ask_pop(peer, pollTime=5_000).code == 209
    waiting_pop(peer, consumerGroup="h", queueId=1)
    assert peer.ask(200_055, consumerGroup="g", topic="T", queueId=-1).ext == {"pollingNum": "2"}
    assert peer.ask(200_055, consumerGroup="g", topic="T", queueId=0).ext == {"pollingNum": "0"}
    assert peer.ask(200_055, consumerGroup="nobody", topic="T", queueId=0).ext == {"pollingNum": "0"}
    monkeypatch.setattr(service, "WAITING_ALL_MAX", 3)
    assert ask_pop(peer, pollTime=5_000, consumerGroup="i", queueId=2).code == 209
    peer.close()
    assert site.door.pops.waiting_count == 0


def test_a_consumer_whose_clock_is_wrong_is_served_and_a_late_request_is_not(site, peer):
    fill(peer, 2)
    behind = site.now_ms - 3_600_000
    assert len(pop(peer, bornTime=behind, maxMsgNums=1)) == 1
    late = ask_pop(peer, bornTime=behind - 1_600, pollTime=1_000)
    assert (late.code, late.remark) == (210, "pop message is timeout too much")
    assert late.ext.keys() >= {"popTime", "invisibleTime", "reviveQid", "restNum"}  # clients want them of this code
    assert len(pop(site.connect(), bornTime=site.now_ms + 3_600_000)) == 1


@pytest.mark.parametrize("poll_ms", [0, 1_000, 15_000])
@pytest.mark.parametrize("off_ms", [3_600_000, 15_200])
def test_a_consumer_is_served_again_soon_after_a_clock_was_set(site, peer, off_ms, poll_ms):
    fill(peer, 2)
    assert len(pop(peer, bornTime=site.now_ms, maxMsgNums=1)) == 1
    site.now_ms += off_ms  # ours; as if the consumer's had been set back
    for _ in range(3):
        ask_pop(peer, "%LMQ%empty", bornTime=site.now_ms - off_ms, pollTime=poll_ms)
        site.now_ms += 400
    assert len(pop(peer, bornTime=site.now_ms - off_ms, maxMsgNums=1)) == 1
    late = ask_pop(peer, bornTime=site.now_ms - off_ms - 1_600, pollTime=1_000)
    assert (late.code, late.remark) == (210, "pop message is timeout too much")


def test_rooms_are_forgotten_when_nobody_used_them_for_a_while(site, peer):
    fill(peer, 1)
    pop(peer)
    waiting_pop(peer, consumerGroup="h", queueId=2)
    for _ in range(2):
        site.door.pops.tend()
    assert [group for group, *_ in site.door.pops._rooms] == [b"h"]
    site.connect().send(b"late", e="2")
    (answer,) = peer.take()
    assert answer.code == 0
    assert bodies(pop(peer)) == [b"late"]


def test_a_consumer_that_does_not_read_gets_nothing_and_the_next_one_does(site, peer):
    fill(peer, 1)
    pop(peer)
    stuck, other = site.connect(), site.connect()
    waiting_pop(stuck)
    waiting_pop(other)
    stuck.transport.is_writable = False
    peer.send(b"new")
    site.turn()
    assert (stuck.take(), len(other.take())) == ([], 1)


def test_one_that_waits_is_answered_when_the_queue_is_open(site, peer):
    fill(peer, 1)
    start_pop(peer, pollTime=9_000)
    site.turn()
    (answer,) = [command for command in peer.take() if command.is_response]
    assert bodies(read_popped(answer)) == [b"m0"]


def test_a_group_is_told_whether_there_are_messages(site, peer):
    fields = {"consumerGroup": "g", "topic": "T", "queueId": -1, "pollTime": 0, "bornTime": 0}
    fill(peer, 1)
    site.open_queues()
    assert peer.ask(200_054, **fields).ext == {"hasMsg": "true", "pollingFull": "false"}
    pop(peer)
    assert peer.ask(200_054, **fields).ext == {"hasMsg": "false", "pollingFull": "false"}
    peer.give(request_frame(200_054, opaque=5, **(fields | {"pollTime": 2_000})))
    assert peer.take() == []
    site.connect().send(b"new")
    site.turn()
    (answer,) = peer.take()
    assert (answer.opaque, answer.ext["hasMsg"]) == (5, "true")
    assert bodies(pop(peer)) == [b"new"]


def test_a_group_is_told_how_many_requests_wait_for_all_queues_or_one(site, peer):
    def waiting(queue_id=-1, group="g"):
        fields = {"consumerGroup": group, "topic": "T", "queueId": queue_id}
        return site.connect().ask(200_055, **fields).ext["pollingNum"]

    fill(peer, 1)
    pop(peer)
    assert waiting() == "0"
    first, second, orderly = site.connect(), site.connect(), site.connect()
    waiting_pop(first)
    waiting_pop(second, queueId=0)
    waiting_pop(orderly, order="true")
    assert [waiting(), waiting(0), waiting(1), waiting(group="other")] == ["2", "1", "0", "0"]
    first.close()
    assert [waiting(), waiting(0)] == ["1", "1"]
    site.connect().send(b"new", e="0")
    site.turn()
    assert len(second.take()) == 1
    assert waiting(0) == "0"
