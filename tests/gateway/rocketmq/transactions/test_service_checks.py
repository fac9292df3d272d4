"""Producers are asked about transactions that nobody ends."""

from __future__ import annotations

from gateway.settings.models import RocketmqSettings
from lmq.remoting.message_codec import decode_stored
from tests.support.rocketmq_door import DoorSite, bodies_of, records_of
from tests.support.rocketmq_transactions import (
    INTERVAL_MS,
    TIMEOUT_MS,
    UNKNOWN,
    beat,
    checks,
    end,
    send_half,
    settle,
    wait,
)


def test_a_producer_of_the_group_is_asked_after_the_timeout_and_then_at_intervals(site, peer):
    beat(peer, "other", "p")
    sent = send_half(peer, e="2", colour="red")
    wait(site, TIMEOUT_MS - 1)
    assert checks(peer) == []
    wait(site, 1)
    (check,) = checks(peer)
    assert check.is_one_way
    assert check.ext == {
        "topic": "T",
        "tranStateTableOffset": "0",
        "commitLogOffset": str(int(sent.ext["msgId"][16:], 16)),
        "msgId": "k",
        "transactionId": "k",
        "offsetMsgId": sent.ext["msgId"],
        "bname": "lmq",
    }
    record = decode_stored(bytes(check.body))
    assert (record.topic, record.queue_id, record.body, record.sys_flag & 0xC) == (b"T", 2, b"paid", 0)
    assert record.properties[b"PGROUP"] == b"p"
    assert record.properties[b"colour"] == b"red"
    assert f"{record.store_host.hex().upper()}{record.physical_offset:016X}" == sent.ext["msgId"]
    wait(site, INTERVAL_MS - 1)
    assert checks(peer) == []
    wait(site, 1)
    assert len(checks(peer)) == 1
    assert end(peer, sent, fromTransactionCheck="true").code == 0
    assert bodies_of(peer.pull("T", queueId=2)) == [b"paid"]
    wait(site, 2 * INTERVAL_MS)
    assert checks(peer) == []


def test_unknown_leaves_a_transaction_as_it_is(site, peer):
    beat(peer, "p")
    sent = send_half(peer)
    assert end(peer, sent, UNKNOWN).code == 0
    wait(site, TIMEOUT_MS)
    assert len(checks(peer)) == 1


def test_another_producer_of_the_group_is_asked_when_the_first_is_gone(site, peer):
    beat(peer, "p")
    send_half(peer)
    peer.close()
    other, stranger = site.connect(), site.connect()
    beat(other, "p")
    beat(stranger, "q")
    wait(site, TIMEOUT_MS)
    assert [len(checks(one)) for one in (peer, other, stranger)] == [0, 1, 0]


def test_producers_are_asked_in_turn_and_one_that_left_its_group_is_not(site, peer):
    other = site.connect()
    beat(peer, "p")
    beat(other, "p")
    for number in range(4):
        send_half(peer, key=f"k{number}")
    wait(site, TIMEOUT_MS)
    assert [len(checks(one)) for one in (peer, other)] == [2, 2]
    assert peer.ask(35, clientID="c", producerGroup="p").code == 0
    wait(site, INTERVAL_MS)
    assert [len(checks(one)) for one in (peer, other)] == [0, 4]


def test_a_message_is_left_alone_for_as_long_as_it_says(site, peer):
    beat(peer, "p")
    send_half(peer, key="k1", CHECK_IMMUNITY_TIME_IN_SECONDS="60")
    send_half(peer, key="k2")
    wait(site, TIMEOUT_MS)
    assert [check.ext["msgId"] for check in checks(peer)] == ["k2"]
    wait(site, INTERVAL_MS)
    assert [check.ext["msgId"] for check in checks(peer)] == ["k2"]
    wait(site, INTERVAL_MS)
    assert sorted(check.ext["msgId"] for check in checks(peer)) == ["k1", "k2"]


def test_what_nobody_ends_is_given_up_and_operators_can_read_it(tmp_path, engine_maker):
    site = DoorSite(tmp_path / "d", RocketmqSettings(transaction_checks_max=3), make_engine=engine_maker)
    peer = site.connect()
    beat(peer, "p")
    sent = send_half(peer, e="1")
    late = send_half(peer, b"late", key="k2", CHECK_IMMUNITY_TIME_IN_SECONDS="50")
    wait(site, TIMEOUT_MS)
    for _ in range(6):
        wait(site, INTERVAL_MS)
    asked = [check.ext["msgId"] for check in checks(peer)]
    assert (asked.count("k"), asked.count("k2")) == (3, 3)
    found = records_of(peer.pull("TRANS_CHECK_MAX_TIME_TOPIC"))
    assert [record.body for record in found] == [b"paid", b"late"]
    assert (found[0].properties[b"REAL_TOPIC"], found[0].properties[b"REAL_QID"]) == (b"T", b"1")
    assert [end(peer, one).remark for one in (sent, late)] == ["the transaction was ended before"] * 2
    assert peer.pull("T", queueId=1).code in {17, 19}
    metrics = site.broker.metrics.transactions
    assert (metrics.given_up, metrics.pending, metrics.checks) == (2, 0, 6)
    site.close()


def test_a_producer_that_does_not_read_is_not_buried_and_others_are_asked(site, peer):
    other = site.connect()
    beat(peer, "p")
    peer.handler.transport.is_writable = False
    for number in range(3):
        send_half(other, key=f"k{number}")
    wait(site, TIMEOUT_MS)
    assert checks(peer) == []
    peer.handler.transport.is_writable = True
    wait(site, 250)
    assert len(checks(peer)) == 3


def test_a_clock_that_is_set_back_holds_no_check_up(site, peer):
    beat(peer, "p")
    send_half(peer)
    settle(site)
    site.now_ms -= 3_600_000
    settle(site)
    wait(site, TIMEOUT_MS)
    assert len(checks(peer)) == 1
    wait(site, INTERVAL_MS)
    assert len(checks(peer)) == 1
