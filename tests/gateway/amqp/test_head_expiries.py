"""Queues are called when their moment has come, in order."""

from __future__ import annotations

import pytest

from core.message import StoredBatch
from gateway.amqp.head_expiries import CALLED_A_TURN, NEVER, HeadExpiries, find_head_expiry


class Queue:
    def __init__(self, called):
        self.called = called

    def on_expiry(self, at_ms):
        self.called.append((at_ms, self))


class TimedBroker:
    """A broker as its timer is seen: when it is to ring, and what asked for a turn."""

    def __init__(self):
        self.timer = self
        self.followers, self.wakes, self.requested = [], [], []

    def wake_at(self, at_ms):
        self.wakes.append(at_ms)

    def request_run(self, reader):
        self.requested.append(reader)


def test_queues_are_called_when_it_is_time_and_once_for_each_moment():
    broker, called = TimedBroker(), []
    expiries = HeadExpiries(broker)
    first, second = Queue(called), Queue(called)
    expiries.file(500, first)
    expiries.file(300, second)
    expiries.file(500, second)
    assert (broker.followers, broker.wakes) == ([expiries], [500, 300])
    expiries.on_ready(299)
    assert called == []
    expiries.on_ready(400)
    assert called == [(300, second)]
    assert broker.wakes[2:] == [300, 500]
    expiries.on_ready(500)
    assert called[1:] == [(500, first), (500, second)]
    expiries.on_ready(9_999)
    assert (len(called), broker.wakes[4:], broker.requested) == (3, [], [])


def test_very_many_queues_are_called_over_some_turns():
    broker, called = TimedBroker(), []
    expiries = HeadExpiries(broker)
    for _ in range(CALLED_A_TURN + 1):
        expiries.file(300, Queue(called))
    expiries.on_ready(300)
    assert (len(called), broker.requested) == (CALLED_A_TURN, [expiries])
    expiries.on_ready(300)
    assert (len(called), len(broker.requested)) == (CALLED_A_TURN + 1, 1)


@pytest.mark.here(reason="what an offset has is to be there")
def test_it_is_known_when_a_first_message_outlives_its_time(world):
    peer = world.client()
    for name, arguments in (("q", {}), ("limited", {"x-message-ttl": 100}), ("levels", {"x-max-priority": 1})):
        peer.declare(name, arguments=arguments)
    peer.publish(b"1", key="q").publish(b"2", key="q", expiration="50").publish(b"3", key="limited")
    vhost, stored = world.amqp.vhost, StoredBatch(1)

    def expiry(name, offset):
        return find_head_expiry(world.broker, vhost.find(name), offset, stored)

    assert [expiry("q", offset) for offset in range(3)] == [NEVER, world.now_ms + 50, NEVER]
    assert (expiry("limited", 0), expiry("levels", 0)) == (world.now_ms + 100, 0)
