"""Messages that come alone, which a feed hands on before they are stored."""

from __future__ import annotations

import random

import pytest

from core.message import StoredBatch
from core.properties import TOPIC, decode_properties
from tests.support import mqtt
from tests.support.mqtt_door import World
from tests.support.store import read_queue


class Watched:
    """Notes how many messages the queue of a subscription held each time that its client was written to."""

    def __init__(self, world, peer, topic_filter=b"t"):
        self.world = world
        self.queue_ref = next(iter(world.door.sessions)).subscriptions[topic_filter].queue_ref
        self.held = []
        self.write = peer.transport.write
        peer.transport.write = self.note

    def note(self, data):
        self.held.append(self.world.broker.max_offset(self.queue_ref))
        self.write(data)


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path, is_alone=True)
    yield world
    world.close()


def test_subscribers_at_qos_0_have_a_lone_message_before_it_is_stored_and_once(world):
    peers = [world.client(b"s%d" % i, (b"t", 0)) for i in range(3)]
    watched = [Watched(world, peer) for peer in peers]
    publisher = world.client(b"p")
    for number in range(3):
        publisher.send(mqtt.publish(b"t", b"%d" % number, qos=number % 2, packet_id=number % 2))
    assert [each.held for each in watched] == [[0, 1, 2]] * 3
    assert [peer.bodies() for peer in peers] == [[b"0", b"1", b"2"]] * 3
    assert (world.counts.messages_out, world.counts.bytes_out) == (9, 9)
    name = world.broker.queue_key(watched[0].queue_ref)
    assert read_queue(world.store, name) == [(0, b"0"), (1, b"1"), (2, b"2")]


def test_one_at_qos_1_gets_it_once_it_is_stored_and_so_do_the_others(world):
    plain, numbered = world.client(b"s", (b"t", 0)), world.client(b"n", (b"t", 1))
    watched = [Watched(world, peer) for peer in (plain, numbered)]
    world.client(b"p").send(mqtt.publish(b"t", b"x", qos=1, packet_id=1))
    assert [each.held for each in watched] == [[1], [1]]
    assert [(d.body, d.qos) for d in numbered.take_deliveries()] == [(b"x", 1)]


def test_one_that_does_not_read_gets_it_later_and_once(world):
    slow, fast = world.client(b"slow", (b"t", 0)), world.client(b"fast", (b"t", 0))
    publisher = world.client(b"p")
    slow.stall()
    for number in range(4):
        publisher.send(mqtt.publish(b"t", b"%d" % number))
        if number == 2:
            slow.drain()
    assert slow.bodies() == fast.bodies() == [b"0", b"1", b"2", b"3"]


def test_a_client_is_sent_what_it_publishes_itself(world):
    peer = world.client(b"s", (b"t", 0))
    peer.send(mqtt.publish(b"t", b"x"), mqtt.PINGREQ)
    assert [one[0] >> 4 for one in peer.take()] == [3, 13]


def test_a_retained_message_is_handed_on_without_its_mark_and_kept(world):
    live = world.client(b"s", (b"t", 0))
    world.client(b"p").send(mqtt.publish(b"t", b"kept", retain=True))
    assert live.take_deliveries() == [mqtt.Delivery(b"t", b"kept", 0, 0, retain=False, dup=False)]
    late = world.client(b"late")
    late.send(mqtt.subscribe(1, (b"t", 0)))
    assert [(d.body, d.retain) for d in late.take_deliveries()] == [(b"kept", True)]


@pytest.mark.parametrize("size", [0, 1, 127, 128, 20_000])
@pytest.mark.parametrize("topic", [b"t", b"a/b/" + b"c" * 300, "grün/Ö".encode(), b"$x/y"])
def test_what_is_handed_on_is_what_is_stored(world, topic, size):
    peer = world.client(b"s", (topic, 0))
    watched = Watched(world, peer, topic)
    world.client(b"p").send(mqtt.publish(topic, b"x" * size))
    (got,) = peer.take_deliveries()
    assert watched.held == [0]
    batch = StoredBatch(1)
    assert world.broker.read(watched.queue_ref, 0, batch, 1, 1) == 1
    stored = dict(decode_properties(bytes(batch.buf[batch.properties_start[0] : batch.properties_end[0]])))
    assert (got.topic, got.body) == (stored[TOPIC], bytes(batch.buf[batch.body_start[0] : batch.body_end[0]]))
    batch.clear()


@pytest.mark.parametrize("seed", range(20))
def test_everyone_gets_everything_once_and_in_order_however_messages_come(world, seed):
    pick = random.Random(seed)
    publisher = world.client(b"p")
    here: dict[int, object] = {}
    due: dict[int, list[bytes]] = {}
    for step in range(120):
        world.is_alone = pick.random() < 0.7
        number = pick.randrange(4)
        action = pick.random()
        if number not in here:
            here[number] = world.client(b"s%d" % number, (pick.choice([b"t", b"+", b"t/#"]), pick.choice([0, 0, 0, 1])))
            due[number] = []
        elif action < 0.05:
            assert sorted_out(here.pop(number)) == due.pop(number)
        elif action < 0.15:
            here[number].stall()
        elif action < 0.3:
            here[number].drain()
        some = [b"%d.%d" % (step, i) for i in range(pick.choice([1, 1, 1, 3]))]
        publisher.send(*[mqtt.publish(b"t", body, qos=1, packet_id=1) for body in some])
        for waiting in due.values():
            waiting.extend(some)
    for number, peer in here.items():
        assert sorted_out(peer) == due[number]


def sorted_out(peer):
    """Let a client read all that waits for it, then leave; return the bodies of what it got."""
    peer.drain()
    bodies = peer.bodies()
    peer.vanish()
    return bodies
