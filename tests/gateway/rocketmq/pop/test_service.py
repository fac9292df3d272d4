"""POP from end to end in the door: taken from any queue, light queues, and what is refused."""

from __future__ import annotations

import pytest

from gateway.auth.credentials import Identity
from gateway.auth.permissions import Permissions
from gateway.rocketmq.pop import room as rooms
from lmq.remoting.commands import HEADER_BINARY
from tests.support.rocketmq import request_frame
from tests.support.rocketmq_pop import (
    ack,
    ask_pop,
    bodies,
    change_invisible,
    fill,
    pop,
    pop_fields,
    read_popped,
    start_pop,
)


def test_a_message_is_one_consumers_until_it_acknowledges_it(site, peer):
    fill(peer, 3)
    first, second, third = pop(peer)
    other = site.connect()
    assert pop(other) == []
    assert ack(other, second).code == 0
    site.now_ms += 60_000
    assert bodies(pop(other)) == [b"m0", b"m2"]
    assert (first.receipt != third.receipt, third.attempts) == (True, 0)


def test_what_comes_again_says_how_often_it_was_tried(site, peer):
    fill(peer, 2)
    pop(peer)
    for attempts in (1, 2, 3):
        site.now_ms += 60_000
        messages = pop(peer)
        assert [(message.body, message.attempts) for message in messages] == [(b"m0", attempts), (b"m1", attempts)]
    assert ack(peer, messages[0]).code == 0
    site.now_ms += 60_000
    assert bodies(pop(peer)) == [b"m1"]


def test_a_change_of_the_time_gives_another_receipt(site, peer):
    fill(peer, 1)
    (message,) = pop(peer)
    longer = change_invisible(peer, message, 300_000)
    site.now_ms += 60_000
    assert pop(peer) == []
    ack(peer, message)  # the old one
    site.now_ms += 240_000
    (again,) = pop(peer)
    assert (again.body, again.attempts) == (b"m0", 1)
    ack(peer, longer)  # older still
    at_once = change_invisible(peer, again, 0)
    ack(peer, at_once)
    (third,) = pop(peer)
    assert third.attempts == 2
    ack(peer, third)
    site.now_ms += 600_000
    assert pop(peer) == []


@pytest.mark.here(reason="one pop takes what is here of each queue")
def test_all_queues_of_a_topic_are_taken_from_in_turn(peer):
    for queue_id in range(4):
        fill(peer, 3, e=str(queue_id))
    messages = pop(peer)
    assert len({(message.queue_id, message.offset) for message in messages}) == 12
    assert ask_pop(peer).code == 210


def test_queues_have_their_turn_though_one_alone_would_fill_each_answer(peer):
    for queue_id in range(4):
        fill(peer, 20, e=str(queue_id))
    seen = [message.queue_id for _ in range(8) for message in pop(peer, maxMsgNums=5)]
    assert {queue_id: seen.count(queue_id) for queue_id in range(4)} == dict.fromkeys(range(4), 10)


def test_one_queue_is_taken_from_where_one_is_named(peer):
    fill(peer, 2, e="1")
    fill(peer, 3, e="2")
    assert {message.queue_id for message in pop(peer, queueId=2)} == {2}
    assert pop(peer, queueId=0) == []
    assert len(pop(peer, queueId=1)) == 2


def test_groups_do_not_hinder_each_other(peer):
    fill(peer, 2)
    assert bodies(pop(peer)) == bodies(pop(peer, consumerGroup="h")) == [b"m0", b"m1"]


def test_an_answer_tells_how_many_are_left_and_is_bounded_in_bytes(peer):
    for _ in range(4):
        peer.send(b"x" * 200_000)
    answer = ask_pop(peer)
    assert (len(read_popped(answer)), answer.ext["restNum"], answer.remark) == (1, "3", "FOUND")
    assert len(bytes(answer.body)) < 262_144


def test_unwanted_tags_are_passed_over_for_good(site, peer):
    for tag in ("a", "b", "", "a"):
        peer.send(tag.encode(), properties=f"TAGS\x01{tag}\x02" if tag else "")
    assert bodies(pop(peer, exp="a")) == [b"a", b"a"]
    site.now_ms += 60_000
    assert bodies(pop(peer)) == [b"a", b"a"]
    assert pop(peer) == []


