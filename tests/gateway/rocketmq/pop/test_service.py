"""POP from end to end in the door: take, wait, be told, in order or not, of any queue."""

from __future__ import annotations

import pytest

from gateway.auth.credentials import Identity
from gateway.auth.permissions import Permissions
from gateway.rocketmq.pop import room as rooms, service
from lmq.remoting.commands import HEADER_BINARY
from tests.support.rocketmq import request_frame
from tests.support.rocketmq_door import DoorSite
from tests.support.rocketmq_pop import ack, ask_pop, change_invisible, pop, pop_fields, read_popped, start_pop


def fill(peer, count: int, **changes: object) -> None:
    for i in range(count):
        assert peer.send(b"m%d" % i, **changes).code == 0


def bodies(messages) -> list[bytes]:
    return [message.body for message in messages]


def waiting_pop(peer, topic: str = "T", **changes: object) -> None:
    """Have a request wait: it was not answered."""
    start_pop(peer, topic, **({"pollTime": 10_000} | changes))
    assert peer.take() == []


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


# Waiting


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


# Light queues


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


# In order


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


def test_one_that_waits_is_answered_when_the_queue_is_open(site, peer):
    fill(peer, 1)
    start_pop(peer, pollTime=9_000)
    site.turn()
    (answer,) = [command for command in peer.take() if command.is_response]
    assert bodies(read_popped(answer)) == [b"m0"]


# Told of messages


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


# Refused


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
