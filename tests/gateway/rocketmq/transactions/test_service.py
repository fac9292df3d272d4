from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from gateway.rocketmq.transactions.half import read_half
from gateway.settings.models import UserSettings
from lmq.remoting.message_codec import BatchItem, encode_batch
from lmq.remoting.signature import AccessKeys
from tests.support.rocketmq import request_frame, send_ext, send_frame, signed
from tests.support.rocketmq_door import NOW_MS, DoorSite, bodies_of, records_of
from tests.support.rocketmq_transactions import (
    COMMIT,
    INTERVAL_MS,
    ROLLBACK,
    TIMEOUT_MS,
    beat,
    checks,
    end,
    end_ext,
    half,
    send_half,
    settle,
    wait,
)


def test_a_half_message_is_seen_by_nobody_until_it_is_committed(site, peer):
    sent = send_half(peer, e="2", colour="red")
    assert (sent.ext["queueId"], sent.ext["queueOffset"], sent.ext["transactionId"]) == ("2", "0", "k")
    settle(site)
    assert peer.pull("T", queueId=2).code == 19
    assert peer.pull("RMQ_SYS_TRANS_HALF_TOPIC").code == 17
    assert peer.send(b"x", topic="RMQ_SYS_TRANS_HALF_TOPIC").code == 16
    assert end(peer, sent).code == 0
    (record,) = records_of(peer.pull("T", queueId=2))
    assert (record.body, record.queue_id, record.queue_offset, record.born_ms) == (b"paid", 2, 0, NOW_MS)
    assert record.sys_flag & 0xC == 8
    assert record.properties.pop(b"__CRC32#")
    expected = {"UNIQ_KEY": "k", "PGROUP": "p", "__transactionId__": "k", "colour": "red"}
    assert record.properties == {name.encode(): value.encode() for name, value in expected.items()}


def test_the_half_message_lies_where_official_tools_look_for_it(site, peer):
    sent = send_half(peer, e="3")
    (record,) = records_of(peer.ask(33, topic="T", offset=int(sent.ext["msgId"][16:], 16)))
    assert (record.topic, record.queue_id, record.queue_offset) == (b"RMQ_SYS_TRANS_HALF_TOPIC", 0, 0)
    assert (record.properties[b"REAL_TOPIC"], record.properties[b"REAL_QID"]) == (b"T", b"3")
    assert record.properties[b"TRAN_MSG"] == b"true"


def test_a_held_pull_is_answered_by_the_commit(site, peer):
    reader = site.connect()
    sent = send_half(peer)
    reader.start_pull("T", sysFlag=6)
    settle(site)
    assert reader.take() == []
    end(peer, sent)
    assert [bodies_of(answer) for answer in reader.take()] == [[b"paid"]]


def test_a_rolled_back_message_never_comes(site, peer):
    sent = send_half(peer)
    assert end(peer, sent, ROLLBACK).code == 0
    assert end(peer, sent, COMMIT).remark == "the transaction was ended before"
    wait(site, 10 * INTERVAL_MS)
    assert peer.pull("T").code == 19
    assert site.broker.metrics.transactions.rollbacks == 1
    assert site.broker.metrics.transactions.pending == 0


def test_a_commit_that_comes_again_stores_nothing_again(site, peer):
    sent = send_half(peer)
    both = request_frame(37, opaque=1, **end_ext(sent)) + request_frame(37, opaque=2, **end_ext(sent))
    peer.give(both)
    settle(site)
    assert [(answer.opaque, answer.code) for answer in peer.take()] == [(1, 0), (2, 0)]
    assert end(peer, sent).code == 0
    assert bodies_of(peer.pull("T")) == [b"paid"]


def test_a_one_way_end_is_done_and_not_answered(site, peer):
    sent = send_half(peer)
    peer.give(request_frame(37, flag=2, **end_ext(sent)))
    settle(site)
    assert peer.take() == []
    assert bodies_of(peer.pull("T")) == [b"paid"]


@pytest.mark.parametrize(
    ("changes", "remark"),
    [
        ({"producerGroup": "other"}, "The producer group wrong"),
        ({"tranStateTableOffset": 1}, "The producer group wrong"),
        ({"tranStateTableOffset": 9}, "Find prepared transaction message failed"),
        ({"tranStateTableOffset": -1}, "Find prepared transaction message failed"),
        ({"commitLogOffset": 5}, "The commit log offset wrong"),
        ({"commitOrRollback": 4}, "commitOrRollback is 4"),
        ({"commitLogOffset": "x"}, "the custom field <commitLogOffset> is not an integer"),
    ],
)
def test_a_forged_end_is_refused_and_ends_nothing(site, peer, changes, remark):
    sent = send_half(peer)
    send_half(peer, b"other", key="k2", PGROUP="q")
    answer = end(peer, sent, **changes)
    assert (answer.code, answer.remark) == (1, remark)
    assert peer.pull("T").code == 19
    assert end(peer, sent).code == 0
    assert bodies_of(peer.pull("T")) == [b"paid"]


