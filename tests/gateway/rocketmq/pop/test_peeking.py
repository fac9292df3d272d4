from __future__ import annotations

import pytest

from tests.support.rocketmq_door import bodies_of
from tests.support.rocketmq_pop import ack, change_invisible, pop


def fill(peer, count: int, **changes: object) -> None:
    for number in range(count):
        assert peer.send(b"m%d" % number, **changes).code == 0


def peek(peer, topic: str = "T", **changes: object):
    fields = {"consumerGroup": "g", "topic": topic, "queueId": -1, "maxMsgNums": 32}
    return peer.ask(200_052, **(fields | changes))


def test_what_would_be_taken_is_shown_and_stays(peer):
    fill(peer, 3)
    answer = peek(peer, maxMsgNums=2)
    assert (answer.code, answer.remark, answer.ext["restNum"]) == (0, "FOUND", "3")
    assert bodies_of(answer) == bodies_of(peek(peer, queueId=0, maxMsgNums=2)) == [b"m0", b"m1"]
    assert [message.body for message in pop(peer)] == [b"m0", b"m1", b"m2"]


def test_a_look_makes_no_group(site, peer):
    fill(peer, 1)
    peek(peer)
    assert site.broker.pop.find(b"T/0", b"rocketmq:g") is None


def test_what_others_have_is_not_shown_and_what_comes_again_is_first(site, peer):
    fill(peer, 4)
    messages = pop(peer, maxMsgNums=3)
    assert bodies_of(peek(peer)) == [b"m3"]
    change_invisible(peer, messages[1], 0)
    shown = bodies_of(peek(peer))
    assert shown[0] == b"m1"
    for message in (messages[0], messages[2], *pop(peer), *pop(peer)):
        ack(peer, message)
    site.turn()
    empty = peek(peer)
    assert (empty.code, empty.remark, empty.ext["restNum"], bytes(empty.body)) == (19, "NO_MESSAGE_IN_QUEUE", "0", b"")


def test_a_group_that_pulled_is_shown_what_comes_next(peer):
    fill(peer, 3)
    assert peer.ask(15, consumerGroup="g", topic="T", queueId=0, commitOffset=2).code == 0
    assert bodies_of(peek(peer)) == [b"m2"]


def test_all_queues_are_looked_at_or_one(peer):
    for queue_id in range(4):
        fill(peer, 1, e=str(queue_id))
    assert len(bodies_of(peek(peer))) == 4
    assert len(bodies_of(peek(peer, maxMsgNums=3))) == 3
    assert len(bodies_of(peek(peer, queueId=2))) == 1


def test_a_light_queue_is_looked_at_by_its_name(peer):
    fill(peer, 2, properties="INNER_MULTI_DISPATCH\x01%LMQ%a\x02")
    assert bodies_of(peek(peer, "%LMQ%a", queueId=0)) == [b"m0", b"m1"]


def test_an_answer_is_bounded_in_bytes(peer):
    for _ in range(4):
        peer.send(b"x" * 200_000)
    assert len(bodies_of(peek(peer))) <= 2


def test_what_is_not_there_yet_is_nothing(peer):
    peer.send(b"x")
    assert peek(peer, queueId=1).code == 19


@pytest.mark.parametrize(
    ("changes", "code"),
    [({"topic": "None"}, 17), ({"queueId": 9}, 29), ({"maxMsgNums": 33}, 29), ({"consumerGroup": ""}, 26)],
)
def test_what_there_is_not_is_refused(peer, changes, code):
    fill(peer, 1)
    assert peek(peer, **changes).code == code


def test_a_binary_header_cuts_the_code(peer):
    fill(peer, 1)
    assert peer.ask(200_052 & 0xFFFF, consumerGroup="g", topic="T", queueId=0, maxMsgNums=1).code == 0
    assert peer.ask(200_056).code == peer.ask(200_056 & 0xFFFF).code == 0
