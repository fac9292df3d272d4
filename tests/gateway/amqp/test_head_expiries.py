"""Queues are called when their moment has come, in order."""

from __future__ import annotations

import pytest

from core.message import StoredBatch
from gateway.amqp.head_expiries import NEVER, HeadExpiries, find_head_expiry


class Queue:
    def __init__(self, called):
        self.called = called

    def on_expiry(self, at_ms):
        self.called.append((at_ms, self))


def test_queues_are_called_when_it_is_time_and_once_for_each_moment():
    expiries, called = HeadExpiries(), []
    first, second = Queue(called), Queue(called)
    expiries.file(500, first)
    expiries.file(300, second)
    expiries.file(500, second)
    expiries.run(299)
    assert called == []
    expiries.run(400)
    assert called == [(300, second)]
    expiries.run(500)
    assert called[1:] == [(500, first), (500, second)]
    expiries.run(9_999)
    assert len(called) == 3


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
