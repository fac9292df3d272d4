from __future__ import annotations

import shutil
import weakref

import pytest
from pamqp.commands import Exchange, Queue

from core.lmq.queue_name import amqp_queue_name
from gateway.amqp.dismantling import dismantle
from gateway.amqp.virtual_hosts import CLOSED_AT_ONCE
from gateway.auth.user_rows import NameRow
from tests.support.amqp_door import AmqpWorld


def make_world(folder, engine_maker, kind=AmqpWorld, **settings):
    return kind(folder, make_engine=engine_maker, vhosts=("v1",), **settings)


def delete(world):
    world.amqp.vhosts.delete(world.amqp.vhosts.find("v1"), world.now_ms)


def settle(world):
    world.turn()
    while world.broker.has_work:
        world.turn()


@pytest.fixture
def world(tmp_path, engine_maker):
    world = make_world(tmp_path, engine_maker)
    yield world
    world.close()


def fill(world, vhost="v1", count=5):
    """Declare queues, exchanges and bindings of all kinds; return the client."""
    peer = world.client(vhost=vhost)
    peer.call(Exchange.Declare(exchange="x", exchange_type="topic", durable=True))
    peer.call(Exchange.Declare(exchange="y", exchange_type="fanout", durable=True, auto_delete=True))
    peer.call(Exchange.Bind(destination="y", source="x", routing_key="#"))
    peer.call(Exchange.Bind(destination="amq.direct", source="amq.fanout"))
    for i in range(count):
        peer.declare(f"q{i}", durable=True)
        for exchange in ("x", "y", "amq.topic", "amq.direct"):
            peer.call(Queue.Bind(queue=f"q{i}", exchange=exchange, routing_key=f"k.{i}"))
        peer.publish(b"old", key=f"q{i}")
    peer.declare("mine", exclusive=True)
    peer.declare("passing", auto_delete=True)
    return peer


def rows_of(world):
    return list(dict(world.broker.table("amqp").items()))


@pytest.mark.parametrize(("count", "is_at_once"), [(CLOSED_AT_ONCE, True), (CLOSED_AT_ONCE + 1, False)])
def test_connections_are_closed_and_many_of_them_from_the_next_turn_on(world, count, is_at_once):
    peers = [world.client(vhost="v1") for _ in range(count)]
    delete(world)
    assert bool(peers[0].transport.sent) == is_at_once
    settle(world)
    for peer in peers:
        (closed,) = peer.take()
        assert (closed.name, closed.reply_code) == ("Connection.Close", 320)


@pytest.mark.parametrize("topic_vhost", ["/", "v1"])
def test_nothing_is_left_of_a_virtual_host(tmp_path, topic_vhost, engine_maker):
    world = make_world(tmp_path, engine_maker, mqtt_vhost=topic_vhost)
    peer = fill(world)
    (other,) = (world.client(),)
    other.declare("kept", durable=True)
    world.amqp.vhosts.delete(world.amqp.vhosts.find("v1"), world.now_ms)
    settle(world)
    (closed,) = peer.take()
    assert (closed.reply_code, closed.class_id, closed.method_id) == (320, 0, 0)
    assert closed.reply_text == "CONNECTION_FORCED - vhost 'v1' is down"
    assert peer.is_closed
    assert rows_of(world) == [b'["q", "kept"]']
    assert world.log_in(vhost="v1").opening[-1].reply_text == "NOT_ALLOWED - vhost v1 not found"
    assert world.broker.explain(b"k/1") == []
    assert other.declare("kept", passive=True).queue == "kept"
    world.close()


