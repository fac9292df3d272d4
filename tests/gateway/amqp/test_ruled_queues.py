from __future__ import annotations

from core.errors import QueueLimitError
from gateway.amqp.policies import NOTHING, Policy, Ruling
from gateway.amqp.ruled_queues import hold_queue_to


class Refusals:
    def __init__(self, *, is_full=False):
        self.renewed = 0
        self.is_full = is_full

    def renew(self, queue):
        self.renewed += 1
        if self.is_full:
            raise QueueLimitError(1)


def ruling(**definition):
    named = {name.replace("_", "-"): value for name, value in definition.items()}
    return Ruling(Policy("/", "p", "", named), None, named)


def test_a_queue_for_which_nothing_else_holds_is_left_as_it_is(world):
    world.client().declare("q", durable=True, arguments={"x-max-length": 3})
    queue, refusals = world.amqp.vhost.find("q"), Refusals()
    assert not hold_queue_to(queue, ruling(max_length=5), refusals)
    assert (queue.ruling.policy.name, refusals.renewed) == ("p", 0)


def test_a_queue_is_looked_after_while_a_policy_asks_for_it(world):
    world.client().declare("q", durable=True)
    queue, refusals = world.amqp.vhost.find("q"), Refusals(is_full=True)
    assert hold_queue_to(queue, ruling(max_length=5), refusals)
    assert world.broker.reader_count(queue.pop.queue_ref) == 0
    assert queue.is_watched
    assert hold_queue_to(queue, NOTHING, refusals)
    assert (queue.is_watched, refusals.renewed) == (False, 2)
