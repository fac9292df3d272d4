from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from gateway.rocketmq.transactions.half import read_half
from gateway.settings import RocketmqSettings, UserSettings
from lmq.remoting.commands import Command
from lmq.remoting.message_codec import BatchItem, decode_stored, encode_batch
from lmq.remoting.signature import AccessKeys
from tests.support.rocketmq import request_frame, send_ext, send_frame, signed
from tests.support.rocketmq_door import NOW_MS, DoorSite, Peer, bodies_of, records_of

COMMIT, ROLLBACK, UNKNOWN = 8, 12, 0
TIMEOUT_MS, INTERVAL_MS = 6_000, 30_000
SEGMENT_BYTES = 64 * 1024
AGE_MS = 1_000 * 3_600_000


def half(key: str = "k", group: str = "p", **said: object) -> str:
    own = {"UNIQ_KEY": key, "TRAN_MSG": "true", "PGROUP": group, **said}
    return "".join(f"{name}\x01{value}\x02" for name, value in own.items() if value is not None)


def send_half(
    peer: Peer, body: bytes = b"paid", topic: str = "T", key: str = "k", *, e: str = "0", **said: object
) -> Command:
    settle(peer.site)
    sent = peer.send(body, topic=topic, e=e, f="4", properties=half(key, **said))
    assert sent.code == 0, sent.remark
    return sent


def end_ext(sent: Command, how: int = COMMIT, **changes: object) -> dict[str, object]:
    return {
        "producerGroup": "p",
        "tranStateTableOffset": sent.ext["queueOffset"],
        "commitLogOffset": int(sent.ext["msgId"][16:], 16),
        "commitOrRollback": how,
        "fromTransactionCheck": "false",
        "msgId": sent.ext["transactionId"],
        "transactionId": sent.ext["transactionId"],
        **changes,
    }


def end(peer: Peer, sent: Command, how: int = COMMIT, **changes: object) -> Command:
    peer.give(request_frame(37, opaque=77, **end_ext(sent, how, **changes)))
    settle(peer.site)
    (answer,) = [command for command in peer.take() if command.is_response]
    assert answer.opaque == 77
    return answer


def settle(site: DoorSite) -> None:
    for _ in range(64):
        site.turn()
        if not site.broker.has_work:
            return
    raise AssertionError("the gateway finds no rest")


def wait(site: DoorSite, ms: int) -> None:
    site.now_ms += ms
    settle(site)


def beat(peer: Peer, *groups: str) -> None:
    said = {"clientID": "c", "producerDataSet": [{"groupName": group} for group in groups], "consumerDataSet": []}
    assert peer.ask(34, json.dumps(said).encode()).code == 0


def checks(peer: Peer) -> list[Command]:
    return [command for command in peer.take() if command.code == 39 and not command.is_response]


def killed(folder: Path, made: Path, **settings: object) -> DoorSite:
    """Return a gateway on what one leaves that is killed now."""
    shutil.copytree(folder, made)
    return DoorSite(made, RocketmqSettings(**settings))


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
        ({"commitLogOffset": "x"}, "the custom field <commitLogOffset> is no integer"),
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


# Checks


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


# Restarts


@pytest.mark.parametrize("is_clean", [True, False])
def test_transactions_outlive_the_process(tmp_path, engine_maker, is_clean):
    site = DoorSite(tmp_path / "d", make_engine=engine_maker)
    peer = site.connect()
    committed, rolled_back, open_one = [send_half(peer, b"%d" % n, key=f"k{n}") for n in range(3)]
    end(peer, committed)
    end(peer, rolled_back, ROLLBACK)
    if is_clean:
        site.close()
        site = DoorSite(tmp_path / "d", make_engine=engine_maker)
    else:
        old, site = site, killed(tmp_path / "d", tmp_path / "e")
        old.close()
    peer = site.connect()
    beat(peer, "p")
    wait(site, TIMEOUT_MS)
    assert [check.ext["msgId"] for check in checks(peer)] == ["k2"]
    assert end(peer, committed).remark == end(peer, rolled_back).remark == "the transaction was ended before"
    assert end(peer, open_one).code == 0
    assert bodies_of(peer.pull("T")) == [b"0", b"2"]
    site.close()


