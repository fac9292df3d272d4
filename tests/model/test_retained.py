"""A durable subscriber gets every retained message that it asked for, through lost connections and killed gateways."""

from __future__ import annotations

import random

import pytest

from tests.support import mqtt
from tests.support.mqtt_door import World

pytestmark = pytest.mark.slow

TOPICS = [b"r/%d/%d" % (i, j) for i in range(4) for j in range(6)]
FILTERS = [b"r/#", b"r/1/+", b"r/+/2", b"r/3/3"]
STEPS = 150


def matches(topic_filter, topic):
    pattern, levels = topic_filter.split(b"/"), topic.split(b"/")
    if pattern[-1] == b"#":
        return True
    return all(one in {b"+", other} for one, other in zip(pattern, levels, strict=True))


class Client:
    """A subscriber that acknowledges some of its messages; it is owed topics and bodies, by filter.

    An unacknowledged message is owed also after it was replaced; an acknowledged one may come again with those only.
    """

    def __init__(self, world, chance, filters, inflight_max):
        self.world, self.chance, self.filters, self.inflight_max = world, chance, filters, inflight_max
        self.waiting = set()  # was sent before a kill, and waits for room in flight
        self.owed = {}
        self.unacknowledged = []
        self.released = set()  # in flight for a filter that it gave up, perhaps
        self.believed = {}  # the last body of each topic that came
        self.bodies = {}  # of retained messages now, by topic
        self.packet_id = 0
        self.count = 0
        self.publisher = world.client(b"p")
        self.peer = world.client(b"s", clean=False)

    def receive(self):
        deliveries = self.peer.take_deliveries()
        self.believed.update((delivery.topic, delivery.body) for delivery in deliveries)
        self.waiting.difference_update((delivery.topic, delivery.body) for delivery in deliveries)
        self.unacknowledged += deliveries

    def publish(self):
        topic = self.chance.choice(TOPICS)
        self.count += 1
        body = b"" if self.chance.random() < 0.2 else b"%d" % self.count
        self.publisher.send(mqtt.publish(topic, body, qos=1, packet_id=1, retain=True))
        self.bodies[topic] = body
        for owed in self.owed.values():
            owed.pop(topic, None)  # the newer one comes by the subscription
        self.receive()

    def subscribe(self):
        topic_filter = self.chance.choice(self.filters)
        self.owed[topic_filter] = {
            topic: body for topic, body in self.bodies.items() if body and matches(topic_filter, topic)
        }
        self.receive()
        self.peer.send(mqtt.subscribe(1, (topic_filter, 1)))
        self.receive()

    def unsubscribe(self):
        topic_filter = self.chance.choice(self.filters)
        self.owed.pop(topic_filter, None)
        self.released |= {(one.topic, one.body) for one in self.unacknowledged if matches(topic_filter, one.topic)}
        self.waiting = {one for one in self.waiting if not matches(topic_filter, one[0])}
        self.peer.send(mqtt.unsubscribe(1, topic_filter))
        self.receive()

    def acknowledge(self, count=None):
        count = self.chance.randrange(len(self.unacknowledged) + 1) if count is None else count
        done, self.unacknowledged = self.unacknowledged[:count], self.unacknowledged[count:]
        for delivery in done:
            for owed in self.owed.values():
                if delivery.retain and owed.get(delivery.topic) == delivery.body:
                    del owed[delivery.topic]
        self.peer.send(*[mqtt.puback(delivery.packet_id) for delivery in done])
        self.receive()

    def reconnect(self):
        if self.chance.random() < 0.5:
            self.peer.vanish()
        self.come_back()

    def kill(self):
        self.world.close()
        self.world.open()
        self.publisher = self.world.client(b"p")
        self.come_back()
        self.released.clear()

    def come_back(self):
        """Connect again: what was retained and not acknowledged comes again, if its filter is still subscribed to.

        At once, or when there is room in flight for it.
        """
        owed = {(one.topic, one.body) for one in self.unacknowledged if one.retain} - self.released
        self.unacknowledged.clear()
        self.peer = self.world.connect(b"s", clean=False)
        self.receive()
        again = {(one.topic, one.body) for one in self.unacknowledged if one.retain and one.dup}
        self.waiting |= owed - again
        assert not self.waiting or len(self.unacknowledged) == self.inflight_max


@pytest.mark.parametrize("filters", [FILTERS, FILTERS[:1]])
@pytest.mark.parametrize("seed", range(8))
def test_what_was_asked_for_and_not_acknowledged_comes_again(tmp_path, seed, filters):
    chance = random.Random(seed)
    inflight_max = chance.choice([3, 10, 2_048])
    world = World(tmp_path, inflight_max=inflight_max)
    client = Client(world, chance, filters, inflight_max)
    actions = [client.publish, client.subscribe, client.unsubscribe, client.acknowledge, client.reconnect, client.kill]
    for action in chance.choices(actions, [30, 8, 2, 20, 5, 3], k=STEPS):
        action()
    while client.unacknowledged:
        client.acknowledge(len(client.unacknowledged))
    assert not any(client.owed.values())
    assert not client.waiting
    for topic in client.believed if client.owed and len(filters) == 1 else ():  # order is kept within a filter
        assert client.believed[topic] == client.bodies[topic] or not client.bodies[topic]
    client.kill()
    assert not client.unacknowledged
    world.close()
