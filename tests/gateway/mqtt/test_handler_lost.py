"""Messages that the engine took and lost: the outcome is their publisher's only."""

from __future__ import annotations

from functools import partial

from tests.support import mqtt
from tests.support.late_engine import make_late


def test_a_client_whose_message_is_lost_is_not_acknowledged_and_its_connection_ends(make_world):
    world = make_world(make_engine=partial(make_late, failures=1.0))
    client = world.client(b"c")
    client.send(mqtt.publish(b"t", b"1", qos=1, packet_id=1))
    assert client.take() == []
    assert client.is_closed
    assert world.counts.refused["not_stored"] == 1


def test_a_loss_costs_nobody_else(make_world):
    world = make_world(make_engine=partial(make_late, failures=0.5, seed=3))
    clients = [world.client(b"c%d" % number) for number in range(40)]
    for number, client in enumerate(clients):
        client.begin(mqtt.publish(b"t", b"1", qos=1, packet_id=number + 1))
    world.turn()
    acknowledged = [number for number, client in enumerate(clients) if client.take()]
    assert [number for number, client in enumerate(clients) if not client.is_closed] == acknowledged
    assert len(acknowledged) == 40 - world.engine.failed
    assert 0 < world.engine.failed < 40


def test_acknowledgements_of_one_client_keep_their_order(make_world):
    world = make_world(make_engine=make_late)
    client = world.client(b"c")
    for number in range(1, 40):
        client.begin(mqtt.publish(b"t%d" % (number % 5), b"1", qos=1, packet_id=number))
    world.turn()
    assert [int.from_bytes(packet[2:4], "big") for packet in client.take()] == list(range(1, 40))


def test_a_will_that_is_lost_is_counted(make_world):
    world = make_world(make_engine=partial(make_late, failures=1.0))
    world.client(b"c", will=(b"gone", b"x", 1, False)).vanish()
    assert world.counts.dropped["will"] == 1


def test_retained_message_that_is_lost_is_not_retained(make_world):
    world = make_world(make_engine=make_late)
    world.client(b"p").send(mqtt.publish(b"t", b"kept", qos=1, packet_id=1, retain=True))
    world.engine.failures = 1.0
    world.client(b"q").send(mqtt.publish(b"t", b"lost", qos=1, packet_id=1, retain=True))
    subscriber = world.client(b"s").send(mqtt.subscribe(1, (b"t", 0)))
    assert subscriber.take()[1:] == [mqtt.publish(b"t", b"kept", retain=True)]
