"""What the door answers about virtual hosts is RabbitMQ's, word for word."""

from __future__ import annotations

import json

import pytest
from pamqp.commands import Channel, Queue

from tests.conformance.amqp_steps import show
from tests.conformance.vhost_answers import SCENES
from tests.support.amqp_door import AmqpWorld
from tests.support.sources import ROOT

RECORDED = json.loads((ROOT / "tests/data/rabbitmq-3.10.8/vhosts.json").read_text())


@pytest.fixture
def world(tmp_path, engine_maker):
    world = AmqpWorld(tmp_path, make_engine=engine_maker)
    yield world
    world.close()


@pytest.mark.parametrize("name", SCENES)
def test_answers_are_rabbitmqs(world, name):
    vhosts = world.amqp.vhosts
    peers, lines = [], []
    for kind, *told in SCENES[name]:
        if kind == "open":
            peers.append(world.log_in(vhost=told[0]))
            lines.append(show(0, peers[-1].opening[-1]))
            if not peers[-1].is_closed:
                peers[-1].send(Channel.Open())
                peers[-1].take()
        elif kind == "declare":
            lines.append(show(1, peers[0].call(Queue.Declare(queue=told[0]))))
        elif kind == "make":
            vhosts.make(told[0])
        elif kind == "limit":
            vhost, limit, value = told
            vhosts.make(vhost, vhosts.find(vhost).profile.with_limit(limit, value))
        elif kind == "delete":
            vhosts.delete(vhosts.find(told[0]), world.now_ms)
            world.turn()
            lines += [*(show(0, frame) for frame in peers[0].take()), *(["end"] if peers[0].is_closed else [])]
    assert lines == RECORDED[name]
