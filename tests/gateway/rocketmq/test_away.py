"""Reads that find nothing there yet, because the messages are on their way from where they are kept."""

from __future__ import annotations

from functools import partial

import pytest

from lmq.remoting.response_codes import ResponseCode
from tests.support.late_engine import make_late
from tests.support.rocketmq import request_frame
from tests.support.rocketmq_door import NOW_MS, SUBSCRIBED, SUSPENDED, DoorSite, bodies_of
from tests.support.rocketmq_pop import ack, pop


def of_message(message):
    """Return the fields that say which message is meant."""
    return {
        "consumerGroup": "g",
        "topic": "T",
        "queueId": message.queue_id,
        "offset": message.offset,
        "extraInfo": message.receipt,
    }


@pytest.fixture
def site(tmp_path):
    site = DoorSite(tmp_path, make_engine=partial(make_late, away=1.0))
    yield site
    site.close()


def test_a_pull_that_waits_is_answered_when_the_messages_are_here(site):
    peer = site.connect()
    peer.send(b"x", topic="T")
    peer.start_pull("T", sysFlag=SUBSCRIBED | SUSPENDED)
    assert peer.take() == []
    site.turn()
    (answer,) = peer.take()
    assert answer.code == ResponseCode.SUCCESS
    assert bodies_of(answer) == [b"x"]


def test_a_pull_that_does_not_wait_is_told_to_come_again(site):
    peer = site.connect()
    peer.send(b"x", topic="T")
    peer.start_pull("T")
    site.turn()  # in which the queue is opened
    assert [answer.code for answer in peer.take()] == [ResponseCode.PULL_RETRY_IMMEDIATELY]
    site.turn()
    assert bodies_of(peer.pull("T")) == [b"x"]


def test_a_delayed_message_that_is_on_its_way_when_it_is_due_comes_and_comes_once(site):
    peer = site.connect()
    peer.send(b"later", topic="T", properties="DELAY\x011\x02")
    site.now_ms += 1_001
    for _ in range(8):
        site.turn()
    peer.pull("T")
    site.turn()
    assert bodies_of(peer.pull("T")) == [b"later"]


def test_offsets_of_a_moment_are_answered_when_they_are_found(site):
    peer = site.connect()
    for body in (b"a", b"b"):
        peer.send(body, topic="T")
        site.now_ms += 1_000
    for opaque, at_ms in enumerate((0, NOW_MS + 1, NOW_MS + 9_000)):
        peer.give(request_frame(29, opaque=opaque, topic="T", queueId=0, timestamp=at_ms))
    assert peer.take() == []
    site.turn()
    assert {answer.opaque: answer.ext["offset"] for answer in peer.take()} == {0: "0", 1: "1", 2: "2"}


def test_a_search_that_finds_nothing_out_is_to_be_tried_again(tmp_path):
    site = DoorSite(tmp_path / "failing", make_engine=partial(make_late, failures=1.0))
    peer = site.connect()
    peer.send(b"x", topic="T")
    assert peer.ask(29, topic="T", queueId=0, timestamp=0).code == ResponseCode.SYSTEM_BUSY
    peer.give(request_frame(12, topic="T", key="k", maxNum=1, beginTimestamp=0, endTimestamp=1 << 50))
    site.turn()
    site.turn()
    assert [answer.code for answer in peer.take()] == [ResponseCode.SYSTEM_BUSY]
    site.close()


def test_a_query_of_a_client_that_went_before_its_time_was_found_ends(site):
    peer = site.connect()
    peer.send(b"x", topic="T", properties="KEYS\x01k\x02")
    peer.give(request_frame(12, topic="T", key="k", maxNum=1, beginTimestamp=0, endTimestamp=1 << 50))
    peer.close()
    site.turn()
    assert peer.take() == []


