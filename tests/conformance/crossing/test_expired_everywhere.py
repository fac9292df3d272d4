"""What has outlived its time to live is given to no reader of any door, whichever door it came by; streams keep it."""

from __future__ import annotations

import pytest
from pamqp.commands import Basic, Queue

from core.lmq.queue_name import mqtt_queue_name
from gateway.amqp.policies import Policy
from gateway.mqtt.properties import Property
from tests.support import amqp, mqtt
from tests.support.amqp_door import Message
from tests.support.crossing import CrossingWorld
from tests.support.mqtt_5 import encoded, enter, got
from tests.support.mqtt_door import World
from tests.support.rocketmq_door import Peer as RocketmqPeer, bodies_of
from tests.support.rocketmq_pop import pop, pop_fields

LIFE_S = 5
SOURCES = ("AMQP", "MQTT 5", "RocketMQ")
BOTH = {b"short", b"long"}
PEEK = 200_052


class Site:
    """What a client of RocketMQ needs of a world, with its clock."""

    engine = None

    def __init__(self, world):
        self.world = world
        self.door = world.rocketmq

    @property
    def now_ms(self):
        return self.world.now_ms

    def turn(self):
        self.world.turn()

    def open_queues(self):
        pass


class Readers:
    """Readers of everything, each away while messages come; what one gets is the set of bodies that `READERS` say."""

    def __init__(self, world):
        self.world = world
        World.client(world, b"old", (b"#", 1), clean=False).vanish()
        lasting = (Property.SESSION_EXPIRY, 600)
        enter(world, b"new", lasting, filters=((b"#", 1),)).vanish()
        enter(world, b"member", lasting, filters=((b"$share/g/plant/#", 1),)).vanish()
        self.service = world.client_of_amqp()
        for name in ("got", "consumed", "read", "popped", "pulled", "peeked"):
            self.service.declare(name, durable=True)
            self.service.call(Queue.Bind(queue=name, exchange="amq.topic", routing_key="#"))
        self.client = RocketmqPeer(Site(world), 901, b"\x7f\0\0\1\0\0\x2a\x9f")
        self.client.site.engine = world.engine

    def light(self, name):
        return self.world.amqp.vhost.light_name(name).decode()

    def old(self):
        peer = self.world.connect(b"old", clean=False)
        return {one.body for one in peer.take_deliveries()}

    def new(self, client_id=b"new"):
        lasting = encoded((Property.SESSION_EXPIRY, 600))
        peer = self.world.dial().send(mqtt.connect_5(client_id, clean=False, properties=lasting))
        self.world.turn()
        return {one.body for one in got(peer)}

    def member(self):
        return self.new(b"member")

    def got(self):
        found = set()
        while isinstance(answer := self.service.call(Basic.Get(queue="got", no_ack=True)), Message):
            found.add(answer.body)
        return found

    def consumed(self):
        return set(self.service.consume("consumed", no_ack=True).bodies())

    def read(self):
        self.service.call(Basic.Qos(prefetch_count=10))
        arguments = {"x-stream-offset": "first"}
        return set(self.service.consume("read", "r", arguments=arguments).bodies())

    def pulled(self):
        return set(bodies_of(self.client.pull(self.light("pulled"))))

    def pulled_filter(self):
        return set(bodies_of(self.client.pull(mqtt_queue_name(b"#").decode())))

    def pulled_parent(self):
        return set(bodies_of(self.client.pull("LMQ_PARENT")))

    def popped(self):
        return {one.body for one in pop(self.client, self.light("popped"))}

    def peeked(self):
        return set(bodies_of(self.client.ask(PEEK, **pop_fields(self.light("peeked")))))


READERS = (
    "old", "new", "member", "got", "consumed", "read", "pulled", "pulled_filter", "pulled_parent", "popped", "peeked"
)  # fmt: skip


@pytest.fixture
def world(tmp_path, engine_maker):
    world = CrossingWorld(tmp_path, make_engine=engine_maker)
    yield world
    world.close()


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("source", SOURCES)
def test_what_is_expired_is_given_to_nobody(world, source, reader):
    readers = Readers(world)
    world.publish(source, {"topic": b"plant/1", "body": b"short", "time to live": LIFE_S})
    world.publish(source, {"topic": b"plant/1", "body": b"long"})
    world.turn()
    world.now_ms += 1_000 * LIFE_S
    world.turn()
    assert getattr(readers, reader)() == {b"long"}


