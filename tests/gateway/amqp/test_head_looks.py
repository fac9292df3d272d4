"""Expired messages at the heads of queues are let go of; queues in which nothing is are passed over."""

from __future__ import annotations

import pytest
from pamqp.commands import Basic, Queue

from gateway.admin.rosters.held_figures import HeldFigures
from gateway.amqp import head_looks
from gateway.amqp.policies import Policy
from gateway.amqp.queue_pops import QueuePops


@pytest.fixture
def looked(monkeypatch):
    """Returns the light queues that were looked at, in order."""
    found = []
    floor = QueuePops.floor

    def note(self, light_name, default):
        found.append(light_name.rpartition(b"%")[2].decode())
        return floor(self, light_name, default)

    monkeypatch.setattr(QueuePops, "floor", note)
    return found


def look(world):
    world.amqp.vhosts.drop_expired(world.now_ms)
    world.turn()


def tend(world):
    for _ in range(3):  # a queue that is not open yet is opened, and then looked at
        look(world)


def test_a_queue_is_looked_at_again_only_once_something_came(world, looked):
    peer = world.client()
    for name in ("a", "b"):
        peer.declare(name)
    tend(world)
    assert set(looked) == {"a", "b"}
    looked.clear()
    tend(world)
    assert looked == []
    peer.publish(b"x", key="b")
    look(world)
    assert looked == ["b"]


def test_a_queue_is_looked_at_for_as_long_as_something_is_in_it(world, looked):
    peer = world.client()
    peer.declare("q")
    peer.publish(b"x", key="q")
    tend(world)
    looked.clear()
    look(world)
    assert looked == ["q"]
    peer.call(Queue.Purge(queue="q"))
    tend(world)
    looked.clear()
    look(world)
    assert looked == []


@pytest.mark.parametrize("at_once", [1, 2, 1_024])
def test_what_expires_later_in_a_queue_that_was_empty_is_let_go_of(world, monkeypatch, at_once):
    monkeypatch.setattr(head_looks, "AT_ONCE", at_once)
    peer = world.client()
    for name in ("a", "b", "c"):
        peer.declare(name)
    tend(world)
    peer.publish(b"1", b"2", key="b", expiration="100").publish(b"3", key="b")
    tend(world)
    before = dict(world.amqp.vhosts.floors())
    world.now_ms += 100
    tend(world)
    after = dict(world.amqp.vhosts.floors())
    assert sorted(after[ref] - before.get(ref, 0) for ref in after) == [0, 0, 2]


def test_a_queue_that_is_declared_again_is_looked_at(world, looked):
    peer = world.client()
    peer.declare("q")
    peer.publish(b"x", key="q")
    peer.call(Queue.Purge(queue="q"))
    tend(world)
    peer.call(Queue.Delete(queue="q"))
    peer.declare("q")
    looked.clear()
    tend(world)
    assert "q" in looked
    peer.publish(b"y", key="q", expiration="5")
    world.now_ms += 5
    tend(world)
    assert peer.declare("q", passive=True).message_count == 0


def test_queues_of_a_deleted_virtual_host_are_forgotten(world):
    vhosts = world.amqp.vhosts
    vhosts.make("other")
    tend(world)
    assert len(vhosts._head_looks._hosts) == 2
    vhosts.delete(vhosts.find("other"), world.now_ms)
    world.turn()
    tend(world)
    assert len(vhosts._head_looks._hosts) == 1


def test_a_message_that_never_expires_is_read_once_until_it_is_done(world, monkeypatch):
    peer = world.client()
    peer.declare("q")
    peer.publish(b"1", b"2", key="q")
    tend(world)
    read, found = head_looks.find_head_expiry, []

    def note(broker, queue, offset, stored):
        found.append(queue.name)
        return read(broker, queue, offset, stored)

    monkeypatch.setattr(head_looks, "find_head_expiry", note)
    tend(world)
    assert found == []
    peer.publish(b"3", key="q", expiration="50")
    tend(world)
    assert found == []  # it is not the first
    for body in (b"1", b"2"):
        assert peer.call(Basic.Get(queue="q", no_ack=True)).body == body
    world.now_ms += 50
    tend(world)
    assert "q" in found
    assert peer.declare("q", passive=True).message_count == 0


def test_messages_of_a_queue_that_a_policy_gives_a_limit_are_let_go_of(world):
    peer = world.client()
    peer.declare("q")
    peer.publish(b"1", b"2", key="q")
    tend(world)
    before = dict(world.amqp.vhosts.floors())
    world.amqp.vhosts.put_policy(Policy("/", "short", "q", {"message-ttl": 100}))
    world.now_ms += 100
    tend(world)
    after = dict(world.amqp.vhosts.floors())
    assert [after[ref] - before[ref] for ref in after] == [2]


@pytest.mark.here(reason="what lies in queues is told of messages that are here")
def test_a_queue_of_which_the_api_knows_all_is_not_looked_at(world, looked):
    peer, vhost = world.client(), world.amqp.vhost
    for name in ("a", "b", "c"):
        peer.declare(name)
    peer.publish(b"x", key="a").publish(b"x", key="c").publish(b"x", key="b", expiration="60000")

    def found_out():
        list(HeldFigures(vhost).take_in(0, 3))
        looked.clear()
        tend(world)
        return set(looked)

    tend(world)
    assert found_out() == {"b"}  # which grows too old one day
    peer.publish(b"y", key="a")
    tend(world)
    assert "a" in looked
    assert found_out() == {"b"}
    peer.call(Basic.Get(queue="a", no_ack=True))
    looked.clear()
    tend(world)
    assert "a" in looked
    world.amqp.vhosts.put_policy(Policy("/", "short", "c", {"message-ttl": 100}))
    world.now_ms += 100
    tend(world)
    assert {entry.name: entry.ready for entry in world.amqp.inventory().queues() if entry} == {"a": 1, "b": 1, "c": 0}


@pytest.mark.here(reason="what lies in queues is told of messages that are here")
def test_a_limit_that_a_policy_gives_holds_where_the_api_asks_before_the_next_look(world):
    peer, vhost = world.client(), world.amqp.vhost
    peer.declare("q")
    peer.publish(b"x", key="q")
    tend(world)
    before = dict(world.amqp.vhosts.floors())
    world.amqp.vhosts.put_policy(Policy("/", "short", "q", {"message-ttl": 100}))
    list(HeldFigures(vhost).take_in(0, 1))
    world.now_ms += 100
    tend(world)
    after = dict(world.amqp.vhosts.floors())
    assert [after[ref] - before[ref] for ref in after] == [1]


@pytest.mark.here(reason="what lies in queues is told of messages that are here")
def test_what_grows_too_old_behind_a_message_is_let_go_of_where_the_api_asked_before_the_next_look(world):
    peer, held = world.client(), HeldFigures(world.amqp.vhost)
    queue = peer.declare("q") and world.amqp.vhost.find("q")
    peer.publish(b"1", key="q").publish(b"2", key="q", expiration="100")
    tend(world)
    assert list(held.read(0, 1, is_seen=True).ready) == [2]
    assert peer.call(Basic.Get(queue="q", no_ack=True)).body == b"1"
    queue.rest()
    assert list(held.read(0, 1, is_seen=True).ready) == [1]
    world.now_ms += 100
    tend(world)
    assert list(held.read(0, 1, is_seen=True).ready) == [0]
