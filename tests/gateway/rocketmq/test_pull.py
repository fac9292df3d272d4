from __future__ import annotations

import json

import pytest

from gateway.rocketmq.pull import BYTES_MAX
from lmq.remoting.commands import HEADER_BINARY, HEADER_JSON
from tests.support.rocketmq import request_frame, send_frame
from tests.support.rocketmq_door import SUBSCRIBED, SUSPENDED, bodies_of, records_of

HELD = SUBSCRIBED | SUSPENDED
LONGS = {"suggestWhichBrokerId", "nextBeginOffset", "minOffset", "maxOffset"}


def fill(peer, count: int, **changes: object) -> None:
    for i in range(count):
        assert peer.send(b"m%d" % i, **changes).code == 0


def where(answer) -> tuple[int, int, int, int]:
    assert answer.ext.keys() >= LONGS
    return (answer.code, *(int(answer.ext[name]) for name in ("nextBeginOffset", "minOffset", "maxOffset")))


def test_a_pull_gives_records_as_stored_from_its_offset_on(site, peer):
    fill(peer, 5)
    answer = peer.pull("T", 2, maxMsgNums=2)
    assert where(answer) == (0, 4, 0, 5)
    assert answer.remark == "FOUND"
    log = (site.store.data_dir / "commitlog" / f"{0:020}").read_bytes()
    first = records_of(answer)[0].physical_offset
    assert log[first : first + len(answer.body)] == bytes(answer.body)


@pytest.mark.parametrize("header_type", [HEADER_JSON, HEADER_BINARY], ids=["json", "binary"])
@pytest.mark.parametrize(("offset", "code"), [(0, 0), (40, 0), (41, 19), (99, 21)])
def test_clients_are_told_to_stay_with_this_broker_however_far_back_they_read(site, peer, header_type, offset, code):
    fill(peer, 41)
    elsewhere = {"groupName": "g", "brokerId": 0, "whichBrokerWhenConsumeSlowly": 1}
    assert peer.ask(200, json.dumps(elsewhere).encode()).code == 0
    site.open_queues()
    ext = {"consumerGroup": "g", "topic": "T", "queueId": 0, "queueOffset": offset, "maxMsgNums": 1, "sysFlag": 4}
    answer = None
    while answer is None or answer.code == 20:  # on its way
        peer.give(request_frame(11, header_type=header_type, **ext, commitOffset=0, subscription="*"))
        site.settle()
        (answer,) = peer.take()
    assert (answer.code, answer.ext["suggestWhichBrokerId"]) == (code, "0")


@pytest.mark.parametrize(("offset", "code", "next_offset"), [(3, 19, 3), (4, 21, 3), (99, 21, 3)])
def test_a_pull_at_or_after_the_end_says_where_to_go_on(peer, offset, code, next_offset):
    fill(peer, 3)
    assert where(peer.pull("T", offset)) == (code, next_offset, 0, 3)


@pytest.mark.parametrize(("offset", "code"), [(0, 19), (7, 21)])
def test_a_pull_of_an_empty_queue_begins_at_0(peer, offset, code):
    fill(peer, 1)
    assert where(peer.pull("T", offset, queueId=1)) == (code, 0, 0, 0)
    assert where(peer.pull("%LMQ%never", offset)) == (code, 0, 0, 0)


def test_a_pull_of_an_unknown_light_queue_does_not_make_it(site, peer):
    peer.pull("%LMQ%never")
    assert site.broker.find_queue(b"%LMQ%never") == -1


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"topic": "Unknown"}, 17),
        ({"queueId": 4}, 29),
        ({"queueId": -1}, 29),
        ({"maxMsgNums": "x"}, 1),
        ({"sysFlag": "x"}, 1),
        ({"sysFlag": 0}, 24),
        ({"expressionType": "SQL92"}, 23),
        ({"expressionType": "XPATH"}, 1),
    ],
)
def test_a_pull_that_cannot_be_is_refused_with_its_code(peer, changes, code):
    changes = dict(changes)
    fill(peer, 1)
    topic = changes.pop("topic", "T")
    answer = peer.pull(topic, **changes)
    assert answer.code == code
    assert answer.remark


def test_answers_are_bounded_in_count_and_bytes_but_never_empty(peer):
    for _ in range(3):
        peer.send(b"x" * 200_000)
    peer.send(b"x" * 300_000)
    assert len(bodies_of(peer.pull("T"))) == 1
    assert bodies_of(peer.pull("T", 3)) == [b"x" * 300_000]
    assert bodies_of(peer.pull("T", 2)) == [b"x" * 200_000]
    assert len(peer.pull("T", 0, maxMsgNums=3).body) <= BYTES_MAX
    assert len(bodies_of(peer.pull("T", 0, maxMsgBytes=1))) == 1
    assert len(bodies_of(peer.pull("T", 0, maxMsgNums=-5))) == 1


