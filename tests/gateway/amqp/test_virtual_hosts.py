from __future__ import annotations

import shutil

import pytest
from pamqp.commands import Basic, Connection, Exchange, Queue, Tx

from gateway.amqp.host_profile import QUEUES_MAX, HostProfile
from gateway.settings.models import AmqpSettings, GatewaySettings
from tests.support import amqp
from tests.support.amqp_door import AmqpWorld
from tests.support.amqp_queues import drain
from tests.support.walks import all_of


def queues_of(world):
    return sorted((entry.vhost, entry.name) for entry in all_of(world.amqp.inventory().queues()))


def test_new_folder_has_one_virtual_host(world):
    assert [vhost.name for vhost in world.amqp.vhosts] == ["/"]
    assert world.amqp.vhosts.find("other") is None


def test_queue_of_one_name_in_two_virtual_hosts_is_two_queues(world):
    world.amqp.vhosts.make("other")
    here, there = world.client(), world.client(vhost="other")
    assert isinstance(there.opening[-1], Connection.OpenOk)
    for peer in (here, there):
        peer.declare("q")
    here.publish(b"here")
    there.publish(b"1", b"2")
    assert here.declare("q", passive=True).message_count == 1
    assert there.declare("q", passive=True).message_count == 2
    assert here.consume("q").bodies() == [b"here"]
    assert there.consume("q").bodies() == [b"1", b"2"]
    assert queues_of(world) == [("/", "q"), ("other", "q")]


def test_virtual_hosts_and_what_they_have_outlive_the_process(world):
    world.amqp.vhosts.make("other")
    peer = world.client(vhost="other")
    peer.declare("kept", durable=True)
    peer.declare("gone")
    peer.publish(b"x", key="kept")
    world.close()
    world.open()
    assert [vhost.name for vhost in world.amqp.vhosts] == ["/", "other"]
    assert queues_of(world) == [("other", "kept")]
    assert world.client(vhost="other").consume("kept").bodies() == [b"x"]


def test_delayed_message_stays_in_its_virtual_host(world):
    world.amqp.vhosts.make("other")
    for vhost in ("/", "other"):
        peer = world.client(vhost=vhost)
        arguments = {"x-delayed-type": "direct"}
        peer.call(Exchange.Declare(exchange="x", exchange_type="x-delayed-message", durable=True, arguments=arguments))
        peer.declare("q", durable=True)
        peer.call(Queue.Bind(queue="q", exchange="x", routing_key="k"))
    peer.publish(b"later", exchange="x", key="k", headers={"x-delay": 1_000})
    world.now_ms += 1_100
    world.broker.request_run(world.broker.timer)
    while world.broker.has_work:
        world.turn()
    assert world.client(vhost="other").consume("q").bodies() == [b"later"]
    assert world.client().consume("q").bodies() == []


@pytest.mark.parametrize("shared", ["/", "plant"])
def test_topics_of_mqtt_are_those_of_one_virtual_host(tmp_path, engine_maker, shared):
    world = AmqpWorld(tmp_path, make_engine=engine_maker, vhosts=("plant",), mqtt_vhost=shared)
    device = world.client_of_mqtt(b"d", (b"#", 0))
    peers = {}
    for vhost in ("/", "plant"):
        peers[vhost] = world.client(vhost=vhost)
        peers[vhost].call(Exchange.Declare(exchange="x", exchange_type="fanout"))
        peers[vhost].call(Exchange.Bind(destination="x", source="amq.topic", routing_key="a.*"))
        for queue, source, key in (("q", "amq.topic", "#"), ("r", "amq.topic", "*.b"), ("s", "x", "")):
            peers[vhost].declare(queue)
            peers[vhost].call(Queue.Bind(queue=queue, exchange=source, routing_key=key))
            peers[vhost].consume(queue, tag=queue)
            peers[vhost].take()
    device.publish(b"a/b", b"of a device")
    heard = {vhost: [message.body for message in peer.messages()] for vhost, peer in peers.items()}
    assert heard == {vhost: [b"of a device"] * 3 if vhost == shared else [] for vhost in peers}
    device.bodies()
    for vhost, peer in peers.items():
        peer.publish(vhost.encode(), exchange="amq.topic", key="a.b")
    assert device.bodies() == [shared.encode()]
    for vhost, peer in peers.items():
        messages = peer.messages()
        assert [message.body for message in messages] == [vhost.encode()] * 3
        assert {(message.method.exchange, message.method.routing_key) for message in messages} == {("amq.topic", "a.b")}
    world.close()