@pytest.mark.parametrize("reader", READERS)
def test_until_then_it_is_given(world, reader):
    readers = Readers(world)
    world.publish("AMQP", {"topic": b"plant/1", "body": b"short", "time to live": LIFE_S})
    world.publish("AMQP", {"topic": b"plant/1", "body": b"long"})
    world.turn()
    world.now_ms += 1_000 * LIFE_S - 1
    assert getattr(readers, reader)() == BOTH


class Queued:
    """A queue `q` with a time to live, and clients of RocketMQ that read it."""

    def __init__(self, world, **arguments):
        self.world = world
        self.service = world.client_of_amqp()
        self.service.declare("q", durable=True, arguments={"x-" + k.replace("_", "-"): v for k, v in arguments.items()})
        self.client = RocketmqPeer(Site(world), 901, b"\x7f\0\0\1\0\0\x2a\x9f")
        self.client.site.engine = world.engine

    def publish(self, body, **properties):
        self.service.publish(body, key="q", **properties)

    def pull(self):
        return bodies_of(self.client.pull(self.world.amqp.vhost.light_name("q").decode()))

    def pop(self):
        return [one.body for one in pop(self.client, self.world.amqp.vhost.light_name("q").decode())]


@pytest.mark.parametrize("how", ["pull", "pop"])
def test_time_of_a_queue_holds_for_readers_of_rocketmq(world, how):
    queued = Queued(world, message_ttl=5_000)
    queued.publish(b"first")
    world.now_ms += 5_000
    queued.publish(b"second")
    assert getattr(queued, how)() == [b"second"]


def test_popped_message_that_is_expired_when_it_would_come_again_is_done(world):
    queued = Queued(world, message_ttl=90_000)
    queued.publish(b"first")
    assert queued.pop() == [b"first"]
    world.now_ms += 90_000
    world.turn()
    assert queued.pop() == []
    found = world.broker.pop.find(world.amqp.vhost.light_name("q"), b"rocketmq:g")
    assert (found.ready_count, found.unacked_count) == (0, 0)


def test_time_that_a_policy_says_holds_and_ends_with_it(world):
    queued = Queued(world)
    queued.publish(b"first")
    world.now_ms += 5_000
    policies = world.amqp.vhosts
    policies.put_policy(policy := Policy("/", "p", "^q$", {"message-ttl": 5_000}))
    world.turn()
    assert queued.pull() == []
    policies.delete_policy(policy)
    world.turn()
    assert queued.pull() == [b"first"]


def test_time_of_a_queue_holds_after_a_start_until_its_end(world):
    Queued(world, message_ttl=5_000).publish(b"first")
    world.flush()
    world.store.close()
    world.now_ms += 5_000
    world.open()
    queued = Queued(world, message_ttl=5_000)
    assert queued.pull() == []
    light_name = world.amqp.vhost.light_name("q").decode()
    queued.service.call(Queue.Delete(queue="q"))
    assert bodies_of(queued.client.pull(light_name)) == [b"first"]  # the log still has it


@pytest.mark.parametrize("how", ["pull", "pop", "consume"])
def test_a_stream_keeps_what_is_expired(world, how):
    queued = Queued(world, queue_type="stream")
    queued.publish(b"first", expiration="5000")
    world.now_ms += 5_000
    if how == "consume":
        queued.service.call(Basic.Qos(prefetch_count=10))
        found = queued.service.consume("q", arguments={"x-stream-offset": "first"}).bodies()
    else:
        found = getattr(queued, how)()
    assert found == [b"first"]


@pytest.mark.here(reason="counts the pulls that it takes")
def test_pull_goes_on_behind_thousands_that_are_expired(world):
    queued = Queued(world)
    queued.service.write(*[amqp.publish(1, b"old", key="q", expiration="10")] * 6_000)
    queued.publish(b"new")
    world.now_ms += 10
    offset, found = 0, []
    for _ in range(10):
        answer = queued.client.pull(world.amqp.vhost.light_name("q").decode(), offset)
        found += bodies_of(answer)
        offset = int(answer.ext["nextBeginOffset"])
    assert (found, offset) == ([b"new"], 6_001)
