"""Quorum queues count how often a message was given."""

from __future__ import annotations

from pamqp.commands import Basic, Queue

from tests.support.amqp_queues import give_back

QUORUM = {"x-queue-type": "quorum"}


def test_a_quorum_queue_counts_deliveries_and_ends_them_at_its_limit(world):
    peer = world.client()
    peer.declare("dead", durable=True)
    limit = {"x-delivery-limit": 2, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    peer.declare("q", durable=True, arguments={**QUORUM, **limit})
    peer.publish(b"1", headers={"a": 1})
    peer.publish(b"good")
    peer.consume("q")
    counts = []
    for _ in range(3):
        for message in peer.messages():
            if message.body == b"good":
                peer.send(Basic.Ack(message.tag))
            else:
                counts.append((message.properties.headers or {}).get("x-delivery-count"))
                assert message.properties.headers["a"] == 1
                give_back(peer, message)
    world.turn()
    assert counts == [None, 1, 2]
    peer.consume("dead", "d")
    (dead,) = peer.messages()
    assert dead.body == b"1"
    assert dead.properties.headers["x-death"][0]["reason"] == "delivery_limit"


def test_a_lost_connection_counts_as_giving_back(world):
    world.client().declare("q", durable=True, arguments={**QUORUM, "x-delivery-limit": 1})
    world.client().publish(b"1")
    for expected in (None, 1):
        peer = world.client()
        peer.consume("q")
        (message,) = peer.messages()
        assert (message.properties.headers or {}).get("x-delivery-count") == expected
        peer.vanish()
    assert world.client().declare("q", durable=True, passive=True).message_count == 0


def test_a_quorum_queue_that_says_nothing_gives_a_message_one_and_twenty_times(world):
    peer = world.client()
    peer.declare("q", durable=True, arguments=QUORUM)
    peer.publish(b"1")
    peer.consume("q")
    number = 0
    while messages := peer.messages():
        number += 1
        give_back(peer, messages[0])
    assert number == 21
    peer.declare("r", durable=True, arguments={**QUORUM, "x-delivery-limit": -1})
    peer.publish(b"1", key="r")
    peer.consume("r", "r")
    for _ in range(50):
        (message,) = peer.messages()
        give_back(peer, message)


def test_messages_of_devices_are_counted_too(world):
    peer = world.client()
    peer.declare("q", durable=True, arguments=QUORUM)
    peer.send(Queue.Bind(queue="q", exchange="amq.topic", routing_key="#")).take()
    world.client_of_mqtt(b"d").publish(b"a/b", b"1", qos=1)
    for expected in (None, 1):
        message = peer.consume("q", f"c{expected}").messages()[0]
        assert message.properties.headers.get("x-delivery-count") == expected
        assert message.properties.headers["x-client-id"] == "d"
        peer.call(Basic.Cancel(f"c{expected}"))
        give_back(peer, message)
