"""Queues are called when their moment has come, in order."""

from __future__ import annotations

from gateway.amqp.head_expiries import HeadExpiries


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
