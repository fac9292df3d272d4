from __future__ import annotations

import json
import shutil

import pytest
from pamqp.commands import Basic, Exchange as ExchangeMethod, Queue

from gateway.amqp.errors import AmqpError
from gateway.amqp.exchanges import Exchange
from gateway.amqp.field_table import Field
from gateway.amqp.queues import VirtualHost
from tests.support.amqp_door import AmqpWorld


def add(world, name, owner=None, **options):
    how = {"durable": True, "auto_delete": False, "owner": owner, "arguments": {}, **options}
    queue = world.amqp.vhost.add(name, **how)
    world.turn()  # in which it is opened
    return queue


def reopen(world):
    world.close()
    world.open()
    return world.amqp.vhost


def test_what_is_durable_is_there_after_a_restart(world):
    vhost = world.amqp.vhost
    exchange = Exchange("x", "topic", durable=True, auto_delete=False, internal=True)
    vhost.add_exchange(exchange)
    for name, options in (("kept", {}), ("gone", {"durable": False}), ("mine", {"owner": object()})):
        add(world, name, **options)
        vhost.bind(exchange, (name, "a.#", None))
    vhost.bind(vhost.exchanges.get("amq.topic"), ("kept", "t.*", None))
    vhost = reopen(world)
    assert [queue.name for queue in vhost] == ["kept"]
    found = vhost.exchanges.get("x")
    assert (found.kind, found.is_internal, list(found.bindings)) == ("topic", True, [("kept", "a.#", None)])
    assert [one.name for one in world.broker.explain(b"t/1")] == [vhost.light_name("kept")]


def test_what_was_removed_is_not_there_after_a_restart(world):
    vhost = world.amqp.vhost
    exchange = Exchange("x", "direct", durable=True, auto_delete=False, internal=False)
    vhost.add_exchange(exchange)
    kept, gone = add(world, "kept"), add(world, "gone")
    for queue in (kept, gone):
        vhost.bind(exchange, (queue.name, "k", None))
    vhost.unbind(exchange, ("kept", "k", None))
    vhost.remove(gone)
    vhost = reopen(world)
    assert [queue.name for queue in vhost] == ["kept"]
    assert list(vhost.exchanges.get("x").bindings) == []
    vhost.remove_exchange(vhost.exchanges.get("x"))
    assert reopen(world).exchanges.find("x") is None


def test_arguments_are_kept_with_their_types_and_read_as_an_older_gateway_kept_them(world):
    arguments = {"x-message-ttl": Field("byte", 10), "x-expires": Field("long", 100_000)}
    add(world, "q", arguments=arguments)
    add(world, "old")
    row = {"durable": True, "auto_delete": False, "arguments": {"x-message-ttl": 7}}
    world.broker.table("amqp").put(json.dumps(["q", "old"]).encode(), json.dumps(row).encode())
    vhost = reopen(world)
    found = {name: (field.kind, field.value) for name, field in vhost.find("q").arguments.items()}
    assert found == {"x-message-ttl": ("byte", 10), "x-expires": ("long", 100_000)}
    assert (vhost.find("q").limit_ms, vhost.find("q").lease_ms) == (10, 100_000)
    assert (vhost.find("old").limit_ms, vhost.find("old").arguments["x-message-ttl"].kind) == (7, "long")


def test_an_exchange_that_deletes_itself_goes_with_its_last_binding(world):
    vhost = world.amqp.vhost
    exchange = Exchange("x", "fanout", durable=True, auto_delete=True, internal=False)
    vhost.add_exchange(exchange)
    one, two = add(world, "one"), add(world, "two")
    vhost.bind(exchange, (one.name, "", None))
    vhost.bind(exchange, (two.name, "", None))
    vhost.unbind(exchange, (one.name, "", None))
    assert vhost.exchanges.find("x") is exchange
    vhost.remove(two)
    assert vhost.exchanges.find("x") is None


@pytest.mark.parametrize("is_killed", [False, True])
def test_an_exchange_that_deletes_itself_goes_with_its_last_queue_also_where_a_kill_comes(
    tmp_path, engine_maker, is_killed
):
    world = AmqpWorld(tmp_path / "0", make_engine=engine_maker, is_prompt=True)
    peer = world.client()
    for name in ("e", "other"):
        said = {"exchange_type": "fanout", "durable": True, "auto_delete": True}
        peer.call(ExchangeMethod.Declare(exchange=name, **said))
        peer.declare(f"of {name}", durable=True)
        peer.call(Queue.Bind(queue=f"of {name}", exchange=name))
        peer.call(Basic.Get(queue=f"of {name}"))  # what is taken and done of it is to be forgotten, too
    world.flushes_by_itself = not is_killed  # the first commit is all that there is of it
    peer.send(Queue.Delete(queue="of e"))
    killed = shutil.copytree(world.data_dir, tmp_path / "1")
    world.close()
    for data_dir in (killed, shutil.copytree(killed, tmp_path / "2")):
        world = AmqpWorld(data_dir, make_engine=engine_maker)
        found = [world.amqp.vhost.exchanges.find(name) is not None for name in ("e", "other")]
        assert (found, world.amqp.vhost.find("of e")) == ([False, True], None)
        world.close()