def test_headers_decide_behind_amq_topic_where_no_device_publishes_to_it(world):
    world.amqp.vhosts.make("other")
    peer = world.client(vhost="other")
    answer = peer.call(Exchange.Bind(destination="amq.headers", source="amq.topic", routing_key="a"))
    assert isinstance(answer, Exchange.BindOk)
    peer.declare("q")
    arguments = {"x-match": "all", "kind": "new"}
    peer.call(Queue.Bind(queue="q", exchange="amq.headers", routing_key="", arguments=arguments))
    peer.publish(b"new", exchange="amq.topic", key="a", headers={"kind": "new"})
    peer.publish(b"old", exchange="amq.topic", key="a", headers={"kind": "old"})
    assert peer.consume("q").bodies() == [b"new"]


def test_dead_letters_alternates_and_commits_stay_in_their_virtual_host(world):
    world.amqp.vhosts.make("other")
    here, there = world.client(), world.client(vhost="other")
    for peer in (here, there):
        peer.call(Exchange.Declare(exchange="dead", exchange_type="fanout"))
        peer.call(Exchange.Declare(exchange="lost", exchange_type="fanout"))
        odd = {"alternate-exchange": "lost"}
        peer.call(Exchange.Declare(exchange="x", exchange_type="direct", arguments=odd))
        for queue, source in (("graves", "dead"), ("finds", "lost")):
            peer.declare(queue)
            peer.call(Queue.Bind(queue=queue, exchange=source, routing_key=""))
        peer.declare("q", arguments={"x-dead-letter-exchange": "dead", "x-max-length": 0})
    there.publish(b"too much", key="q")
    there.call(Tx.Select())
    there.publish(b"unbound", exchange="x", key="none")
    there.call(Tx.Commit())
    counts = {
        vhost: [peer.declare(queue, passive=True).message_count for queue in ("graves", "finds")]
        for vhost, peer in (("/", here), ("other", there))
    }
    assert counts == {"/": [0, 0], "other": [1, 1]}


def test_there_are_as_many_queues_as_there_may_be(world):
    world.amqp.vhosts.make("v1", HostProfile().with_limit(QUEUES_MAX, 2))
    world.close()
    world.open()
    peer = world.client(vhost="v1")
    for name in ("a", "b", "b"):
        assert isinstance(peer.declare(name), Queue.DeclareOk)
    close = peer.declare("c")
    assert (close.reply_code, close.class_id, close.method_id) == (406, 50, 10)
    reason = "cannot declare queue 'c': queue limit in vhost 'v1' (2) is reached"  # RabbitMQ 3.10.8's words
    assert close.reply_text == f"PRECONDITION_FAILED - {reason}"
    assert isinstance(world.client().declare("c"), Queue.DeclareOk)


def test_settings_make_virtual_hosts(tmp_path, engine_maker):
    world = AmqpWorld(tmp_path, make_engine=engine_maker, vhosts=("a", "b"), mqtt_vhost="plant")
    assert [vhost.name for vhost in world.amqp.vhosts] == ["/", "plant", "a", "b"]
    world.amqp.reload(GatewaySettings(amqp=AmqpSettings(vhosts=("b", "c"))))
    assert [vhost.name for vhost in world.amqp.vhosts] == ["/", "plant", "a", "b", "c"]
    world.close()


def test_first_virtual_host_can_be_deleted_where_settings_do_not_name_it(tmp_path, engine_maker):
    world = AmqpWorld(tmp_path, make_engine=engine_maker, mqtt_vhost="plant")
    world.amqp.vhosts.delete(world.amqp.vhosts.find("/"), world.now_ms)
    world.turn()
    world.close()
    world.open()
    assert [vhost.name for vhost in world.amqp.vhosts] == ["plant"]
    world.close()


def test_hundreds_are_tended_and_listed(world):
    for i in range(300):
        world.amqp.vhosts.make(f"v{i}")
    peer = world.client(vhost="v299")
    peer.declare("q", arguments={"x-expires": 1_000, "x-message-ttl": 10})
    peer.publish(b"old", key="q")
    world.now_ms += 100
    for work in (world.amqp.vhosts.drop_expired, world.amqp.vhosts.remove_unused, world.amqp.vhosts.expire_first):
        work(world.now_ms)
    world.turn()
    assert list(world.amqp.vhosts.floors()) == [(world.amqp.vhosts.find("v299").find("q").pop.queue_ref, 1)]
    assert [entry.name for entry in world.amqp.inventory().queues() if entry is not None] == ["q"]
    world.close()
    world.open()
    assert len(world.amqp.vhosts) == 301
    assert len(world.amqp.vhosts.find("v299")) == 0


