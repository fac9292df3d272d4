from __future__ import annotations

import pytest
from pamqp.commands import Exchange

from gateway.admin.publish_notes import find_notes
from gateway.amqp.tracing import trace_way
from tests.support.amqp_door import AmqpWorld


@pytest.fixture
def world(tmp_path, engine_maker):
    world = AmqpWorld(tmp_path, make_engine=engine_maker)
    yield world
    world.close()


def notes_of(world, exchange, key, priority=0):
    vhost = world.amqp.vhosts.find("/")
    return find_notes(vhost, trace_way(vhost.exchanges, vhost.exchanges.get(exchange), key), priority)


def test_light_queue_of_a_priority_is_told(world):
    world.client().declare("q", arguments={"x-max-priority": 5})
    assert notes_of(world, "", "q") == []
    assert notes_of(world, "", "q", 3) == ["queue 'q' has it in the light queue of priority 3, %LMQ%amqp%|y3%|2f%q"]
    assert "of priority 5," in notes_of(world, "", "q", 200)[0]


def test_full_queue_that_refuses_is_told_as_long_as_it_is(world):
    peer = world.client()
    peer.declare("q", arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    assert notes_of(world, "", "q") == []
    peer.publish(b"1", key="q")
    assert notes_of(world, "", "q") == ["queue 'q' is full and refuses it now"]


def test_queue_and_alternate_that_are_not_there_are_told(world):
    peer = world.client()
    peer.call(Exchange.Declare(exchange="e", exchange_type="direct", arguments={"alternate-exchange": "alt"}))
    assert notes_of(world, "e", "q") == ["exchange 'e' has the alternate 'alt', which is not there"]
    peer.call(Exchange.Declare(exchange="alt", exchange_type="fanout"))
    assert notes_of(world, "e", "q") == []
    assert notes_of(world, "", "none") == ["there is no queue 'none'"]
