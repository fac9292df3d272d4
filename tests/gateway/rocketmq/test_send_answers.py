"""Answers to sends whose offsets an engine tells with the outcome only."""

from __future__ import annotations

from functools import partial

import pytest

from lmq.remoting.message_codec import BatchItem, encode_batch
from lmq.remoting.response_codes import ResponseCode
from tests.support.late_engine import make_late
from tests.support.rocketmq import send_ext, send_frame
from tests.support.rocketmq_door import DoorSite, bodies_of, records_of


@pytest.fixture
def make(tmp_path):
    sites = []

    def make(engine_maker=None, **store):
        sites.append(DoorSite(tmp_path, make_engine=engine_maker or partial(make_late, away=0.0), **store))
        return sites[-1]

    yield make
    for site in sites:
        site.close()


def ask_all(site, peer, *frames):
    peer.give(b"".join(frames))
    site.turn()
    return {answer.opaque: answer for answer in peer.take()}


def test_each_answer_names_the_place_of_its_own_message(make):
    site = make()
    peers = [site.connect() for _ in range(3)]
    for turn in range(4):
        for number, peer in enumerate(peers):
            peer.give(b"".join(send_frame(b"%d" % number, topic="T", opaque=10 * turn + i) for i in range(1, 4)))
    site.turn()
    said = {}
    for number, peer in enumerate(peers):
        for answer in peer.take():
            said[int(answer.ext["queueOffset"])] = (b"%d" % number, int(answer.ext["msgId"][-16:], 16))
    records = [record for at in range(0, 36, 32) for record in records_of(peers[0].pull("T", at, maxMsgNums=32))]
    assert {record.queue_offset: (record.body, record.physical_offset) for record in records} == said
    assert len(said) == 36
    assert site.broker.metrics.door("rocketmq").messages_in == 36


def test_a_message_that_the_store_refuses_does_not_harm_those_beside_it(make):
    site = make(message_bytes_max=300)
    peer = site.connect()
    frames = [send_frame(body, topic="T", opaque=i) for i, body in enumerate([b"a", b"x" * 500, b"b", b"c"], 1)]
    answers = ask_all(site, peer, *frames)
    assert {opaque: answer.code for opaque, answer in answers.items()} == {1: 0, 2: 13, 3: 0, 4: 0}
    assert [answers[opaque].ext["queueOffset"] for opaque in (1, 3, 4)] == ["0", "1", "2"]
    assert [answers[opaque].ext["queueId"] for opaque in (1, 3, 4)] == ["0"] * 3
    assert bodies_of(peer.pull("T")) == [b"a", b"b", b"c"]


def test_a_lost_run_is_answered_send_by_send_and_not_counted(make):
    site = make(partial(make_late, failures=1.0, away=0.0), message_bytes_max=300)
    peer = site.connect()
    frames = [send_frame(body, topic="T", opaque=i) for i, body in enumerate([b"a", b"x" * 500, b"b"], 1)]
    answers = ask_all(site, peer, *frames)
    lost = ResponseCode.SERVICE_NOT_AVAILABLE
    assert {opaque: answer.code for opaque, answer in answers.items()} == {1: lost, 2: 13, 3: lost}
    metrics = site.broker.metrics.door("rocketmq")
    assert (metrics.messages_in, metrics.refused["not_stored"], metrics.refused["send_failed"]) == (0, 2, 1)


@pytest.mark.parametrize("failures", [0.0, 1.0])
def test_a_batch_is_answered_once(make, failures):
    site = make(partial(make_late, failures=failures, away=0.0))
    peer = site.connect()
    items = [BatchItem(0, b"m%d" % i, b"") for i in range(3)]
    answer = peer.ask(320, encode_batch(items), **send_ext(m="true"))
    if failures:
        assert (answer.code, "gone" in answer.remark) == (ResponseCode.SERVICE_NOT_AVAILABLE, True)
        return
    ids = [int(each[-16:], 16) for each in answer.ext["msgId"].split(",")]
    assert ids == [record.physical_offset for record in records_of(peer.pull("T"))]


def test_a_send_that_wants_no_answer_gets_none_and_counts(make):
    site = make()
    peer = site.connect()
    assert ask_all(site, peer, send_frame(b"x", topic="T", flag=2)) == {}
    assert site.broker.metrics.door("rocketmq").messages_in == 1


def test_a_waiting_message_is_taken_back_by_the_handle_that_came_with_its_place(make):
    site = make()
    peer = site.connect()
    peer.give(send_frame(b"later", topic="T", properties=f"TIMER_DELIVER_MS\x01{site.now_ms + 60_000}\x02"))
    peer.give(send_frame(b"now", topic="T", opaque=9))
    site.turn()
    later, _ = sorted(peer.take(), key=lambda answer: answer.opaque)
    assert later.code == 0
    assert "recallHandle" in later.ext
