"""Requests that wait, of each kind, are kept by their connection side by side."""

from __future__ import annotations

from tests.support.rocketmq_door import SUBSCRIBED, SUSPENDED
from tests.support.rocketmq_pop import pop, start_pop

HELD = SUBSCRIBED | SUSPENDED


def test_a_pull_and_a_pop_wait_on_one_connection_each_until_its_own_deadline(site, peer):
    peer.send(b"x")
    pop(peer)
    peer.start_pull("T", 1, sysFlag=HELD, suspendTimeoutMillis=3_000)
    start_pop(peer, pollTime=2_000)
    assert len(peer.handler.held) == 2
    for seconds, code in ((2, 210), (3, 19)):
        now_ms = site.now_ms + seconds * 1000
        assert peer.handler.next_deadline_ms() == now_ms
        peer.handler.on_timer(now_ms)
        assert [answer.code for answer in peer.take()] == [code]
    assert peer.handler.held == {}


def test_nothing_is_written_to_a_connection_that_is_gone(site, peer):
    peer.send(b"x")
    pop(peer)
    other = site.connect()
    start_pop(peer, pollTime=5_000)
    peer.close()
    other.send(b"y")
    site.turn()
    assert peer.take() == []
    other.take()
    assert [message.body for message in pop(other)] == [b"y"]
