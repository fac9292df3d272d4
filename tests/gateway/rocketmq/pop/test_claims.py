"""Where groups begin, and what others see of how far they are."""

from __future__ import annotations

import shutil

import pytest

from gateway.rocketmq.pop import claims
from tests.support.rocketmq import request_frame
from tests.support.rocketmq_door import DoorSite
from tests.support.rocketmq_pop import ack, pop, start_pop


def fill(peer, count: int) -> None:
    for i in range(count):
        assert peer.send(b"m%d" % i).code == 0


def bodies(messages) -> list[bytes]:
    return [message.body for message in messages]


@pytest.mark.parametrize("at_end", [0, 1])
def test_a_new_group_begins_at_the_first_message_of_a_young_queue(peer, at_end):
    fill(peer, 3)
    assert len(pop(peer, initMode=at_end)) == 3


@pytest.mark.parametrize(("mode", "found"), [(0, [b"m0", b"m1", b"m2"]), (1, [b"m2"])])
def test_a_new_group_begins_at_either_end_of_an_old_queue(site, peer, monkeypatch, mode, found):
    monkeypatch.setattr("gateway.rocketmq.consumer_manage.YOUNG_LOG_BYTES", -1)
    fill(peer, 3)
    assert bodies(pop(peer, initMode=mode)) == found
    fill(peer, 1)
    assert bodies(pop(peer, initMode=1 - mode)) == [b"m0"]


def test_a_group_goes_on_where_its_pulls_were_and_tells_where_it_is(site, peer):
    fill(peer, 6)
    assert peer.ask(15, consumerGroup="g", topic="T", queueId=0, commitOffset=2).code == 0
    messages = pop(peer)
    assert bodies(messages) == [b"m2", b"m3", b"m4", b"m5"]
    for i in (0, 1, 3):
        ack(peer, messages[i])
    site.door.claims.commit_floors()
    assert peer.ask(14, consumerGroup="g", topic="T", queueId=0).ext["offset"] == "4"


def test_a_group_that_committed_more_than_there_is_gets_what_comes(peer):
    fill(peer, 1)
    peer.ask(15, consumerGroup="g", topic="T", queueId=0, commitOffset=99)
    assert pop(peer) == []
    peer.send(b"new")
    assert bodies(pop(peer)) == [b"new"]


def test_a_group_can_be_set_to_another_place_and_what_it_had_is_forgotten(site, peer):
    fill(peer, 3)
    messages = pop(peer)
    assert site.door.claims.reset(b"g", b"T/0", 1)
    assert not site.door.claims.reset(b"unknown", b"T/0", 1)
    assert not any(ack(peer, message).code for message in messages)
    assert bodies(pop(peer)) == [b"m1", b"m2"]


def test_what_is_taken_and_done_outlives_the_process(tmp_path, engine_maker):
    site = DoorSite(tmp_path / "data", make_engine=engine_maker)
    peer = site.connect()
    fill(peer, 4)
    taken = pop(peer, maxMsgNums=3)
    ack(peer, taken[1])
    site.close()
    again = DoorSite(tmp_path / "data", make_engine=engine_maker)
    try:
        peer = again.connect()
        assert bodies(pop(peer)) == [b"m3"]
        ack(peer, taken[0])
        again.now_ms += 60_000
        assert [(message.body, message.attempts) for message in pop(peer)] == [(b"m2", 1), (b"m3", 1)]
    finally:
        again.close()


def test_a_group_that_pulled_meanwhile_goes_on_behind_that_and_keeps_what_it_has(site, peer):
    fill(peer, 6)
    first, second = pop(peer, maxMsgNums=2)
    ack(peer, first)
    assert peer.ask(15, consumerGroup="g", topic="T", queueId=0, commitOffset=4).code == 0
    assert bodies(pop(peer)) == [b"m4", b"m5"]
    site.door.claims.commit_floors()
    assert peer.ask(14, consumerGroup="g", topic="T", queueId=0).ext["offset"] == "4"
    ack(peer, second)
    site.now_ms += 60_000
    assert bodies(pop(peer)) == [b"m4", b"m5"]


def open_queues(site) -> int:
    return len(site.broker.pop._desk.queues)


