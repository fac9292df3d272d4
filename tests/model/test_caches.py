"""However little room caches have, every door answers and delivers what it does with all the room it wants."""

from __future__ import annotations

import random

import pytest
from pamqp import base
from pamqp.commands import Basic, Channel, Exchange, Queue

from tests.support import mqtt
from tests.support.amqp_door import AmqpWorld, Message
from tests.support.rocketmq_door import DoorSite, bodies_of

pytestmark = pytest.mark.slow

BOUNDS = (1, 3_000, 1 << 26)
STEPS = 400
TOPICS = [b"a", b"a/b", b"a/b/c", b"b/a", b"b"]
FILTERS = [b"a", b"a/b", b"#", b"+/b", b"a/#", b"a/+/c", b"b/a"]
EXCHANGES = ["amq.direct", "amq.fanout", "amq.topic", "x"]
KEYS = ["a", "a.b", "a.b.c", "b.a", "b"]
QUEUES = ["q0", "q1", "a"]
ROCKETMQ_TOPICS = ["T0", "T1", "T2", "%LMQ%a", "%LMQ%b"]


def comparable(value):
    """Return what a client sees of a frame that is the same in every run."""
    if isinstance(value, Message):
        return type(value.method).__name__, value.method.routing_key, value.body
    return (type(value).__name__, value.marshal()) if isinstance(value, base.Frame) else value


def choose_mqtt(chance, number):
    """Return a step of the MQTT client and the subscriber."""
    if chance.random() < 0.6:
        return 0, mqtt.publish(chance.choice(TOPICS), b"%d" % number)
    topic_filter = chance.choice(FILTERS)
    return 1, mqtt.subscribe(1, (topic_filter, 0)) if chance.random() < 0.6 else mqtt.unsubscribe(1, topic_filter)


def choose_amqp(chance):
    """Return a method that changes where messages go."""
    queue, exchange, key = chance.choice(QUEUES), chance.choice(EXCHANGES[:3]), chance.choice([*KEYS, "#", "*.b"])
    return chance.choice(
        [
            *[Queue.Declare(queue=queue)] * 4,
            Queue.Delete(queue=queue),
            Queue.Bind(queue=queue, exchange=exchange, routing_key=key),
            Queue.Bind(queue=queue, exchange=exchange, routing_key=key),
            Queue.Unbind(queue=queue, exchange=exchange, routing_key=key),
            Exchange.Declare(exchange="x", exchange_type="fanout"),
            Exchange.Declare(exchange="x", exchange_type="fanout"),
            Queue.Bind(queue=queue, exchange="x"),
            Exchange.Delete(exchange="x"),
        ]
    )


class Beside:
    """One gateway with MQTT and AMQP doors and so much room for its caches."""

    def __init__(self, folder, bound):
        self.world = AmqpWorld(folder)
        self.world.broker.caches.limit(bound)
        self.mqtt = [self.world.connect(b"p"), self.world.connect(b"s")]
        self.amqp = self.world.client()

    def publish(self, exchange, key, body):
        self.amqp.publish(body, exchange=exchange, key=key, mandatory=True)
        return self.answers()

    def call(self, method):
        self.amqp.send(method)
        return self.answers()

    def get(self, queue):
        return self.call(Basic.Get(queue=queue, no_ack=True))

    def answers(self):
        found = [comparable(value) for value in self.amqp.take()]
        if found and found[-1][0] == "Close":
            self.amqp.send(Channel.CloseOk(), Channel.Open())
            self.amqp.take()
        return found


@pytest.mark.parametrize("seed", range(4))
def test_mqtt_and_amqp_deliver_the_same_with_any_room(tmp_path, seed):
    chance = random.Random(seed)
    sides = [Beside(tmp_path / str(bound), bound) for bound in BOUNDS]
    try:
        for number in range(STEPS):
            kind = chance.choice(["mqtt", "mqtt", "amqp", "publish", "publish", "publish", "get"])
            if kind == "mqtt":
                who, packet = choose_mqtt(chance, number)
                found = [side.mqtt[who].send(packet).take() for side in sides]
            elif kind == "amqp":
                method = choose_amqp(chance)
                found = [side.call(method) for side in sides]
            elif kind == "get":
                queue = chance.choice(QUEUES)
                found = [side.get(queue) for side in sides]
            else:
                arguments = chance.choice(["", *EXCHANGES]), chance.choice([*KEYS, "q0"]), b"%d" % number
                found = [side.publish(*arguments) for side in sides]
            assert found[0] == found[1] == found[2]
            received = [side.mqtt[1].take() for side in sides]
            assert received[0] == received[1] == received[2]
    finally:
        for side in sides:
            side.world.close()


@pytest.mark.parametrize("seed", range(3))
def test_rocketmq_stores_and_answers_the_same_with_any_room(tmp_path, seed):
    chance = random.Random(seed)
    sites = [DoorSite(tmp_path / str(bound)) for bound in BOUNDS]
    try:
        peers = [site.connect() for site in sites]
        for site, bound in zip(sites, BOUNDS, strict=True):
            site.broker.caches.limit(bound)
        for number in range(STEPS):
            topic, queue_id = chance.choice(ROCKETMQ_TOPICS), chance.choice([0, 0, 1, 9])
            names = chance.sample(["%LMQ%a", "%LMQ%b", "%LMQ%c"], chance.choice([0, 0, 1, 3]))
            dispatch = f"INNER_MULTI_DISPATCH\x01{','.join(names)}\x02" if names else ""
            if chance.random() < 0.7:
                answers = [
                    peer.send(b"%d" % number, topic=topic, e=str(queue_id), i="UNIQ_KEY\x01k\x02" + dispatch)
                    for peer in peers
                ]
                found = [(answer.code, answer.remark, answer.ext) for answer in answers]
            else:
                offset = chance.randrange(5)
                answers = [peer.pull(topic, offset, queueId=queue_id) for peer in peers]
                found = [(answer.code, answer.remark, answer.ext, bodies_of(answer)) for answer in answers]
            assert found[0] == found[1] == found[2]
    finally:
        for site in sites:
            site.close()
