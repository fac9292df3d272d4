from __future__ import annotations

import pytest

from gateway.rocketmq.errors import CommandRefusedError
from gateway.rocketmq.message_query import REPEATS_MS, STEP_COUNT, TIME_MAX_MS
from lmq.remoting.commands import Command
from tests.support.rocketmq import request_frame, send_frame
from tests.support.rocketmq_door import NOW_MS, bodies_of

FOR_EVER = 2**63 - 1


def start(peer, key: str = "k", topic: str = "T", begin: int = 0, end: int = FOR_EVER, **more: object) -> None:
    ext = {"topic": topic, "key": key, "maxNum": 32, "beginTimestamp": begin, "endTimestamp": end}
    peer.give(request_frame(12, opaque=5, **(ext | more)))


def query(site, peer, *args: object, **more: object):
    """Ask for messages by key, and return the answer, however many turns it takes."""
    start(peer, *args, **more)
    for _ in range(100):
        answers = peer.take()
        if answers:
            (answer,) = answers
            return answer
        site.turn()
    raise AssertionError("no answer")


@pytest.fixture
def filled(site, peer):
    for number in range(6):
        site.now_ms = NOW_MS + number * 1000
        properties = f"KEYS\x01k other{number}\x02UNIQ_KEY\x01u{number}\x02TAGS\x01t{number % 2}\x02"
        peer.send(b"m%d" % number, e=str(number % 3), properties=properties)
    return peer


def test_messages_are_found_by_one_of_their_keys_the_newest_first(site, filled):
    answer = query(site, filled)
    assert answer.code == 0
    assert bodies_of(answer) == [b"m5", b"m4", b"m3", b"m2", b"m1", b"m0"]
    assert answer.ext["indexLastUpdateTimestamp"] == str(NOW_MS + 5000)
    assert bodies_of(query(site, filled, "other3")) == [b"m3"]
    assert bodies_of(query(site, filled, maxNum=2)) == [b"m5", b"m4"]


def test_messages_are_found_by_their_unique_key_and_their_tag(site, filled):
    assert bodies_of(query(site, filled, "u4", _UNIQUE_KEY_QUERY="true")) == [b"m4"]
    assert bodies_of(query(site, filled, "u4", indexType="U")) == [b"m4"]
    assert query(site, filled, "u4").code == 22
    assert bodies_of(query(site, filled, "t1", indexType="T")) == [b"m5", b"m3", b"m1"]


def test_only_messages_of_the_time_that_is_named_are_found(site, filled):
    assert bodies_of(query(site, filled, begin=NOW_MS + 1000, end=NOW_MS + 3000)) == [b"m3", b"m2", b"m1"]
    assert query(site, filled, begin=NOW_MS + 9000).code == 22
    assert query(site, filled, begin=5, end=4).code == 22


def test_what_is_not_there_is_not_found_and_part_of_a_key_is_none(site, filled):
    for key in ("", "ther1", "other", "k other1", "K"):
        answer = query(site, filled, key)
        assert (answer.code, bytes(answer.body)) == (22, b"")
    assert query(site, filled, topic="Unknown").code == 17
    assert query(site, filled, indexType="X").code == 29
    assert query(site, filled, topic="%LMQ%never").code == 22


def test_light_queues_are_looked_through_too(site, peer):
    peer.send(b"x", properties="KEYS\x01k\x02INNER_MULTI_DISPATCH\x01%LMQ%a\x02")
    assert bodies_of(query(site, peer, topic="%LMQ%a")) == [b"x"]