def test_a_record_is_shown_and_sent_back_when_it_is_here(site):
    peer = site.connect()
    offset = int(peer.send(b"x", topic="T").ext["msgId"][16:], 16)
    peer.give(request_frame(33, opaque=7, topic="T", offset=offset))
    peer.give(request_frame(33, opaque=8, topic="T", offset=offset + 1))
    peer.give(request_frame(36, opaque=9, group="g", offset=offset, delayLevel=-1))
    assert peer.take() == []
    site.turn()
    assert {answer.opaque: answer.code for answer in peer.take()} == {7: 0, 8: 1, 9: 0}
    peer.start_pull("%DLQ%g", sysFlag=SUBSCRIBED | SUSPENDED)
    site.turn()
    assert bodies_of(peer.take()[0]) == [b"x"]


def test_a_pull_is_answered_when_the_ends_of_its_queue_are_known(site):
    peer = site.connect()
    peer.send(b"x", topic="T")
    peer.start_pull("T", 7)
    assert peer.take() == []
    site.turn()
    assert [(one.code, one.ext["maxOffset"]) for one in peer.take()] == [(ResponseCode.PULL_OFFSET_MOVED, "1")]


def test_a_queue_that_cannot_be_opened_is_told_of_by_a_busy_broker_and_then_it_can(site):
    peer = site.connect()
    peer.send(b"x", topic="T")
    site.engine.unknown = 1.0
    peer.start_pull("T")
    peer.give(request_frame(30, opaque=9, topic="T", queueId=0))
    site.turn()
    assert [answer.code for answer in peer.take()] == [ResponseCode.SYSTEM_BUSY] * 2
    assert not peer.handler.held
    site.engine.unknown = 0.0
    peer.give(request_frame(30, opaque=9, topic="T", queueId=0))
    assert peer.take() == []
    site.turn()
    assert [answer.ext["offset"] for answer in peer.take()] == ["1"]


def test_a_client_that_goes_before_its_queue_is_open_is_answered_nothing(site):
    peer = site.connect()
    peer.send(b"x", topic="T")
    peer.start_pull("T")
    peer.close()
    site.turn()
    assert peer.take() == []
    assert not peer.handler.held


def test_the_first_store_time_is_told_when_its_message_is_here(site):
    peer = site.connect()
    peer.send(b"x", topic="T")
    assert peer.ask(32, topic="T", queueId=0).ext["timestamp"] == str(NOW_MS)


def test_what_a_consumer_says_of_a_message_waits_until_its_queue_is_open(site):
    peer = site.connect()
    for body in (b"a", b"b"):
        peer.send(body, topic="T")
    first, second = pop(peer)
    site.engine.forget_opened()
    peer.give(request_frame(200_051, opaque=9, **of_message(first)))
    peer.give(request_frame(200_053, opaque=10, invisibleTime=0, **of_message(second)))
    assert peer.take() == []
    site.turn()
    assert sorted((answer.opaque, answer.code) for answer in peer.take()) == [(9, 0), (10, 0)]
    assert [message.body for message in pop(peer)] == [b"b"]


def test_what_a_consumer_says_of_a_queue_that_cannot_be_opened_is_busy_and_changes_nothing(site):
    peer = site.connect()
    peer.send(b"a", topic="T")
    (message,) = pop(peer)
    site.engine.forget_opened()
    site.engine.unknown = 1.0
    assert ack(peer, message).code == ResponseCode.SYSTEM_BUSY
    site.engine.unknown = 0.0
    assert ack(peer, message).code == 0


@pytest.mark.parametrize(
    ("code", "fields", "told"),
    [
        (202, {"topic": "T"}, b'"maxOffset":1'),
        (208, {"consumerGroup": "g", "topic": "T"}, b'"brokerOffset":1'),
        (321, {"topic": "T", "queueId": 0, "index": 0, "count": 1}, b'"maxQueueIndex":1'),
        (222, {"topic": "T", "group": "g", "timestamp": -1}, b"}:1"),
    ],
)
def test_figures_of_tools_wait_until_a_queue_is_open(site, code, fields, told):
    peer = site.connect()
    peer.send(b"a", topic="T")
    site.engine.forget_opened()
    answer = peer.ask(code, **fields)
    assert answer.code == 0
    assert told in answer.body