def test_checks_are_counted_over_restarts(tmp_path, engine_maker):
    site = DoorSite(tmp_path / "d", RocketmqSettings(transaction_checks_max=2), make_engine=engine_maker)
    send_half(site.connect())
    wait(site, TIMEOUT_MS)
    now_ms = site.now_ms
    for number in range(2):
        old, site = (
            site,
            killed(tmp_path / ("d" if not number else "d0"), tmp_path / f"d{number}", transaction_checks_max=2),
        )
        old.close()
        site.now_ms = now_ms = now_ms + INTERVAL_MS
        settle(site)
    assert bodies_of(site.connect().pull("TRANS_CHECK_MAX_TIME_TOPIC")) == [b"paid"]
    site.close()


def test_an_end_that_comes_while_the_gateway_still_reads_is_done_after_it(tmp_path, engine_maker):
    site = DoorSite(tmp_path / "d", make_engine=engine_maker)
    peer = site.connect()
    sent = [send_half(peer, b"%d" % n, key=f"k{n}") for n in range(3)]
    end(peer, sent[0])
    site.close()
    site = DoorSite(tmp_path / "d", make_engine=engine_maker)
    peer = site.connect()
    peer.give(b"".join(request_frame(37, opaque=n, **end_ext(one)) for n, one in enumerate(sent)))
    settle(site)
    assert sorted(answer.opaque for answer in peer.take()) == [0, 1, 2]
    assert bodies_of(peer.pull("T")) == [b"0", b"1", b"2"]
    site.close()


def test_retention_leaves_what_is_pending_and_lets_go_of_what_is_done(tmp_path, engine_maker):
    site = DoorSite(tmp_path / "d", make_engine=engine_maker)
    peer = site.connect()
    done, waiting = send_half(peer, key="k1"), send_half(peer, key="k2")
    end(peer, done)
    assert dict(site.door.transactions.positions()) == {
        site.broker.find_queue(b"RMQ_SYS_TRANS_HALF_TOPIC/0"): 1,
        site.broker.find_queue(b"RMQ_SYS_TRANS_OP_HALF_TOPIC/0"): 0,
    }
    end(peer, waiting)
    assert sorted(dict(site.door.transactions.positions()).values()) == [2, 2]
    site.close()


def fill(peer: Peer, count: int) -> None:
    """Fill some segments of the log with messages that nobody needs, in a topic of their own."""
    for _ in range(count):
        assert peer.send(b"x" * 16_384, topic="other").code == 0


def retire(site: DoorSite) -> None:
    """Let retention take all that is needed by nobody: by its age, all is due but the newest segment."""
    for _ in range(3):  # what is given back in the middle of the log takes more than one round
        for _ in range(20):
            site.store.prepare()
        site.broker.retire(site.now_ms + AGE_MS)
        settle(site)


def view(peer: Peer, sent: Command) -> int:
    """Return the code that asking for a half message by its place gives."""
    return peer.ask(33, topic="T", offset=end_ext(sent)["commitLogOffset"]).code


@pytest.mark.parametrize("how", [COMMIT, ROLLBACK])
def test_segments_stay_while_a_half_message_in_them_is_pending_and_go_after_its_end(tmp_path, engine_maker, how):
    site = DoorSite(tmp_path / "d", segment_bytes=SEGMENT_BYTES, make_engine=engine_maker)
    peer = site.connect()
    fill(peer, 8)
    before, waiting, after = (send_half(peer, key, key=key.decode()) for key in (b"before", b"waiting", b"after"))
    end(peer, before)
    end(peer, after)
    fill(peer, 16)
    retire(site)
    assert site.broker.min_offset(site.broker.find_queue(b"other/0")) > 0
    assert view(peer, waiting) == 0
    site.close()
    site = DoorSite(tmp_path / "d", segment_bytes=SEGMENT_BYTES, make_engine=engine_maker)
    peer = site.connect()
    beat(peer, "p")
    settle(site)
    retire(site)
    wait(site, TIMEOUT_MS)
    (check,) = checks(peer)
    assert (check.ext["msgId"], decode_stored(bytes(check.body)).body) == ("waiting", b"waiting")
    assert end(peer, after).remark == "the transaction was ended before"
    assert end(peer, waiting, how).remark is None
    assert bodies_of(peer.pull("T", 2)) == ([b"waiting"] if how == COMMIT else [])
    fill(peer, 8)
    retire(site)
    assert view(peer, waiting) != 0
    assert site.store.log_bytes() <= 2 * SEGMENT_BYTES
    wait(site, 2 * INTERVAL_MS)
    assert checks(peer) == []
    site.close()


# Trouble


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