@pytest.mark.at_once(reason="counts the turns of a query")
def test_many_messages_are_looked_through_a_step_a_turn(site, peer):
    peer.send(b"first", properties="KEYS\x01k\x02")
    for _ in range(3 * STEP_COUNT // 512 + 3):
        peer.give(b"".join(send_frame(b"x") for _ in range(512)))
        site.turn()
    peer.take()
    start(peer)
    for _ in range(3):
        site.turn()
        assert peer.take() == []
    site.turn()
    (answer,) = peer.take()
    assert bodies_of(answer) == [b"first"]


@pytest.mark.at_once(reason="counts the turns of a query")
def test_what_a_query_read_is_not_read_again_for_another_key(site, peer):
    peer.send(b"first", properties="KEYS\x01k other\x02")
    for _ in range(6 * STEP_COUNT // 512):
        peer.give(b"".join(send_frame(b"x", properties="KEYS\x01some thing\x02") for _ in range(512)))
        site.turn()
    peer.take()
    peer.send(b"last", properties="KEYS\x01late\x02")
    assert _turns_of(site, peer, "k") == (b"first", 6)
    assert _turns_of(site, peer, "other") == (b"first", 1)
    assert _turns_of(site, peer, "late") == (b"last", 1)
    peer.send(b"newest", properties="KEYS\x01k\x02")
    assert bodies_of(query(site, peer, "k")) == [b"newest", b"first"]


def _turns_of(site, peer, key):
    start(peer, key)
    for turn in range(1, 20):
        site.turn()
        for answer in peer.take():
            return bodies_of(answer)[0], turn
    raise AssertionError("no answer")


@pytest.mark.here(reason="counts the turns of a query")
def test_a_query_that_takes_too_long_says_how_far_it_came(site, peer):
    peer.send(b"first", properties="KEYS\x01k\x02")
    for _ in range(2 * STEP_COUNT // 512):
        peer.give(b"".join(send_frame(b"x") for _ in range(512)))
        site.turn()
    peer.take()
    start(peer)
    site.now_ms += TIME_MAX_MS
    site.turn()
    site.turn()  # where the stretch of time was found in the first
    (answer,) = peer.take()
    assert answer.code == 2
    assert f"newest {STEP_COUNT + 1} messages" in answer.remark


def test_a_connection_has_few_queries_at_a_time_and_none_when_it_is_gone(site, filled):
    for _ in range(5):
        start(filled)
    assert [answer.code for answer in filled.take()] == [2]
    filled.close()
    site.turn()
    assert filled.take() == []
    assert site.door.queries._open == {}


def test_a_unique_key_is_looked_for_from_the_moment_on_that_is_named(site, filled):
    site.now_ms += 2 * REPEATS_MS
    filled.send(b"again", e="1", properties="UNIQ_KEY\x01u4\x02")
    site.now_ms += 1
    by_key = {"_UNIQUE_KEY_QUERY": "true", "begin": NOW_MS + 3_000}
    assert bodies_of(query(site, filled, "u4", **by_key)) == [b"again", b"m4"]  # one step reads all of so few
    assert bodies_of(query(site, filled, "u3", **by_key)) == [b"m3"]
    assert query(site, filled, "u2", **by_key).code == 22


def test_a_unique_key_is_found_at_once_however_much_came_later(site, peer):
    peer.send(b"first", properties="UNIQ_KEY\x01u\x02")
    for _ in range(2 * STEP_COUNT // 512):
        site.now_ms += REPEATS_MS
        peer.give(b"".join(send_frame(b"x") for _ in range(512)))
        site.turn()
    peer.take()
    start(peer, "u", begin=NOW_MS, _UNIQUE_KEY_QUERY="true")
    site.turn()
    (answer,) = peer.take()
    assert bodies_of(answer) == [b"first"]
    start(peer, "v", begin=NOW_MS, _UNIQUE_KEY_QUERY="true")
    for _ in range(2):
        site.turn()
    site.now_ms += TIME_MAX_MS
    site.turn()
    assert peer.take()[0].code == 22


class Stranger:
    """A client that may read nothing."""

    def write(self, data: bytes) -> None:
        raise AssertionError(data)

    def may_read(self, _queue: bytes) -> bool:
        return False


def test_what_may_not_be_read_is_not_found(site, filled):
    ext = {"topic": "T", "key": "k", "maxNum": "32", "beginTimestamp": "0", "endTimestamp": str(FOR_EVER)}
    with pytest.raises(CommandRefusedError) as caught:
        site.door.queries.query(Stranger(), 1, Command(12, ext=ext), site.now_ms)
    assert caught.value.code == 16


def test_queries_that_are_refused_do_not_count_as_under_way(site, filled):
    for _ in range(8):
        assert filled.ask(12, topic="Unknown", key="k", maxNum=1, beginTimestamp=0, endTimestamp=1).code == 17
        assert filled.ask(12, topic="T", key="k", maxNum=1, beginTimestamp="x", endTimestamp=1).code == 1
    assert query(site, filled, "other0").code == 0