def test_an_end_without_its_fields_is_refused(site, peer):
    sent = send_half(peer)
    for name in ("producerGroup", "tranStateTableOffset", "commitLogOffset", "commitOrRollback"):
        said = {key: value for key, value in end_ext(sent).items() if key != name}
        answer = peer.ask(37, **said)
        assert (answer.code, answer.remark) == (1, f"the custom field <{name}> is null")


@pytest.mark.parametrize(
    ("changes", "properties"),
    [
        ({}, half(DELAY="3")),
        ({}, half(TIMER_DELAY_SEC="3")),
        ({}, half(group=None, PGROUP=None)),
        ({"f": "8"}, half(TRAN_MSG=None)),
        ({"f": "12"}, ""),
        ({"topic": "%RETRY%g"}, half()),
    ],
)
def test_a_half_message_that_could_not_be_ended_is_refused(peer, changes, properties):
    answer = peer.send(b"x", properties=properties, **changes)
    assert (answer.code, bool(answer.remark)) == (13, True)
    assert peer.pull("T").code in {17, 19}


def test_what_says_by_its_flag_alone_that_it_is_half_is_half(site, peer):
    sent = peer.send(b"flagged", f="4", properties=half(TRAN_MSG=None))
    settle(site)
    assert peer.pull("T").code == 19
    end(peer, sent)
    assert bodies_of(peer.pull("T")) == [b"flagged"]


def test_a_half_message_of_a_batch_is_refused(peer):
    item = BatchItem(0, b"b", half().encode())
    assert peer.ask(320, encode_batch([BatchItem(0, b"a", b""), item]), **send_ext(m="true")).code == 13


def test_light_queues_get_the_message_when_it_is_committed(site, peer):
    both = send_half(peer, b"both", INNER_MULTI_DISPATCH="%LMQ%a,%LMQ%b")
    alone = send_half(peer, b"alone", topic="%LMQ%a", key="k2")
    settle(site)
    assert [peer.pull(queue).code for queue in ("T", "%LMQ%a", "%LMQ%b")] == [19, 19, 19]
    end(peer, both)
    end(peer, alone)
    assert bodies_of(peer.pull("T")) == [b"both"]
    assert bodies_of(peer.pull("%LMQ%a")) == [b"both", b"alone"]
    (record,) = records_of(peer.pull("%LMQ%b"))
    assert record.light_offset(b"%LMQ%b") == 0
    assert b"LMQ_LATER" not in record.properties


def test_a_message_into_the_topic_space_is_published_there_when_it_is_committed(site, peer):
    site.broker.bind_filter(b"a/+", b"%LMQ%here", hides_dollar=True)
    sent = send_half(peer, b"in", topic="LMQ_PARENT", LMQ_TOPIC="a/b")
    settle(site)
    assert peer.pull("%LMQ%here").code == 19
    end(peer, sent)
    (record,) = records_of(peer.pull("%LMQ%here"))
    assert (record.body, record.properties[b"LMQ_TOPIC"], record.properties[b"LMQ_PROTOCOL"]) == (
        b"in",
        b"a/b",
        b"rocketmq",
    )


def test_many_that_are_ended_together_come_each_once_and_from_their_own_hosts(site, peer):
    other = site.connect(bytes(range(20)))
    sent = []
    for sender, first in ((peer, 0), (other, 100), (peer, 200)):
        keys = range(first, first + 100)
        sender.give(b"".join(send_frame(b"%d" % key, opaque=key, properties=half(f"k{key}")) for key in keys))
        settle(site)
        sent += sender.take()
    assert len(sent) == 300
    peer.give(b"".join(request_frame(37, flag=2, **end_ext(one)) for one in reversed(sent)))
    settle(site)
    found = records_of(peer.pull("T", maxMsgNums=1000))
    assert sorted(int(record.body) for record in found) == list(range(300))
    assert all((record.born_host == bytes(range(20))) == (int(record.body) // 100 == 1) for record in found)
    assert site.broker.metrics.transactions.commits == 300


def test_while_the_disk_is_low_no_transaction_ends_and_none_is_asked_about(site, peer):
    beat(peer, "p")
    sent = send_half(peer)
    site.set_free(0)
    answer = end(peer, sent)
    assert (answer.code, answer.remark.startswith("[REJECTREQUEST]")) == (2, True)
    wait(site, TIMEOUT_MS)
    assert checks(peer) == []
    site.set_free(1 << 40)
    wait(site, 0)
    assert len(checks(peer)) == 1
    assert end(peer, sent).code == 0


def test_a_user_that_may_not_send_there_cannot_commit(tmp_path, engine_maker):
    users = {"reader": UserSettings(secret="s" * 12, may_publish=False)}
    site = DoorSite(tmp_path / "d", users=users, make_engine=engine_maker)
    sent = send_half(site.connect())
    reader = site.connect()
    reader.give(signed(request_frame(37, **end_ext(sent)), AccessKeys("reader", "s" * 12)))
    settle(site)
    (answer,) = reader.take()
    assert answer.code == 16
    site.close()


@given(st.binary(max_size=200))
def test_any_properties_are_a_half_message_or_none(properties):
    half_message = read_half(properties)
    assert half_message is None or half_message.topic