def test_what_nobody_uses_is_kept_by_its_place_alone(site, peer):
    fill(peer, 2)
    first, second = pop(peer)
    ack(peer, first)
    for _ in range(3):
        site.door.tend(site.now_ms)
    assert open_queues(site) == 1  # something is in flight
    ack(peer, second)
    for _ in range(2):
        site.door.tend(site.now_ms)
    assert open_queues(site) == 0
    peer.send(b"new")
    assert bodies(pop(peer)) == [b"new"]


def test_a_group_that_is_deleted_with_its_offsets_begins_anew(site, peer):
    fill(peer, 2)
    for message in pop(peer):
        ack(peer, message)
    assert pop(peer) == []
    assert peer.ask(207, groupName="g", cleanOffset="false").code == 0
    assert pop(peer) == []
    assert peer.ask(207, groupName="g", cleanOffset="true").code == 0
    assert bodies(pop(peer)) == [b"m0", b"m1"]


def test_a_group_that_is_deleted_before_it_acknowledged_anything_is_told_as_one_that_began_where_it_begins_anew(
    site, peer, monkeypatch
):
    monkeypatch.setattr("gateway.rocketmq.consumer_manage.YOUNG_LOG_BYTES", -1)
    fill(peer, 3)
    endings, key = site.broker.lasting_endings, b"T/0"
    assert bodies(pop(peer, initMode=1)) == [b"m2"]
    assert endings.find(key, b"g", 0).reason == "began_behind"
    site.door.claims.drop(b"g")  # as its deletion does
    assert bodies(pop(peer, initMode=0)) == [b"m0", b"m1", b"m2"]
    assert endings.find(key, b"g", 0) is None


@pytest.mark.at_once(reason="copies the files")
@pytest.mark.parametrize("is_noted", [False, True])
def test_a_kill_before_the_deletion_of_a_group_is_answered_leaves_it_where_it_is(tmp_path, is_noted):
    site = DoorSite(tmp_path / "before")
    peer = site.connect()
    fill(peer, 3)
    done, _, _ = pop(peer)
    ack(peer, done)
    if is_noted:
        site.door.claims.commit_floors()
    site.settle()
    peer.give(request_frame(207, groupName="g", cleanOffset="true"))
    assert peer.take() == []
    shutil.copytree(tmp_path / "before", tmp_path / "after")
    answers = []
    while not answers:
        site.turn()
        answers = peer.take()
    assert answers[0].code == 0
    shutil.copytree(tmp_path / "before", tmp_path / "answered")
    site.close()
    for folder, expected in (("after", [b"m1", b"m2"]), ("answered", [b"m0", b"m1", b"m2"])):
        site = DoorSite(tmp_path / folder)
        site.now_ms += 120_000
        site.turn()
        assert bodies(pop(site.connect())) == expected
        site.close()


def test_a_group_that_notes_its_offset_while_it_is_deleted_begins_anew_all_the_same(site, peer):
    fill(peer, 2)
    ack(peer, pop(peer)[0])
    peer.give(request_frame(207, groupName="g", cleanOffset="true"))
    site.door.claims.commit_floors()
    while not peer.take():
        site.turn()
    assert bodies(pop(peer)) == [b"m0", b"m1"]


def test_no_more_than_so_much_is_in_flight_of_all_groups(site, peer, monkeypatch):
    monkeypatch.setattr(claims, "IN_FLIGHT_MAX", 4)
    fill(peer, 6)
    messages = pop(peer, maxMsgNums=4)
    assert pop(peer, consumerGroup="h") == []
    other = site.connect()
    start_pop(other, consumerGroup="h", pollTime=5_000)
    for message in messages[:3]:
        ack(peer, message)
    site.turn()
    assert other.take() == []
    site.door.look_after_pops(site.now_ms)
    site.turn()
    assert len(other.take()) == 1
    assert site.door.claims.in_flight_count == 7
    site.now_ms += 600_000
    site.turn()
    site.door.look_after_pops(site.now_ms)
    assert site.door.claims.in_flight_count == 0


def test_the_queues_that_a_group_took_from_are_known(site, peer):
    fill(peer, 1)
    peer.send(b"x", topic="U")
    assert site.door.claims.queues_of(b"group") == []
    messages = pop(peer, consumerGroup="group")
    pop(peer, "U", consumerGroup="group")
    ack(peer, messages[0], consumerGroup="group")
    assert sorted(site.door.claims.queues_of(b"group")) == [b"T/0", b"U/0"]
    assert site.door.claims.queues_of(b"other") == []
