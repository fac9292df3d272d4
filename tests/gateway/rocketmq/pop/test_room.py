"""A room costs as much among many queues and groups as among few."""

from __future__ import annotations

from functools import partial

import pytest

from gateway.rocketmq.pop import room as rooms
from tests.support.late_engine import make_late
from tests.support.rocketmq import send_frame
from tests.support.rocketmq_door import DoorSite
from tests.support.rocketmq_pop import pop, read_popped, start_pop


def watched(site) -> int:
    return count_parked(site.door.pops._rooms.values())


def count_parked(rooms) -> int:
    return sum(watch.is_parked for room in rooms for watch in room._watches.values())


@pytest.mark.here(reason="counts the looks at queues")
def test_a_queue_is_looked_at_again_only_when_something_happened_there(site, peer, monkeypatch):
    for queue_id in range(4):
        peer.send(b"x", e=str(queue_id))
    pop(peer)
    looks = []
    original = site.door.claims.open
    monkeypatch.setattr(
        site.door.claims, "open", lambda group, key, **terms: looks.append(key) or original(group, key, **terms)
    )
    start_pop(peer, pollTime=5_000)
    assert sorted(looks) == [b"T/0", b"T/1", b"T/2", b"T/3"]  # each is found empty once
    looks.clear()
    for _ in range(3):
        start_pop(peer, pollTime=5_000)
        site.turn()
    assert looks == []
    site.connect().send(b"new", e="2")
    assert set(looks) == {b"T/2"}
    assert len(peer.take()) == 1


def test_rooms_that_are_closed_watch_nothing(site, peer):
    for group in ("g", "h"):
        peer.send(b"x")
        pop(peer, consumerGroup=group)
        pop(peer, consumerGroup=group)
    assert watched(site) > 0
    rooms = list(site.door.pops._rooms.values())
    for _ in range(2):
        site.door.tend(site.now_ms)
    assert count_parked(rooms) == 0
    peer.send(b"y")
    assert site.broker.reader_count(site.broker.find_queue(b"T/0")) == 0


def test_messages_that_nobody_waits_for_wake_a_room_once(site, peer):
    peer.send(b"x")
    pop(peer)
    pop(peer)
    before = watched(site)
    peer.send(b"y")
    assert watched(site) == before - 1
    assert [message.body for message in pop(peer)] == [b"y"]


@pytest.mark.parametrize("unknown", [0.0, 0.5])
def test_a_queue_that_was_opened_while_nobody_waited_has_messages_for_the_next_request(tmp_path, unknown):
    site = DoorSite(tmp_path / "data", make_engine=partial(make_late, unknown=unknown, seed=4))
    peer = site.connect()
    peer.send(b"x")
    site.engine.forget_opened()
    for _ in range(8):
        start_pop(peer, pollTime=0)  # is answered before the queue is open, or it could not be opened
        site.settle()
        if b"x" in [message.body for command in peer.take() for message in read_popped(command)]:
            break
    else:
        pytest.fail("the message never came")
    site.close()


@pytest.mark.here(reason="one pop takes what is here of each queue")
def test_a_topic_may_have_fewer_queues_than_before_and_more_again(site, peer):
    def set_queues(count: int) -> None:
        topic = {"topic": "T", "defaultTopic": "TBW102", "perm": 6, "topicFilterType": "SINGLE_TAG"}
        assert peer.ask(17, **topic, readQueueNums=count, writeQueueNums=8).code == 0

    set_queues(8)
    for queue_id in range(8):
        peer.send(b"%d" % queue_id, e=str(queue_id))
    set_queues(2)
    assert len(pop(peer)) == 2
    set_queues(4)
    assert len(pop(peer)) == 2
    peer.send(b"x", e="7")
    set_queues(2)
    assert pop(peer) == []
    set_queues(8)
    assert len(pop(peer)) == 5


@pytest.mark.here(reason="counts what each turn serves")
def test_very_many_that_wait_are_served_over_several_turns(site, peer, monkeypatch):
    monkeypatch.setattr(rooms, "SERVED_MAX", 3)
    peer.send(b"x")
    pop(peer)
    others = [site.connect() for _ in range(8)]
    for other in others:
        start_pop(other, pollTime=5_000, maxMsgNums=1)
    peer.give(send_frame(b"y") * 8)
    served = []
    for _ in range(4):
        site.broker.run_turn(site.now_ms)
        served.append(sum(len(other.take()) for other in others))
    assert sum(served) == 8
    assert max(served) <= 6  # a queue that grew and the room's own wish run once each
