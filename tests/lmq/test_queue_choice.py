from __future__ import annotations

import pytest

from lmq import NoPermissionError, queue_choice
from lmq.out_message import OutMessage
from lmq.queue_choice import FAULT_S, QueueChoice, select_by_hash
from lmq.queues import MessageQueue
from lmq.routes import Route

A, B = Route("a", "a:1", 2, 2), Route("b", "b:1", 1, 1)
PLAIN = OutMessage("T", b"x")


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(queue_choice.time, "monotonic", lambda: now[0])
    return now


def brokers(choice: QueueChoice, message: OutMessage = PLAIN, count: int = 6, failed: str = "") -> set[str]:
    return {choice.choose([A, B], message, failed)[0].broker_name for _ in range(count)}


def test_messages_go_round_all_queues_of_all_brokers():
    choice = QueueChoice()
    chosen = [choice.choose([A, B], PLAIN) for _ in range(6)]
    assert chosen == [(A, 0), (A, 1), (B, 0)] * 2


def test_a_wanted_queue_is_taken_on_each_broker_in_turn():
    choice = QueueChoice()
    chosen = [choice.choose([A, B], OutMessage("T", b"x", queue_id=0)) for _ in range(2)]
    assert chosen == [(A, 0), (B, 0)]


def test_a_broker_that_was_tried_in_vain_is_left_out_where_there_is_another():
    assert brokers(QueueChoice(), failed="a") == {"b"}
    assert QueueChoice().choose([A], PLAIN, "a")[0] is A


@pytest.mark.parametrize(("took_s", "rest_s"), [(0.1, 0), (0.6, 2), (2, 5), (4, 6), (FAULT_S, 10), (20, 30)])
def test_a_slow_broker_rests_the_longer_the_slower_it_was(clock, took_s, rest_s):
    choice = QueueChoice()
    choice.note("a", took_s)
    assert brokers(choice) == ({"b"} if rest_s else {"a", "b"})
    clock[0] += rest_s
    assert brokers(choice) == {"a", "b"}


def test_a_broker_that_is_quick_again_rests_no_more(clock):
    choice = QueueChoice()
    choice.note("a", FAULT_S)
    choice.note("a", 0.01)
    assert brokers(choice) == {"a", "b"}


def test_where_all_rest_all_are_taken(clock):
    choice = QueueChoice()
    choice.note("a", FAULT_S)
    choice.note("b", FAULT_S)
    assert brokers(choice) == {"a", "b"}
    assert brokers(choice, failed="a") == {"b"}


def test_a_sharding_key_keeps_to_one_queue_whatever_its_broker_does(clock):
    choice = QueueChoice()
    first = choice.choose([A, B], OutMessage("T", b"x", sharding_key="order-1"))
    choice.note(first[0].broker_name, FAULT_S)
    again = [choice.choose([B, A], OutMessage("T", b"x", sharding_key="order-1"), "a") for _ in range(5)]
    assert again == [first] * 5
    all_chosen = {choice.choose([A, B], OutMessage("T", b"x", sharding_key=f"{i}")) for i in range(100)}
    assert len(all_chosen) == 3


def test_the_queue_of_a_key_is_that_of_the_java_client():
    queues = [MessageQueue("T", "b", i) for i in range(8)]
    for key, number in (("order-1", 1207111310 % 8), ("TagA", 2598919 % 8), ("", 0)):
        assert select_by_hash(queues, OutMessage("T", b"x", sharding_key=key)).queue_id == number


def test_a_selector_of_ones_own_chooses_among_the_sorted_queues():
    seen = []

    def last(queues, message):
        seen.append(list(queues))
        return queues[-1]

    assert QueueChoice(last).choose([B, A], PLAIN) == (B, 0)
    assert seen == [[MessageQueue("T", "a", 0), MessageQueue("T", "a", 1), MessageQueue("T", "b", 0)]]


def test_a_broker_that_takes_no_writes_is_sent_nothing():
    closed = Route("a", "a:1", 2, 0)
    assert {QueueChoice().choose([closed, B], OutMessage("T", b"x", queue_id=0))[0] for _ in range(3)} == {B}
    with pytest.raises(NoPermissionError, match="T"):
        QueueChoice().choose([closed], PLAIN)


@pytest.mark.parametrize("chosen", [None, 0, MessageQueue("T", "elsewhere", 0), MessageQueue("T", "a", 2)])
def test_a_selector_that_chooses_none_of_the_queues_is_told_so(chosen):
    with pytest.raises(ValueError, match=r"which is not one of the given queues$"):
        QueueChoice(lambda queues, message: chosen).choose([B, A], PLAIN)