def test_what_came_to_a_queue_that_nobody_opened_is_kept_from_retention(world):
    peer = world.client()
    peer.declare("old", durable=True)
    peer.publish(b"0", key="old").consume("old")
    peer.send(Basic.Ack(0, multiple=True), Queue.Delete(queue="old"))
    peer.take()
    for name in ("old", "new"):
        peer.declare(name, durable=True)
    peer.publish(b"1", b"2", key="old").publish(b"3", key="new")
    refs = {name: world.broker.find_queue(world.amqp.vhost.light_name(name)) for name in ("old", "new")}
    held = dict(world.amqp.vhosts.floors())
    assert (held[refs["old"]], held[refs["new"]]) == (1, 0)
    floors = world.amqp.vhosts.floors()
    first = next(floors)
    peer.consume("old", tag="o").consume("new", tag="n")  # between two steps of a round
    assert {first[0], *dict(floors)} >= set(refs.values())
    world.close()
    world.open()
    assert dict(world.amqp.vhosts.floors()) == held
    assert world.client().consume("old").bodies() == [b"1", b"2"]


def kill_while_deleting(world, folder, *then):
    """Have the process end after `q` is deleted, and before that is answered; go on with what it left.

    Other methods are sent behind the deletion by a second connection.
    """
    other = world.client()
    peer = world.client()
    world.flushes_by_itself = False
    peer.send(Queue.Delete(queue="q"))
    if then:
        other.send(*then)
    assert peer.take() == other.take() == []
    world.data_dir = shutil.copytree(world.data_dir, folder)
    world.close()
    world.flushes_by_itself = True
    world.open()


TO_DEAD = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}


@pytest.mark.parametrize(
    "arguments",
    [{}, {"x-max-priority": 3}, {"x-max-length-bytes": 100}, {"x-max-priority": 3, "x-max-length-bytes": 100}, TO_DEAD],
    ids=str,
)
def test_a_kill_before_a_deletion_is_answered_leaves_a_queue_as_it_was(tmp_path, arguments):
    world = AmqpWorld(tmp_path / "before", is_sync=True)
    peer = world.client()
    peer.declare("dead", durable=True)
    peer.declare("q", durable=True, arguments=arguments)
    peer.publish(b"of an older queue", key="q", delivery_mode=2)
    peer.call(Queue.Delete(queue="q"))
    peer.declare("q", durable=True, arguments=arguments)
    peer.publish(b"done", b"rejected", b"left", key="q", priority=2, delivery_mode=2)
    peer.send(Basic.Ack(peer.call(Basic.Get(queue="q")).tag))
    peer.send(Basic.Nack(peer.call(Basic.Get(queue="q")).tag, requeue=False))
    kill_while_deleting(world, tmp_path / "after")
    peer = world.client()
    assert (drain(peer, "q"), drain(peer, "dead")) == ([b"left"], [b"rejected"] if arguments == TO_DEAD else [])
    world.close()


def test_a_kill_before_a_deletion_is_answered_makes_no_second_letters_of_what_was_refused(tmp_path):
    world = AmqpWorld(tmp_path / "before", is_sync=True)
    peer = world.client()
    peer.declare("dead", durable=True)
    arguments = TO_DEAD | {"x-max-length": 1, "x-overflow": "reject-publish-dlx"}
    peer.declare("q", durable=True, arguments=arguments)
    peer.publish(b"1", b"refused", key="q", delivery_mode=2)
    assert drain(peer, "dead") == [b"refused"]
    kill_while_deleting(world, tmp_path / "after")
    peer = world.client()
    assert (drain(peer, "q"), drain(peer, "dead")) == ([b"1"], [])
    world.close()


@pytest.mark.parametrize("before", [{}, {"x-max-priority": 3}, {"x-max-length-bytes": 100}, TO_DEAD], ids=str)
@pytest.mark.parametrize("after", [{}, {"x-max-priority": 5}, {"x-message-ttl": 1_000}], ids=str)
def test_a_kill_before_a_deletion_and_a_new_declaration_are_answered_leaves_the_old_queue(tmp_path, before, after):
    world = AmqpWorld(tmp_path / "before", is_sync=True)
    peer = world.client()
    peer.declare("dead", durable=True)
    peer.declare("q", durable=True, arguments=before)
    peer.publish(b"done", b"left", key="q", priority=2, delivery_mode=2)
    peer.send(Basic.Ack(peer.call(Basic.Get(queue="q")).tag))
    kill_while_deleting(world, tmp_path / "after", Queue.Declare(queue="q", durable=True, arguments=after))
    world.now_ms += 10_000
    peer = world.client()
    assert peer.declare("q", durable=True, arguments=before).message_count == 1
    assert drain(peer, "q") == [b"left"]
    world.close()


