"""What one answer takes, and how much of one queue may be in flight."""

from __future__ import annotations

from gateway.rocketmq.pop import taking
from tests.support.rocketmq_door import records_of
from tests.support.rocketmq_pop import ack, ask_pop, pop, start_pop


def fill(peer, count: int, **changes: object) -> None:
    for i in range(count):
        assert peer.send(b"m%d" % i, **changes).code == 0


def test_messages_that_are_new_are_given_as_they_are_stored(site, peer):
    fill(peer, 3)
    answer = ask_pop(peer)
    log = (site.store.data_dir / "commitlog" / f"{0:020}").read_bytes()
    assert log.startswith(bytes(answer.body))


def test_no_more_than_so_much_of_a_queue_is_in_flight(site, peer, monkeypatch):
    monkeypatch.setattr(taking, "IN_FLIGHT_MAX", 4)
    fill(peer, 8)
    messages = pop(peer, maxMsgNums=3) + pop(peer, maxMsgNums=1)
    assert len(messages) == 4
    other = site.connect()
    start_pop(other, pollTime=5_000)
    site.turn()
    assert other.take() == []
    ack(peer, messages[2])
    site.turn()
    (answer,) = other.take()
    assert [record.body for record in records_of(answer)][:1] == [b"m4"]


def test_a_filter_that_wants_few_looks_at_some_thousands_and_goes_on(site, peer, monkeypatch):
    monkeypatch.setattr(taking, "SCAN_MAX", 40)
    fill(peer, 100)
    peer.send(b"wanted", properties="TAGS\x01a\x02")
    start_pop(peer, exp="a", pollTime=5_000)
    assert peer.take() == []
    site.turn()
    (answer,) = peer.take()
    assert [record.body for record in records_of(answer)] == [b"wanted"]
    assert site.broker.pop.find(b"T/0", b"rocketmq:g").unacked_count == 1


def test_a_message_of_a_retry_topic_brings_its_receipt(site, peer):
    fill(peer, 2, topic="%RETRY%g", l="16")
    messages = pop(peer, "%RETRY%g")
    assert [message.receipt.split(" ")[4:] for message in messages] == [["0", "lmq", "0", "0"], ["0", "lmq", "0", "1"]]
    assert ack(peer, messages[0], "%RETRY%g").code == 0
    site.now_ms += 60_000
    assert [message.body for message in pop(peer, "%RETRY%g")] == [b"m1"]


WIDE = ",".join(f"%LMQ%device-{i:03}" for i in range(600))


def test_a_light_queue_of_a_list_that_is_stored_once_is_popped_as_any(site, peer):
    fill(peer, 2, properties=f"INNER_MULTI_DISPATCH\x01{WIDE}\x02")
    messages = pop(peer, "%LMQ%device-300")
    assert [(message.body, message.offset) for message in messages] == [(b"m0", 0), (b"m1", 1)]
    ack(peer, messages[0], "%LMQ%device-300")
    site.now_ms += 60_000
    assert [(message.body, message.attempts) for message in pop(peer, "%LMQ%device-300")] == [(b"m1", 1)]
