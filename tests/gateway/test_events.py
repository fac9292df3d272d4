from __future__ import annotations

import pytest
from pamqp.commands import Basic, Exchange, Queue

from gateway.events import Actor, Events, Kind
from tests.support.amqp_door import AmqpWorld


@pytest.fixture
def world(tmp_path, engine_maker):
    return AmqpWorld(tmp_path / "data", make_engine=engine_maker)


def test_all_that_listen_are_told_until_they_do_not_any_more():
    events, first, second = Events(), [], []
    actor = Actor(events, "amqp", 7, "192.0.2.7:5", "ann")
    actor.tell(Kind.QUEUE_CREATED, name="unheard")
    assert not events.is_heard
    events.listen(first.append)
    events.listen(second.append)
    actor.tell(Kind.QUEUE_CREATED, name="q")
    events.ignore(second.append)
    events.ignore(second.append)
    actor.tell(Kind.QUEUE_DELETED, name="q")
    assert [(event.kind, event.actor.user, event.fields) for event in first] == [
        ("queue.created", "ann", {"name": "q"}),
        ("queue.deleted", "ann", {"name": "q"}),
    ]
    assert len(second) == 1
    assert events.is_heard
    assert events.told == {"queue.created": 2, "queue.deleted": 1}


def test_what_an_amqp_client_makes_and_removes_is_told_once_with_its_connection_and_user(world):
    told = []
    world.authenticator.events.listen(told.append)
    peer = world.client()
    peer.declare("q")
    peer.declare("q")  # it is there
    peer.call(Exchange.Declare(exchange="e", exchange_type="topic"))
    for _ in range(2):  # the second time it is there
        peer.call(Queue.Bind(queue="q", exchange="e", routing_key="a.#"))
        peer.call(Exchange.Bind(destination="amq.fanout", source="e", routing_key="b"))
    for _ in range(2):  # the second time it is not
        peer.call(Exchange.Unbind(destination="amq.fanout", source="e", routing_key="b"))
    peer.call(Queue.Unbind(queue="q", exchange="e", routing_key="a.#"))
    peer.call(Queue.Unbind(queue="q", exchange="e", routing_key="a.#"))  # it is not there
    peer.publish(b"m")
    peer.call(Queue.Purge(queue="q"))
    peer.call(Queue.Delete(queue="q"))
    peer.call(Queue.Delete(queue="q"))
    peer.call(Exchange.Delete(exchange="e"))
    assert [event.kind for event in told] == [
        "user.authentication.success",
        "queue.created",
        "exchange.created",
        "binding.created",
        "binding.created",
        "binding.deleted",
        "binding.deleted",
        "queue.purged",
        "queue.deleted",
        "exchange.deleted",
    ]
    assert {(event.actor.door, event.actor.user, event.actor.conn_id) for event in told} == {("amqp", "guest", 1)}
    assert told[3].fields == {
        "vhost": "/",
        "source": "e",
        "destination_type": "queue",
        "destination": "q",
        "routing_key": "a.#",
    }


def test_refused_logins_and_denials_are_told(world):
    told = []
    world.authenticator.events.listen(told.append)
    world.log_in(password="wrong")
    world.turn()
    peer = world.client()
    peer.send(Basic.Consume(queue="not there"))
    assert told[0].kind == "user.authentication.failure"
    assert (told[0].actor.user, told[0].fields["name"]) == ("", "guest")
    assert [event.kind for event in told[1:]] == ["user.authentication.success"]