def test_a_light_queue_is_popped_by_its_name(site, peer):
    fill(peer, 2, properties="INNER_MULTI_DISPATCH\x01%LMQ%a,%LMQ%b\x02", e="3")
    fill(peer, 1, properties="INNER_MULTI_DISPATCH\x01%LMQ%b\x02")
    messages = pop(peer, "%LMQ%b")
    assert [(message.queue_id, message.offset) for message in messages] == [(0, 0), (0, 1), (0, 2)]
    assert ack(peer, messages[1], "%LMQ%b").code == 0
    site.now_ms += 60_000
    again = pop(peer, "%LMQ%b")
    assert [(message.offset, message.attempts) for message in again] == [(0, 1), (2, 1)]
    assert not any(ack(peer, message, "%LMQ%b").code for message in again)
    site.now_ms += 60_000
    assert pop(peer, "%LMQ%b") == []
    assert len(pop(peer, "%LMQ%a")) == 2


def test_a_message_that_says_it_was_tried_before_has_a_good_receipt_in_a_light_queue(site, peer):
    fill(peer, 1, properties="INNER_MULTI_DISPATCH\x01%LMQ%a\x02", e="2", j="1")
    (message,) = pop(peer, "%LMQ%a")
    assert (message.queue_id, message.offset, message.attempts) == (0, 0, 1)
    ack(peer, message, "%LMQ%a")
    site.now_ms += 60_000
    assert pop(peer, "%LMQ%a") == []


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"topic": "Unknown"}, 17),
        ({"queueId": 4}, 29),
        ({"maxMsgNums": 33}, 29),
        ({"maxMsgNums": "x"}, 1),
        ({"invisibleTime": 0}, 29),
        ({"invisibleTime": -5}, 29),
        ({"invisibleTime": 1 << 62}, 29),
        ({"consumerGroup": ""}, 26),
        ({"consumerGroup": "g" * 256}, 26),
        ({"expType": "SQL92", "exp": "a >"}, 23),
        ({"pollTime": "soon"}, 1),
        ({"initMode": "x"}, 1),
    ],
)
def test_what_cannot_be_is_refused_with_its_code(peer, changes, code):
    fill(peer, 1)
    answer = ask_pop(peer, **changes)
    assert answer.code == code
    assert answer.remark
    assert len(pop(peer)) == 1


@pytest.mark.parametrize("missing", ["consumerGroup", "topic", "queueId", "maxMsgNums", "invisibleTime", "pollTime"])
def test_a_field_that_is_absent_is_named(peer, missing):
    fill(peer, 1)
    fields = {name: value for name, value in pop_fields().items() if name != missing}
    answer = peer.ask(200_050, **fields)
    assert (answer.code, answer.remark) == (1, f"the custom field <{missing}> is null")


def test_a_client_that_may_not_read_pops_nothing(peer):
    fill(peer, 1)
    peer.handler.identity = Identity("", Permissions(subscribe=False))
    assert [ask_pop(peer, queueId=queue_id).code for queue_id in (-1, 0, 1)] == [16, 16, 16]
    assert [peer.ask(code, **pop_fields()).code for code in (200_054, 200_055)] == [16, 16]
    peer.handler.identity = Identity("", Permissions())
    assert len(pop(peer)) == 1


def test_a_group_that_may_not_consume_is_refused(peer):
    fill(peer, 1)
    body = b'{"groupName":"g","consumeEnable":false}'
    assert peer.ask(200, body).code == 0
    assert ask_pop(peer).code == 16


def test_a_request_that_wants_no_answer_takes_nothing(peer):
    fill(peer, 1)
    peer.give(request_frame(200_050, flag=2, **pop_fields()))
    assert peer.take() == []
    assert len(pop(peer)) == 1


@pytest.mark.here(reason="looks before a turn went by")
def test_binary_headers_cut_the_code_and_are_answered_in_kind(site, peer):
    fill(peer, 1)
    site.open_queues()
    texts = {name: str(value) for name, value in pop_fields().items()}
    peer.give(request_frame(200_050 & 0xFFFF, opaque=-4, header_type=HEADER_BINARY, **texts))
    (answer,) = peer.take()
    assert (answer.header_type, answer.opaque, answer.code) == (HEADER_BINARY, -4, 0)
    assert bodies(read_popped(answer)) == [b"m0"]
    assert (site.door.metrics.messages_out, site.door.metrics.bytes_out) == (1, 2)


def test_a_topic_of_very_many_queues_is_looked_at_in_steps(peer, monkeypatch):
    assert peer.ask(17, topic="Wide", defaultTopic="TBW102", readQueueNums=50, writeQueueNums=50, perm=6,
                    topicFilterType="SINGLE_TAG").code == 0  # fmt: skip
    monkeypatch.setattr(rooms, "LOOKS_MAX", 7)
    fill(peer, 1, topic="Wide", e="33")
    start_pop(peer, "Wide", pollTime=5_000)
    for _ in range(10):
        peer.site.turn()
    (answer,) = peer.take()
    assert bodies(read_popped(answer)) == [b"m0"]
