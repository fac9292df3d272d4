"""What is wrong is answered with its code and a remark that says what, and costs nobody else anything."""

from __future__ import annotations

import itertools

import pytest

from gateway.rocketmq.filters.sql_syntax import DEPTH_MAX
from tests.support.rocketmq import send_frame
from tests.support.rocketmq_door import NOW_MS, bodies_of
from tests.support.rocketmq_pop import ask_pop, pop

pytestmark = pytest.mark.here(reason="the answers are the same, whatever the engine")

PULL = {
    "consumerGroup": "g", "topic": "T", "queueId": 0, "queueOffset": 0, "maxMsgNums": 1, "sysFlag": 4,
    "commitOffset": 0, "suspendTimeoutMillis": 0, "subVersion": 0, "subscription": "*",
}  # fmt: skip
QUERY = {"topic": "T", "key": "k", "maxNum": 1, "beginTimestamp": 0, "endTimestamp": 1}


def by_sql(text):
    return 11, {**PULL, "subscription": text, "expressionType": "SQL92"}


def without(fields, name):
    return {key: value for key, value in fields.items() if key != name}


@pytest.fixture
def filled(peer):
    for number in range(3):
        assert peer.send(b"m%d" % number, e="0").code == 0
    return peer


@pytest.mark.parametrize(
    ("asked", "code", "remark"),
    [
        ((4_711, {}), 3, "request type 4711 not supported"),
        ((200_070, {}), 3, "request type 200070 not supported"),
        ((11, without(PULL, "queueOffset")), 1, "the custom field <queueOffset> is null"),
        ((11, {**PULL, "queueId": "x"}), 1, "the custom field <queueId> is not an integer"),
        ((11, {**PULL, "queueOffset": 2**70}), 1, "the custom field <queueOffset> is not an integer"),
        ((12, {**QUERY, "maxNum": "many"}), 1, "the custom field <maxNum> is not an integer"),
        ((15, {"consumerGroup": "g"}), 1, "the custom field <topic> is null"),
        ((11, {**PULL, "queueId": 99}), 29, "queueId[99] is illegal"),
        ((30, {"topic": "T", "queueId": 99}), 29, "queueId[99] is illegal"),
        ((11, {**PULL, "topic": "nowhere"}), 17, "nowhere"),
        ((33, {"offset": 12}), 1, "can not find message by the offset, 12"),
        ((11, {**PULL, "queueOffset": -1}), 21, "OFFSET_TOO_SMALL"),
        ((11, {**PULL, "queueOffset": 4}), 21, "OFFSET_OVERFLOW_BADLY"),
        ((11, {**PULL, "queueOffset": 2**60}), 21, "OFFSET_OVERFLOW_BADLY"),
        (by_sql("(" * (DEPTH_MAX + 1) + "a = 1" + ")" * (DEPTH_MAX + 1)), 23, f"nested more than {DEPTH_MAX} deep"),
        (by_sql("(" * 5_000 + "a = 1" + ")" * 5_000), 23, "more than 8192 characters"),
        (by_sql("a LIKE '%" + "a%" * 1_000 + "'"), 23, "unexpected a name 'LIKE'"),
        (by_sql("a = "), 23, "parse the consumer's subscription failed"),
    ],
)
def test_a_request_that_is_wrong_is_answered_in_words(filled, asked, code, remark):
    number, fields = asked
    answer = filled.ask(number, **fields)
    assert (answer.code, remark in answer.remark) == (code, True), answer.remark
    assert len(bodies_of(filled.pull("T"))) == 3


def test_a_bomb_of_json_is_no_object(filled):
    for body in (b"[" * 200_000, b'{"a":' * 100_000, b"{}}", b"\xff", b"7"):
        for code in (34, 41, 42, 46, 200, 400, 401, 200_151):
            answer = filled.ask(code, body)
            assert (answer.code, answer.remark) == (1, "the body is not a JSON object")


@pytest.mark.parametrize(
    ("body", "properties", "remark"),
    [
        (b"x" * ((4 << 20) + 1), "", "the message body exceeds the maximum size"),
        (b"x", "A\x01" + "x" * 33_000 + "\x02", "the message properties exceed the maximum length"),
    ],
)
def test_what_is_too_large_is_not_stored(filled, body, properties, remark):
    answer = filled.send(body, e="0", properties=properties)
    assert (answer.code, answer.remark) == (13, remark)
    assert filled.ask(30, topic="T", queueId=0).ext["offset"] == "3"


def test_receipts_that_are_forged_or_stale_finish_nothing(site, filled):
    taken = pop(filled, maxMsgNums=1, invisibleTime=5_000)[0]

    def ack(receipt, offset):
        fields = {"consumerGroup": "g", "topic": "T", "queueId": 0, "offset": offset, "extraInfo": receipt}
        answer = filled.ask(200_051, **fields)
        return answer.code, answer.remark

    assert ack("rubbish", 0) == (1, "getBrokerName fail, extraInfoStrs length 1")
    assert ack(taken.receipt, 77) == (208, "offset is illegal, key:T@0, commit:77, store:0~3")
    forged = taken.receipt.split(" ")
    forged[1] = str(int(forged[1]) - 1)  # of another taking
    assert ack(" ".join(forged), 0)[0] == 0  # as an official broker: nobody waits for what is not there
    site.now_ms += 5_001
    again = pop(filled, maxMsgNums=1)[0]
    assert (again.body, again.attempts) == (b"m0", 1)
    assert ack(taken.receipt, 0)[0] == 0  # stale
    site.now_ms += 60_001
    assert pop(filled, maxMsgNums=1)[0].body == b"m0"


@pytest.mark.parametrize("off_ms", [-(10**10), -3_600_000, 3_600_000, 10**10])
def test_clocks_of_clients_that_are_off_hide_nothing(site, filled, off_ms):
    other = site.connect()
    for peer, born_ms in ((filled, site.now_ms + off_ms), (other, site.now_ms)):
        assert len(pop(peer, bornTime=born_ms, maxMsgNums=1)) == 1
    assert filled.send(b"then", e="0", g=str(NOW_MS + off_ms)).code == 0
    assert b"then" in bodies_of(site.connect().pull("T"))
    late = ask_pop(filled, bornTime=site.now_ms + off_ms - 2_000, pollTime=1_000)  # it was given up by its client
    assert (late.code, late.remark) == (210, "pop message is timeout too much")


@pytest.mark.at_once(reason="counts what one turn hands on")
def test_very_many_of_one_second_come_a_bounded_number_a_turn_and_none_is_lost(site, peer):
    due = f"TIMER_DELIVER_MS\x01{NOW_MS + 5_000}\x02"
    peer.send(b"first", e="0")
    for first in range(0, 3_000, 500):
        peer.give(b"".join(send_frame(b"%d" % i, e="0", properties=due) for i in range(first, first + 500)))
        site.turn()
    assert {answer.code for answer in peer.take()} == {0}
    site.now_ms += 5_000
    counts = [1]
    while counts[-1] < 3_001:
        site.broker.request_run(site.broker.timer)
        site.turn()
        counts.append(int(peer.ask(30, topic="T", queueId=0).ext["offset"]))
        assert len(counts) < 100
    assert max(after - before for before, after in itertools.pairwise(counts)) <= 2_100
    bodies = []
    for _ in range(100):
        bodies += bodies_of(peer.pull("T", 1 + len(bodies), maxMsgNums=1_024))
        if len(bodies) == 3_000:
            break
    assert sorted(bodies, key=int) == [b"%d" % i for i in range(3_000)]
