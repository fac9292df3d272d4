"""Queues are this gateway's alone, and their ends known, before anything is taken of them."""

from __future__ import annotations

from functools import partial

import pytest
from pamqp.commands import Basic, Channel, Queue

from tests.support import amqp
from tests.support.amqp_door import AmqpWorld
from tests.support.late_engine import make_late

CLAIM = b"amqp/queue/%LMQ%amqp%|2f%q"


@pytest.fixture
def make_world(tmp_path):
    worlds = []

    def make(**options):
        worlds.append(AmqpWorld(tmp_path, make_engine=partial(make_late, **options)))
        return worlds[-1]

    yield make
    for world in worlds:
        world.close()


def test_a_queue_is_claimed_on_first_use_and_let_go_of_when_it_is_deleted(make_world):
    world = make_world()
    peer = world.client()
    peer.declare("q", durable=True)
    peer.declare("other", durable=True)
    assert CLAIM in world.engine.held
    world.close()
    world.open()
    assert not world.engine.held
    peer = world.client()
    peer.declare("q", passive=True)
    assert world.engine.held == {CLAIM}
    peer.call(Queue.Delete(queue="q"))
    assert not world.engine.held


def test_what_is_published_after_the_answer_to_a_declaration_comes_and_what_was_there_before_does_not(make_world):
    world = make_world(seed=5)
    peer = world.client()
    for number in range(5):
        peer.declare("q")
        peer.publish(b"%d" % number, b"left", key="q")
        peer.send(Basic.Get(queue="q", no_ack=True))
        assert peer.bodies() == [b"%d" % number]
        peer.call(Queue.Delete(queue="q"))


@pytest.mark.parametrize("options", [{"refusals": 1.0}, {"unknown": 1.0}])
def test_a_queue_that_cannot_be_had_costs_the_channel_and_is_none(make_world, options):
    world = make_world(**options)
    peer = world.client()
    peer.send(Queue.Declare(queue="q"))
    (answer,) = peer.take()
    assert isinstance(answer, Channel.Close)
    assert (answer.reply_code, answer.reply_text.startswith("NOT_FOUND - queue 'q' in vhost '/' is not")) == (404, True)
    assert world.amqp.vhost.find("q") is None
    assert not world.engine.held


def test_a_durable_queue_of_another_gateway_is_there_and_comes_when_it_is_let_go_of(make_world):
    world = make_world()
    world.client().declare("q", durable=True)
    world.close()
    world.open()
    peer = world.client()
    world.engine.refusals = 1.0
    peer.send(Queue.Declare(queue="q", passive=True))
    assert isinstance(peer.take()[0], Channel.Close)
    world.engine.refusals = 0.0
    assert world.client().declare("q", passive=True).message_count == 0


def test_methods_that_follow_a_declaration_at_once_wait_for_it(make_world):
    world = make_world(away=0.5)
    peer = world.client()
    peer.publish(b"before", key="q")
    peer.send(Queue.Declare(queue="q", nowait=True), Basic.Consume(queue="q", consumer_tag="c", nowait=True))
    peer.publish(b"1", key="q")
    assert peer.bodies() == [b"1"]


def test_a_queue_whose_owner_goes_while_it_is_opened_is_let_go_of(make_world):
    world = make_world()
    peer = world.client()
    peer.handler.on_data(amqp.method(1, Queue.Declare(queue="q", exclusive=True)), world.now_ms)
    peer.vanish()
    world.turn()
    assert not world.engine.held
    assert world.amqp.vhost.find("q") is None


def test_replies_to_a_channel_come_when_their_queue_is_open(make_world):
    world = make_world()
    peer = world.client()
    peer.send(Basic.Consume(queue="amq.rabbitmq.reply-to", consumer_tag="r", no_ack=True))
    assert isinstance(peer.take()[0], Basic.ConsumeOk)
    peer.declare("work")
    peer.publish(b"ask", key="work", reply_to="amq.rabbitmq.reply-to")
    server = world.client()
    server.send(Basic.Get(queue="work", no_ack=True))
    (asked,) = server.messages()
    server.publish(b"answer", key=asked.properties.reply_to)
    assert peer.bodies() == [b"answer"]