def test_next_one_of_that_name_is_empty(world):
    fill(world)
    delete(world)
    settle(world)
    world.amqp.vhosts.make("v1")
    peer = world.client(vhost="v1")
    assert {exchange.name for exchange in world.amqp.vhosts.find("v1").exchanges} == {
        "", "amq.direct", "amq.fanout", "amq.headers", "amq.match", "amq.rabbitmq.trace", "amq.topic",
    }  # fmt: skip
    assert peer.declare("q1", durable=True).message_count == 0
    assert world.amqp.vhosts.find("v1").find("q1").light_name == amqp_queue_name(b"v1", b"q1")
    peer.publish(b"new", key="q1")
    assert peer.consume("q1").bodies() == [b"new"]


def test_deletion_that_a_kill_broke_off_goes_on(tmp_path, engine_maker):
    for steps in (0, 1, 3, 10, 30):
        world = make_world(tmp_path / str(steps), engine_maker)
        fill(world)
        vhost = world.amqp.vhosts.find("v1")
        world.amqp.vhosts.chores.start = lambda *_, **__: None  # nothing of it is done but what is done here
        world.amqp.vhosts.delete(vhost, world.now_ms)
        work = dismantle(vhost, world.now_ms)
        for _ in range(steps):
            next(work)
        world.flush()
        killed = shutil.copytree(tmp_path / str(steps), tmp_path / f"killed-{steps}")
        world.close()
        world = AmqpWorld(killed, make_engine=engine_maker)
        settle(world)
        assert world.amqp.vhosts.find("v1") is None
        assert rows_of(world) == []
        world.close()
        world.open()
        assert [one.name for one in world.amqp.vhosts] == ["/"]
        world.close()


def test_one_that_is_made_again_meanwhile_is_made_when_the_last_is_gone(world):
    fill(world, count=100)
    delete(world)
    world.amqp.vhosts.make_all(["v1"])
    assert world.amqp.vhosts.find("v1") is None
    settle(world)
    assert len(world.amqp.vhosts.find("v1")) == 0


class WorldOfUsers(AmqpWorld):
    """Has users in its store."""

    def make_authenticator(self):
        made = super().make_authenticator()
        made.keep_users(self.broker.table("auth_users"))
        return made


def test_the_name_is_free_when_nobody_has_rights_there_also_behind_a_kill(tmp_path, engine_maker):
    world = make_world(tmp_path / "before", engine_maker, kind=WorldOfUsers)
    stored = world.authenticator.stored
    for number in range(100):
        for vhost in ("v1", "v2"):
            stored.set_names(vhost, f"u{number}", NameRow(".*", ".*", ".*"))
    free = []
    delete(world)
    world.amqp.vhosts.when_gone("v1", lambda: free.append(sum(rows.may_enter("v1") for rows in stored.rows.values())))
    world.flush()
    killed = shutil.copytree(tmp_path / "before", tmp_path / "killed")
    settle(world)
    assert free == [0]
    world.close()
    for folder in (tmp_path / "before", killed):
        world = WorldOfUsers(folder, make_engine=engine_maker)
        settle(world)
        assert world.amqp.vhosts.find("v1") is None
        assert not world.amqp.vhosts.is_going("v1")
        assert [list(rows) for rows in world.authenticator.stored.names.values()] == [["v2"]] * 100
        world.close()


def test_many_queues_go_in_many_turns(world):
    fill(world, count=150)
    delete(world)
    assert len(rows_of(world)) > 100
    settle(world)
    assert rows_of(world) == []


class Resident:
    """A connection that is gone once it was turned out."""

    def __init__(self, host):
        self._host = host

    def turn_out(self, now_ms, reason=""):
        self._host.connections.discard(self)


def test_connections_that_are_gone_are_freed_one_by_one_and_not_all_at_the_end(world):
    vhost = world.amqp.vhosts.find("v1")
    known = []
    for _ in range(50):
        one = Resident(vhost)
        vhost.connections.add(one)
        known.append(weakref.ref(one))
    del one
    for turned_out, _ in enumerate(dismantle(vhost, 0), 1):
        assert sum(one() is not None for one in known) <= max(51 - turned_out, 0)
    assert not vhost.connections