def test_a_queue_of_another_connection_is_locked(world):
    vhost, owner = world.amqp.vhost, object()
    queue = add(world, "mine", owner)
    assert vhost.get("mine", owner) is queue
    with pytest.raises(AmqpError, match="RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'mine'"):
        vhost.get("mine", object())
    with pytest.raises(AmqpError, match="NOT_FOUND - no queue 'none' in vhost '/'"):
        vhost.get("none", owner)


def test_retention_is_told_what_is_still_needed(world):
    peer = world.client()
    peer.declare("q", durable=True)
    peer.publish(b"1", b"2", b"3", key="q").consume("q").take()
    queue = world.amqp.vhost.find("q")
    assert dict(world.amqp.vhosts.floors())[queue.pop.queue_ref] == 0
    queue.pop.ack_many(world.offsets(0, 1), 2)
    assert dict(world.amqp.vhosts.floors())[queue.pop.queue_ref] == 2


def test_queues_are_opened_when_they_are_used(world):
    vhost = world.amqp.vhost
    for i in range(20):
        add(world, f"q{i}")
    vhost = reopen(world)
    assert len(vhost) == 20
    assert all(queue.opened is None for queue in vhost)
    assert isinstance(vhost, VirtualHost)


PASSING = [
    {"owner": object()},
    {"owner": object(), "durable": False},
    {"durable": False, "auto_delete": True},
    {"durable": False, "arguments": {"x-expires": Field("long", 1_000)}},
]
STAYING = [{}, {"durable": False}, {"auto_delete": True}, {"arguments": {"x-expires": Field("long", 1_000)}}]


@pytest.mark.parametrize("options", PASSING)
def test_queues_that_end_with_their_users_share_a_light_queue_one_after_the_other(world, options):
    vhost = world.amqp.vhost
    names = set()
    for i in range(20):
        queue = add(world, f"q{i}", **options)
        vhost.bind(vhost.exchanges.get("amq.topic"), (queue.name, f"t.{i}", None))
        names.add(queue.light_name)
        assert [one.name for one in world.broker.explain(b"t/%d" % i)] == [queue.light_name]
        vhost.remove(queue)
        assert world.broker.explain(b"t/%d" % i) == []
    assert len(names) == 1
    assert world.store.queue_count() == 1


@pytest.mark.parametrize("options", STAYING)
def test_queues_that_stay_have_a_light_queue_of_their_own_name(world, options):
    assert add(world, "work", **options).light_name == b"%LMQ%amqp%|2f%work"


def test_a_light_queue_by_number_begins_empty_for_each_queue_also_after_a_crash(world):
    peer = world.client()
    for i in range(3):
        assert peer.declare(f"q{i}", exclusive=True).message_count == 0
        peer.publish(b"%d" % i, b"left", key=f"q{i}").consume(f"q{i}", "c")
        assert peer.bodies() == [b"%d" % i, b"left"]
        peer.send(Queue.Delete(queue=f"q{i}")).take()
    peer.declare("q3", exclusive=True)
    peer.publish(b"lost with its queue", key="q3")
    world.close()  # without a word to connections: as a crash leaves the folder
    world.open()
    peer = world.client()
    assert peer.declare("other", exclusive=True).message_count == 0
    peer.publish(b"mine", key="other").publish(b"unroutable", key="q3").consume("other", no_ack=True)
    assert peer.bodies() == [b"mine"]
    assert world.store.find_queue(b"%LMQ%amqp%|2f%|t2") == -1


def test_a_connection_that_deletes_its_exclusive_queues_keeps_nothing_of_them(world):
    peer = world.client()
    for i in range(5):
        peer.declare(f"q{i}", exclusive=True)
        peer.call(Queue.Delete(queue=f"q{i}"))
    peer.declare("kept", exclusive=True)
    vhost = world.amqp.vhost
    assert [list(queues) for queues in vhost._owned.values()] == [["kept"]]
    peer.vanish()
    assert vhost._owned == {}
    assert len(vhost) == 0
    assert len(vhost._leases) == 0


def test_a_queue_at_rest_knows_what_was_taken_and_what_was_done(world):
    peer = world.client()
    peer.declare("q", durable=True)
    peer.publish(*[b"%d" % number for number in range(6)], key="q").consume("q")
    first = peer.messages()
    peer.send(Basic.Ack(first[1].tag, multiple=True), Basic.Cancel("c"))
    peer.take()
    assert peer.declare("q", passive=True).message_count == 0  # the others are with the channel
    peer.send(Basic.Nack(first[-1].tag, multiple=True))
    assert peer.declare("q", passive=True).message_count == 4
    assert peer.consume("q").bodies() == [b"2", b"3", b"4", b"5"]
    peer.send(Basic.Ack(0, multiple=True), Basic.Cancel("c"))
    peer.take()
    assert peer.declare("q", passive=True).message_count == 0
    world.close()
    world.open()
    peer = world.client()
    assert peer.publish(b"6", key="q").consume("q").bodies() == [b"6"]