def test_binary_headers_are_answered_in_kind(site, peer):
    fill(peer, 1)
    ext = {"consumerGroup": "g", "topic": "T", "queueId": 0, "queueOffset": 0, "maxMsgNums": 32, "sysFlag": 4}
    peer.give(request_frame(11, opaque=-4, header_type=HEADER_BINARY, **ext, commitOffset=0, subscription="*"))
    site.settle()
    (answer,) = peer.take()
    assert (answer.header_type, answer.opaque, answer.code) == (HEADER_BINARY, -4, 0)
    assert bodies_of(answer) == [b"m0"]
    assert site.door.metrics.messages_out == 1
    assert site.door.metrics.bytes_out == 2


def test_lite_pulls_are_pulls(peer):
    fill(peer, 1)
    ext = {"consumerGroup": "g", "topic": "T", "queueId": 0, "queueOffset": 0, "maxMsgNums": 32, "sysFlag": 0x14}
    assert bodies_of(peer.ask(361, **ext, commitOffset=0, subscription="*")) == [b"m0"]


def test_only_wanted_tags_are_given_and_the_offset_moves_past_the_others(peer):
    for tag in ("a", "b", "", "a", "c"):
        peer.send(tag.encode(), properties=f"TAGS\x01{tag}\x02" if tag else "")
    answer = peer.pull("T", subscription="a || c")
    assert bodies_of(answer) == [b"a", b"a", b"c"]
    assert where(answer)[1] == 5
    assert where(peer.pull("T", subscription="a", maxMsgNums=1)) == (0, 1, 0, 5)
    assert where(peer.pull("T", subscription="nobody")) == (20, 5, 0, 5)


WIDE = [f"%LMQ%device-{i:03}" for i in range(100)]


def test_a_record_says_its_number_in_the_light_queue_that_was_asked_for_however_long_its_list_is(peer):
    list_of_all = f"INNER_MULTI_DISPATCH\x01{','.join(WIDE)}\x02"
    fill(peer, 2, properties="INNER_MULTI_DISPATCH\x01%LMQ%device-007\x02")
    for tag in "abab":
        peer.send(tag.encode() * 300, properties=f"{list_of_all}TAGS\x01{tag}\x02unit\x01C\x02")
    name = WIDE[7].encode()
    found = records_of(peer.pull(WIDE[7], 1, subscription="*"))
    assert [record.light_offset(name) for record in found] == [1, 2, 3, 4, 5]
    found = records_of(peer.pull(WIDE[7], 0, subscription="b"))
    assert [record.light_offset(name) for record in found] == [3, 5]
    assert [record.body for record in found] == [b"b" * 300] * 2
    assert [record.light_offset(WIDE[8].encode()) for record in records_of(peer.pull(WIDE[8], 1))] == [1, 2, 3]
    stored = records_of(peer.pull("T", 3))
    kept = stored[0].properties
    del kept[b"LMQ_SET"], kept[b"__CRC32#"]
    assert found[0].properties == kept | {b"INNER_MULTI_DISPATCH": name, b"INNER_MULTI_QUEUE_OFFSET": b"3"}
    assert (found[0].physical_offset, found[0].queue_offset) == (stored[0].physical_offset, 3)


def test_without_a_filter_of_its_own_a_pull_takes_the_groups(peer):
    fill(peer, 1, properties="TAGS\x01a\x02")
    subscription = {"topic": "T", "subString": "b", "subVersion": 7}
    group = {"groupName": "g", "subscriptionDataSet": [subscription]}
    peer.ask(34, json.dumps({"clientID": "c", "consumerDataSet": [group]}).encode())
    peer.take()
    assert peer.pull("T", sysFlag=0, subVersion=7).code == 20
    assert peer.pull("T", sysFlag=0, subVersion=8).code == 25


def test_a_pull_commits_the_offset_that_it_brings(site, peer):
    fill(peer, 1)
    peer.pull("T", sysFlag=SUBSCRIBED | 1, commitOffset=1)
    assert site.broker.consumer_offsets.get(b"g", b"T/0") == 1
    peer.pull("T", sysFlag=SUBSCRIBED | 1, commitOffset=-1)
    assert site.broker.consumer_offsets.get(b"g", b"T/0") == 1


# Held pulls


def test_a_held_pull_is_answered_once_when_a_message_comes(site, peer):
    fill(peer, 1)
    other = site.connect()
    other.start_pull("T", 1, sysFlag=HELD)
    assert other.take() == []
    peer.give(send_frame(b"new") + send_frame(b"newer"))
    site.turn()
    assert len(peer.take()) == 2
    (answer,) = other.take()
    assert bodies_of(answer) == [b"new", b"newer"]
    fill(peer, 1)
    assert other.take() == []
    assert other.handler.held == {}


