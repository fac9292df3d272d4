from __future__ import annotations

from gateway.amqp.leases import STEP_COUNT, Leases


class Queue:
    def __init__(self, lease_ms):
        self.lease_ms = lease_ms
        self.consumers, self.streams = [], []


def run(leases, now_ms):
    return sum(1 for _ in leases.run(now_ms))


def test_queue_goes_when_its_lease_is_over_since_it_was_seen_unused():
    leases, gone, queue = Leases(), [], Queue(1_000)
    leases.begin(queue, gone.append)
    for now_ms in (5_000, 5_999):
        run(leases, now_ms)
    assert gone == []
    run(leases, 6_000)
    assert gone == [queue]


def test_consumers_and_further_use_begin_the_lease_anew():
    leases, gone, queue = Leases(), [], Queue(1_000)
    leases.begin(queue, gone.append)
    run(leases, 0)
    queue.consumers.append(object())
    run(leases, 1_000)
    queue.consumers.clear()
    run(leases, 1_500)
    leases.begin(queue, gone.append)
    run(leases, 2_600)
    run(leases, 3_599)
    assert gone == []
    run(leases, 3_600)
    assert gone == [queue]


def test_queue_without_a_lease_or_that_is_gone_is_not_kept():
    leases, queue = Leases(), Queue(0)
    leases.begin(Queue(-1), lambda _: None)
    leases.begin(queue, lambda _: None)
    leases.end(queue)
    assert len(leases) == 0


def test_many_are_looked_at_in_steps_and_one_that_goes_meanwhile_is_passed_over():
    leases, gone = Leases(), []
    queues = [Queue(0) for _ in range(4 * STEP_COUNT)]
    for queue in queues:
        leases.begin(queue, gone.append)
    assert run(leases, 0) == 4
    steps = leases.run(0)
    next(steps)
    leases.end(queues[-1])
    for _ in steps:
        pass
    assert gone == queues[:-1]
