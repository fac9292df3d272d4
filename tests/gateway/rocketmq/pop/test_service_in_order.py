"""A queue's messages one after the other: what follows waits until what is before it is done."""

from __future__ import annotations

from functools import partial

from tests.support.late_engine import make_late
from tests.support.rocketmq_door import DoorSite
from tests.support.rocketmq_pop import (
    ack,
    bodies,
    change_invisible,
    fill,
    pop,
    read_popped,
    start_pop,
    waiting_pop,
)


def test_in_order_a_queues_next_messages_come_when_those_before_are_done(site, peer):
    fill(peer, 4)
    first = pop(peer, order="true", maxMsgNums=2)
    assert [message.receipt.split(" ")[3] for message in first] == ["999", "999"]
    assert pop(peer, order="true") == []
    ack(peer, first[0])
    assert pop(peer, order="true") == []
    ack(peer, first[1])
    assert bodies(pop(peer, order="true")) == [b"m2", b"m3"]


def test_in_order_what_failed_comes_again_before_what_follows(site, peer):
    fill(peer, 3)
    first = pop(peer, order="true", maxMsgNums=2)
    ack(peer, first[0])
    change_invisible(peer, first[1], 1_000)
    assert pop(peer, order="true") == []
    site.now_ms += 1_000
    assert [(message.body, message.attempts) for message in pop(peer, order="true")] == [(b"m1", 1)]
    assert pop(peer, order="true") == []


def test_in_order_one_queue_does_not_hinder_another(peer):
    for queue_id in range(2):
        fill(peer, 2, e=str(queue_id))
    first = pop(peer, order="true", maxMsgNums=1)
    second = pop(peer, order="true", maxMsgNums=1)
    assert {first[0].queue_id, second[0].queue_id} == {0, 1}
    assert pop(peer, order="true") == []


def test_in_order_nobody_waits_for_what_was_taken_without_order(site, peer):
    fill(peer, 6)
    beside = pop(peer, maxMsgNums=2)
    first = pop(peer, order="true", maxMsgNums=2)
    assert bodies(first) == [b"m2", b"m3"]
    assert pop(peer, order="true") == []
    assert bodies(pop(peer, maxMsgNums=1)) == [b"m4"]
    assert pop(peer, order="true") == []
    for message in first:
        ack(peer, message)
    assert bodies(pop(peer, order="true")) == [b"m5"]
    ack(peer, beside[0])


def test_in_order_all_that_was_in_flight_at_a_start_is_waited_for(tmp_path, engine_maker):
    site = DoorSite(tmp_path / "d", make_engine=engine_maker)
    peer = site.connect()
    fill(peer, 4)
    (held,) = pop(peer, maxMsgNums=1)
    site.turn()
    site.close()
    now_ms = site.now_ms
    site = DoorSite(tmp_path / "d", make_engine=engine_maker)
    site.now_ms = now_ms
    peer = site.connect()
    assert pop(peer, order="true") == []
    ack(peer, held)
    assert bodies(pop(peer, order="true", maxMsgNums=2)) == [b"m1", b"m2"]
    site.close()


def test_in_order_an_acknowledgement_wakes_who_waits(site, peer):
    fill(peer, 2)
    (first,) = pop(peer, order="true", maxMsgNums=1)
    other = site.connect()
    waiting_pop(other, order="true")
    ack(peer, first)
    site.turn()
    (answer,) = other.take()
    assert bodies(read_popped(answer)) == [b"m1"]


def test_in_order_an_answer_that_did_not_come_is_given_again_to_the_same_asking(peer):
    fill(peer, 3)
    lost = pop(peer, order="true", maxMsgNums=2, attemptId="a1")
    assert pop(peer, order="true", attemptId="a2") == []
    again = pop(peer, order="true", maxMsgNums=2, attemptId="a1")
    assert bodies(again) == bodies(lost) == [b"m0", b"m1"]
    for message in again:
        ack(peer, message)
    assert bodies(pop(peer, order="true", attemptId="a3")) == [b"m2"]


def test_in_order_an_answer_that_is_given_again_counts_as_no_attempt_more(site, peer):
    fill(peer, 3)
    lost = pop(peer, order="true", maxMsgNums=2, attemptId="a1")
    site.now_ms += 1
    again = pop(peer, order="true", maxMsgNums=2, attemptId="a1")
    assert [(one.body, one.attempts) for one in again] == [(b"m0", 0), (b"m1", 0)]
    ack(peer, lost[0])  # that answer did not come, and its receipts are not good
    site.now_ms += 1
    ack(peer, again[0])
    (last,) = pop(peer, order="true", maxMsgNums=2, attemptId="a1")  # the other one is not settled
    assert (last.body, last.attempts) == (b"m1", 0)
    change_invisible(peer, last, 1_000)
    site.now_ms += 1_000
    (failed,) = pop(peer, order="true", attemptId="a2")
    site.now_ms += 1
    (same,) = pop(peer, order="true", attemptId="a2")
    assert [(one.body, one.attempts) for one in (failed, same)] == [(b"m1", 1), (b"m1", 1)]
    site.now_ms += 60_000
    (late,) = pop(peer, order="true", attemptId="a3")
    assert (late.body, late.attempts) == (b"m1", 2)


def test_in_order_what_is_given_again_may_be_on_its_way(tmp_path):
    site = DoorSite(tmp_path / "d", make_engine=partial(make_late, away=1.0))
    peer = site.connect()
    fill(peer, 2)
    for attempt in range(2):
        site.now_ms += 1
        start_pop(peer, order="true", maxMsgNums=2, attemptId="a1", pollTime=10_000)
        site.turn()
        (answer,) = peer.take()
        popped = read_popped(answer)
        assert [(one.body, one.attempts) for one in popped] == [(b"m0", 0), (b"m1", 0)], attempt
    site.close()