def test_a_queue_that_is_declared_behind_its_deletion_begins_empty_and_takes_no_turns_meanwhile(tmp_path):
    world = AmqpWorld(tmp_path, is_sync=True)
    peer, other = world.client(), world.client()
    peer.declare("q", durable=True)
    peer.publish(b"old", key="q", delivery_mode=2)
    world.flushes_by_itself = False
    peer.send(Queue.Delete(queue="q"))
    other.begin(amqp.method(1, Queue.Declare(queue="q", durable=True, arguments={"x-max-length": 5})))
    world.step()
    assert other not in world.waiting
    assert not other.transport.wants_turn
    assert not other.transport.is_reading
    world.flushes_by_itself = True
    world.turn()
    (answer,) = other.take()
    assert (answer.name, answer.message_count) == ("Queue.DeclareOk", 0)
    assert other.transport.is_reading
    assert isinstance(peer.take()[0], Queue.DeleteOk)
    other.publish(b"new", key="q", delivery_mode=2)
    world.close()
    world.open()
    assert drain(world.client(), "q") == [b"new"]
    world.close()


def test_queues_come_back_by_name_so_that_their_light_queues_follow_each_other(tmp_path):
    world = AmqpWorld(tmp_path, is_sync=True)
    peer, names = world.client(), [f"q{number:04}" for number in range(300)]
    for name in names:
        peer.declare(name, durable=True)
    world.close()
    world.open()
    vhost = world.amqp.vhost
    assert [queue.name for queue in vhost] == names
    for _ in vhost.rows.take_in():
        pass
    refs = vhost.rows.refs(0, len(names)).tolist()
    assert refs == list(range(refs[0], refs[0] + len(names)))
    world.close()


def test_a_connection_that_closes_while_its_declaration_waits_harms_nothing(tmp_path):
    world = AmqpWorld(tmp_path, is_sync=True)
    peer, other = world.client(), world.client()
    peer.declare("q", durable=True)
    world.flushes_by_itself = False
    peer.send(Queue.Delete(queue="q"))
    other.begin(amqp.method(1, Queue.Declare(queue="q", durable=True)))
    other.vanish()
    world.flushes_by_itself = True
    world.turn()
    assert isinstance(peer.take()[0], Queue.DeleteOk)
    assert peer.declare("q", durable=True).message_count == 0
    world.close()


def test_a_virtual_host_that_is_made_behind_its_deletion_has_nothing_of_the_old_one_lost_by_a_kill(tmp_path):
    world = AmqpWorld(tmp_path / "before", is_sync=True)
    vhosts = world.amqp.vhosts
    vhosts.make("shop")
    peer = world.client(vhost="shop")
    peer.declare("q", durable=True)
    peer.publish(b"done", b"left", key="q", delivery_mode=2)
    peer.send(Basic.Ack(peer.call(Basic.Get(queue="q")).tag))
    world.flushes_by_itself = False
    made = []
    vhosts.delete(vhosts.find("shop"), world.now_ms)
    vhosts.when_gone("shop", lambda: made.append(vhosts.make("shop")))
    world.turn()
    assert made == []
    world.data_dir = shutil.copytree(world.data_dir, tmp_path / "after")
    world.flushes_by_itself = True
    world.turn()
    assert len(made) == 1
    world.close()
    world.open()
    assert drain(world.client(vhost="shop"), "q") == [b"left"]
    world.close()


REFUSES = TO_DEAD | {"x-max-length": 1, "x-overflow": "reject-publish-dlx"}


@pytest.mark.parametrize("arguments", [{}, {"x-max-priority": 3}, {"x-max-length-bytes": 100}, REFUSES], ids=str)
@pytest.mark.parametrize("kind", [{"durable": True}, {"exclusive": True}], ids=str)
def test_retention_keeps_nothing_for_a_queue_that_a_kill_left_unwritten(tmp_path, arguments, kind):
    world = AmqpWorld(tmp_path / "before", is_sync=True)
    peer = world.client()
    peer.declare("kept", durable=True, arguments=arguments)
    peer.publish(b"1", b"2", key="kept", priority=2, delivery_mode=2)
    peer.send(Basic.Ack(peer.call(Basic.Get(queue="kept")).tag))
    world.flushes_by_itself = False
    peer.send(Queue.Declare(queue="q", arguments=arguments, **kind))
    peer.publish(b"1", b"2", key="q", priority=2)
    peer.send(Basic.Consume(queue="q", consumer_tag="t"), Basic.Get(queue="q"))
    world.data_dir = shutil.copytree(world.data_dir, tmp_path / "after")
    world.close()
    world.flushes_by_itself = True
    world.open()
    assert queues_of(world) == [("/", "kept")]
    names = {world.broker.queue_key(ref) for ref, _ in world.amqp.vhosts.floors()}
    assert names
    assert [name for name in names if b"kept" not in name] == []
    peer = world.client()
    assert drain(peer, "kept") == [b"2"] if arguments != REFUSES else [b"1"]
    peer.declare("q", arguments=arguments, **kind)
    peer.publish(b"new", key="q")
    assert peer.call(Basic.Get(queue="q")).body == b"new"
    world.close()