def test_a_held_pull_of_a_light_queue_waits_for_its_first_message(site, peer):
    other = site.connect()
    other.start_pull("%LMQ%a", sysFlag=HELD)
    other.start_pull("%LMQ%a", sysFlag=HELD, subscription="wanted")
    site.turn()
    assert site.broker.find_queue(b"%LMQ%a") == -1  # pulls make none
    peer.send(b"x", properties="INNER_MULTI_DISPATCH\x01%LMQ%a\x02")
    (answer,) = other.take()
    assert bodies_of(answer) == [b"x"]
    peer.send(b"y", properties="TAGS\x01wanted\x02INNER_MULTI_DISPATCH\x01%LMQ%a\x02")
    (answer,) = other.take()
    assert bodies_of(answer) == [b"y"]


def test_a_held_pull_of_a_queue_that_was_never_made_is_answered_when_its_time_is_over(peer):
    peer.start_pull("%LMQ%a", sysFlag=HELD, suspendTimeoutMillis=5000)
    assert peer.take() == []
    peer.handler.on_timer(peer.handler.next_deadline_ms())
    (answer,) = peer.take()
    assert where(answer) == (19, 0, 0, 0)
    assert peer.handler.held == {}


def test_a_held_pull_is_answered_19_when_its_time_is_over(site, peer):
    fill(peer, 1)
    peer.start_pull("T", 1, sysFlag=HELD, suspendTimeoutMillis=5000)
    site.settle()
    deadline = peer.handler.next_deadline_ms()
    assert deadline == site.now_ms + 5000
    peer.handler.on_timer(deadline - 1)
    assert peer.take() == []
    peer.handler.on_timer(deadline)
    (answer,) = peer.take()
    assert where(answer) == (19, 1, 0, 1)
    peer.handler.on_timer(deadline + 1)
    assert peer.take() == []


def test_a_held_pull_waits_on_when_its_filter_wants_none_of_what_came(site, peer):
    fill(peer, 1)
    other = site.connect()
    other.start_pull("T", 1, sysFlag=HELD, subscription="a")
    fill(peer, 2)
    assert other.take() == []
    peer.send(b"wanted", properties="TAGS\x01a\x02")
    (answer,) = other.take()
    assert bodies_of(answer) == [b"wanted"]
    assert where(answer) == (0, 4, 0, 4)


def test_a_held_pull_whose_filter_wanted_nothing_says_at_the_end_how_far_it_looked(site, peer):
    fill(peer, 1)
    other = site.connect()
    other.start_pull("T", 1, sysFlag=HELD, subscription="a", suspendTimeoutMillis=100)
    fill(peer, 2)
    other.handler.on_timer(site.now_ms + 100)
    (answer,) = other.take()
    assert where(answer) == (19, 3, 0, 3)


@pytest.mark.here(reason="a pull that can be held waits for what is on its way")
def test_a_pull_is_not_held_when_it_can_be_answered(peer):
    fill(peer, 2)
    assert peer.pull("T", sysFlag=HELD).code == 0
    assert peer.pull("T", 9, sysFlag=HELD).code == 21
    assert peer.pull("T", subscription="a", sysFlag=HELD).code == 20


def test_a_lost_connection_takes_its_held_pulls_along(site, peer):
    fill(peer, 1)
    other = site.connect()
    other.start_pull("T", 1, sysFlag=HELD)
    other.start_pull("%LMQ%a", sysFlag=HELD)
    other.close()
    fill(peer, 1, properties="INNER_MULTI_DISPATCH\x01%LMQ%a\x02")
    assert other.take() == []


def test_pulls_of_many_clients_are_all_woken(site, peer):
    fill(peer, 1)
    others = [site.connect() for _ in range(20)]
    for other in others:
        other.start_pull("T", 1, sysFlag=HELD)
    fill(peer, 1)
    assert [len(other.take()) for other in others] == [1] * 20


def test_a_client_that_does_not_read_gets_its_answers_when_it_does(site, peer):
    fill(peer, 3)
    peer.transport.is_writable = False
    peer.start_pull("T", 0)
    peer.start_pull("T", 3, sysFlag=HELD)
    peer.start_pull("%LMQ%never", 0)
    site.turn()
    peer.handler.on_timer(site.now_ms + 1)
    assert peer.take() == []
    assert not peer.transport.is_reading
    peer.transport.is_writable = True
    peer.handler.on_writable(site.now_ms)
    site.turn()
    assert sorted(answer.code for answer in peer.take()) == [0, 19]
    assert peer.transport.is_reading
    assert len(peer.handler.held) == 1


@pytest.mark.parametrize("group", ["", "a b", "a.b", "x" * 256])
def test_nobody_pulls_or_commits_as_a_group_that_there_cannot_be(peer, group):
    fill(peer, 1)
    assert peer.pull("T", consumerGroup=group).code == 26
    assert peer.ask(15, consumerGroup=group, topic="T", queueId=0, commitOffset=1).code == 26
