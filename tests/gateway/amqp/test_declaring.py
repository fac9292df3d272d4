from __future__ import annotations

import pytest
from pamqp.commands import Basic, Channel, Connection, Exchange, Queue

from tests.support.amqp_door import AmqpWorld


def test_an_exclusive_queue_is_its_connections_own(world):
    peer, other = world.client(), world.client(channels=3)
    name = peer.declare("", exclusive=True).queue
    assert name.startswith("amq.gen-")
    for channel, method in enumerate((Queue.Declare(queue=name, passive=True), Basic.Consume(queue=name)), 1):
        close = other.call(method, channel)
        assert close.reply_code == 405
        assert f"cannot obtain exclusive access to locked queue '{name}' in vhost '/'" in close.reply_text
    peer.vanish()
    assert other.declare(name, channel=3, passive=True).reply_code == 404


def test_a_queue_that_deletes_itself_goes_with_its_last_consumer(world):
    peer = world.client(channels=3)
    peer.declare("q", auto_delete=True)
    peer.consume("q", "a").consume("q", "b", channel=2).take()
    peer.call(Basic.Cancel("a"))
    assert peer.declare("q", passive=True).consumer_count == 1
    peer.call(Channel.Close(200, "", 0, 0), 2)
    assert peer.declare("q", channel=3, passive=True).reply_code == 404


def test_a_new_queue_of_an_old_name_is_empty(world):
    peer = world.client()
    peer.declare("q")
    peer.publish(b"old", key="q")
    assert peer.call(Queue.Delete(queue="q")).message_count == 1
    assert peer.declare("q").message_count == 0
    peer.publish(b"new", key="q")
    peer.consume("q")
    assert peer.bodies() == [b"new"]


def test_what_is_not_durable_does_not_survive(world):
    peer = world.client()
    peer.declare("transient")
    peer.declare("durable", durable=True)
    peer.declare("exclusive", durable=True, exclusive=True)
    peer.call(Exchange.Declare(exchange="x", exchange_type="fanout"))
    peer.call(Exchange.Declare(exchange="y", exchange_type="topic", durable=True))
    peer.call(Queue.Bind(queue="durable", exchange="y", routing_key="#"))
    peer.call(Queue.Bind(queue="transient", exchange="y", routing_key="#"))
    peer.publish(b"lost", key="transient")
    world.close()
    world.open()
    peer = world.client(channels=6)
    assert peer.declare("durable", passive=True).queue == "durable"
    peer.confirms().publish(b"kept", exchange="y", key="a.b")
    assert isinstance(peer.take()[0], Basic.Ack)
    assert peer.declare("durable", passive=True).message_count == 1
    for channel, name in enumerate(("transient", "exclusive"), 2):
        assert peer.declare(name, channel, passive=True).reply_code == 404
    assert peer.call(Exchange.Declare(exchange="x", passive=True), 4).reply_code == 404
    assert peer.declare("transient", channel=5).message_count == 0


SOFT = [
    (Queue.Declare(queue="none", passive=True), 404, "NOT_FOUND - no queue 'none' in vhost '/'"),
    (Queue.Declare(passive=True), 404, "NOT_FOUND - no queue '' in vhost '/'"),
    (Exchange.Declare(exchange="none", passive=True), 404, "NOT_FOUND - no exchange 'none' in vhost '/'"),
    (Queue.Bind(queue="q", exchange="none"), 404, "NOT_FOUND - no exchange 'none' in vhost '/'"),
    (Queue.Bind(queue="none", exchange="amq.topic"), 404, "NOT_FOUND - no queue 'none' in vhost '/'"),
    (Queue.Purge(queue="none"), 404, "NOT_FOUND - no queue 'none' in vhost '/'"),
    (Basic.Get(queue="none"), 404, "NOT_FOUND - no queue 'none' in vhost '/'"),
    (Basic.Consume(queue="none"), 404, "NOT_FOUND - no queue 'none' in vhost '/'"),
    (
        Queue.Declare(queue="q", durable=True),
        406,
        (
            "PRECONDITION_FAILED - inequivalent arg 'durable' for queue 'q' in vhost '/': "
            "received 'true' but current is 'false'"
        ),
    ),
    (
        Queue.Declare(queue="q", auto_delete=True),
        406,
        (
            "PRECONDITION_FAILED - inequivalent arg 'auto_delete' for queue 'q' in vhost '/': "
            "received 'true' but current is 'false'"
        ),
    ),
    (Queue.Declare(queue="q", exclusive=True), 405, "RESOURCE_LOCKED - cannot obtain exclusive access"),
    (
        Exchange.Declare(exchange="amq.topic", exchange_type="direct", durable=True),
        406,
        (
            "PRECONDITION_FAILED - inequivalent arg 'type' for exchange 'amq.topic' in vhost '/': "
            "received 'direct' but current is 'topic'"
        ),
    ),
    (
        Queue.Declare(queue="r", arguments={"x-max-priority": 256}),
        406,
        "PRECONDITION_FAILED - invalid arg 'x-max-priority' for queue 'r' in vhost '/': {max_value_exceeded,256}",
    ),
    (
        Queue.Declare(queue="r", arguments={"x-queue-type": "odd"}),
        406,
        "PRECONDITION_FAILED - invalid arg 'x-queue-type' for queue 'r' in vhost '/': \"unsupported queue type ",
    ),
    (
        Exchange.Declare(exchange="r", arguments={"alternate-exchange": 1}),
        406,
        "PRECONDITION_FAILED - invalid type 'byte' for arg 'alternate-exchange' in exchange 'r' in vhost '/'",
    ),
    (
        Basic.Consume(queue="q", consumer_tag="t", arguments={"x-priority": "high"}),
        406,
        "PRECONDITION_FAILED - invalid arg 'x-priority' for queue 'q' in vhost '/': \"expected integer, got longstr\"",
    ),
    (Queue.Declare(queue="amq.mine"), 403, "ACCESS_REFUSED - queue name 'amq.mine' contains reserved prefix 'amq.*'"),
    (
        Exchange.Declare(exchange="amq.mine"),
        403,
        "ACCESS_REFUSED - exchange name 'amq.mine' contains reserved prefix 'amq.*'",
    ),
    (Exchange.Declare(exchange="r", exchange_type="x-odd"), 406, "PRECONDITION_FAILED - unknown exchange type 'x-odd'"),
    (Exchange.Declare(exchange=""), 403, "ACCESS_REFUSED - operation not permitted on the default exchange"),
    (Exchange.Delete(exchange=""), 403, "ACCESS_REFUSED - operation not permitted on the default exchange"),
    (Exchange.Delete(exchange="amq.fanout"), 403, "ACCESS_REFUSED - deletion of system exchange 'amq.fanout' in vhost"),
    (Queue.Bind(queue="q", exchange=""), 403, "ACCESS_REFUSED - operation not permitted on the default exchange"),
    (Queue.Delete(queue="q", if_unused=True), 406, "PRECONDITION_FAILED - queue 'q' in vhost '/' in use"),
    (Queue.Delete(queue="full", if_empty=True), 406, "PRECONDITION_FAILED - queue 'full' in vhost '/' not empty"),
    (Exchange.Delete(exchange="x", if_unused=True), 406, "PRECONDITION_FAILED - exchange 'x' in vhost '/' in use"),
    (Basic.Ack(1), 406, "PRECONDITION_FAILED - unknown delivery tag 1"),
    (Basic.Ack(-1), 406, f"PRECONDITION_FAILED - unknown delivery tag {2**64 - 1}"),
    (Basic.Ack(-(2**63)), 406, f"PRECONDITION_FAILED - unknown delivery tag {2**63}"),
    (Basic.Nack(9, requeue=True), 406, "PRECONDITION_FAILED - unknown delivery tag 9"),
    (Basic.Reject(0), 406, "PRECONDITION_FAILED - unknown delivery tag 0"),
]


HARD = [
    (Basic.Recover(requeue=False), 540, "NOT_IMPLEMENTED - requeue=false"),
    (Basic.Qos(prefetch_size=1), 540, "NOT_IMPLEMENTED - prefetch_size!=0 (1)"),
    (Channel.Flow(active=False), 540, "NOT_IMPLEMENTED - active=false"),
    (Basic.Consume(queue="q", consumer_tag="used"), 530, "NOT_ALLOWED - attempt to reuse consumer tag 'used'"),
    (Channel.Open(), 504, "CHANNEL_ERROR - second 'channel.open' seen"),
    (Queue.PurgeOk(message_count=0), 503, "COMMAND_INVALID - unimplemented method"),
    (Connection.Blocked("x"), 503, "COMMAND_INVALID - unimplemented method"),
]


def scene(world):
    other = world.client()
    other.declare("q")
    other.consume("q").take()
    other.declare("full")
    other.publish(b"1", key="full")
    other.call(Exchange.Declare(exchange="x", exchange_type="direct"))
    other.call(Queue.Bind(queue="q", exchange="x", routing_key=""))
    peer = world.client(channels=2)
    peer.consume("full", "used").take()
    peer.send(Basic.Ack(1))
    return other, peer


@pytest.mark.parametrize(("method", "code", "text"), SOFT, ids=lambda value: getattr(value, "name", None))
def test_a_soft_error_costs_the_channel_only(world, method, code, text):
    _, peer = scene(world)
    if "full" in text:
        peer.call(Basic.Cancel("used"))
        peer.publish(b"2", key="full").take()
    close = peer.call(method, 2)
    assert isinstance(close, Channel.Close)
    assert close.reply_code == code
    assert close.reply_text.startswith(text)
    assert (close.class_id << 16 | close.method_id) == method.index
    peer.send(method, channel=2)
    assert peer.take() == []
    peer.send(Channel.CloseOk(), channel=2)
    assert isinstance(peer.call(Channel.Open(), 2), Channel.OpenOk)
    assert isinstance(peer.call(Basic.Qos(prefetch_count=1)), Basic.QosOk)


@pytest.mark.parametrize(("method", "code", "text"), HARD, ids=lambda value: getattr(value, "name", None))
def test_a_hard_error_costs_the_connection_and_nobody_elses(world, method, code, text):
    other, peer = scene(world)
    (close,) = [one for one in peer.send(method).take() if isinstance(one, Connection.Close)]
    assert close.reply_code == code
    assert close.reply_text.startswith(text)
    assert not peer.is_closed
    peer.send(Basic.Qos(prefetch_count=1))
    assert peer.take() == []
    peer.send(Connection.CloseOk(), channel=0)
    assert peer.is_closed
    assert other.declare("q", passive=True).queue == "q"


def test_a_lazy_queue_is_a_queue(world):
    peer = world.client()
    for mode in ("lazy", "default"):
        assert peer.declare("q", arguments={"x-queue-mode": mode}).queue == "q"
    close = peer.declare("q", arguments={"x-queue-mode": "brisk"})
    why = "\"unsupported queue mode 'brisk'\""
    said = f"PRECONDITION_FAILED - invalid arg 'x-queue-mode' for queue 'q' in vhost '/': {why}"
    assert (close.reply_code, close.reply_text) == (406, said)


def test_random_exchange_of_rabbitmq_4_is_one(world):
    peer = world.client()
    peer.call(Exchange.Declare(exchange="x", exchange_type="x-local-random"))
    for name in ("a", "b"):
        peer.declare(name)
        peer.call(Queue.Bind(queue=name, exchange="x", routing_key=name))
    peer.publish(*[b"m"] * 64, exchange="x", key="any")
    counts = [peer.declare(name, passive=True).message_count for name in ("a", "b")]
    assert sum(counts) == 64
    assert min(counts) > 0


def test_what_is_declared_once_more_is_answered_at_once_where_it_is_kept(tmp_path):
    world = AmqpWorld(tmp_path, is_sync=True)
    peer, other = world.client(), world.client()
    declare = [
        Exchange.Declare(exchange="x", exchange_type="topic", durable=True),
        Queue.Declare(queue="q", durable=True),
        Queue.Bind(queue="q", exchange="x", routing_key="a"),
    ]
    for method in declare:
        peer.call(method)
    world.flushes_by_itself = False
    other.send(Queue.Declare(queue="unkept", durable=True))  # a change that waits for the disk
    peer.send(*declare, Queue.Declare(queue="q", passive=True), Exchange.Declare(exchange="x", passive=True))
    names = ["Exchange.DeclareOk", "Queue.DeclareOk", "Queue.BindOk", "Queue.DeclareOk", "Exchange.DeclareOk"]
    assert [one.name for one in peer.take()] == names
    peer.send(Queue.Declare(queue="unkept", durable=True))
    assert other.take() == peer.take() == []
    world.flushes_by_itself = True
    world.flush()
    world.turn()
    assert [one.name for one in (*other.take(), *peer.take())] == ["Queue.DeclareOk"] * 2
    world.close()


@pytest.mark.parametrize(
    "method",
    [
        Queue.Declare(queue="new", durable=True),
        Exchange.Declare(exchange="new", exchange_type="fanout", durable=True),
        Queue.Bind(queue="q", exchange="amq.topic", routing_key="new"),
        Exchange.Bind(destination="amq.fanout", source="amq.topic", routing_key="new"),
    ],
    ids=lambda method: method.name,
)
def test_no_room_for_a_new_durable_definition_ends_the_connection_and_changes_nothing(world, method):
    peer, other = world.client(), world.client()
    peer.declare("q", durable=True)
    world.set_room_for_definitions(False)
    close = peer.call(method)
    assert (close.reply_code, close.reply_text) == (506, "RESOURCE_ERROR - no space left for definitions.db")
    assert close.class_id << 16 | close.method_id == method.index
    assert other.declare("q", durable=True).queue == "q"
    assert other.declare("passing").queue == "passing"
    assert other.call(Queue.Bind(queue="passing", exchange="amq.topic", routing_key="new")).name == "Queue.BindOk"
    vhost = world.amqp.vhosts.find("/")
    assert (vhost.find("new"), vhost.exchanges.find("new")) == (None, None)
    world.set_room_for_definitions(True)
    assert other.call(method).name == f"{method.name}Ok"


@pytest.mark.parametrize(
    "method",
    [
        Queue.Delete(queue="q"),
        Exchange.Delete(exchange="x"),
        Queue.Unbind(queue="q", exchange="x", routing_key="k"),
        Exchange.Unbind(destination="amq.fanout", source="x", routing_key="k"),
    ],
    ids=lambda method: method.name,
)
def test_what_is_deleted_on_a_full_disk_is_gone_unless_that_would_wait_for_room(world, method):
    peer, other = world.client(), world.client()
    peer.declare("q", durable=True)
    peer.call(Exchange.Declare(exchange="x", exchange_type="topic", durable=True))
    peer.call(Queue.Bind(queue="q", exchange="x", routing_key="k"))
    peer.call(Exchange.Bind(destination="amq.fanout", source="x", routing_key="k"))
    vhost = world.amqp.vhosts.find("/")
    before = len(vhost), [list(exchange.bindings) for exchange in vhost.exchanges]
    world.set_room_for_definitions(False, is_stuck=True)
    close = peer.call(method)
    assert (close.reply_code, close.reply_text) == (506, "RESOURCE_ERROR - no space left for definitions.db")
    assert (len(vhost), [list(exchange.bindings) for exchange in vhost.exchanges]) == before
    world.set_room_for_definitions(False)
    assert other.call(method).name == f"{method.name}Ok"
    assert (len(vhost), [list(exchange.bindings) for exchange in vhost.exchanges]) != before


def test_a_declaration_behind_a_deletion_is_refused_where_that_would_wait_for_room(tmp_path):
    world = AmqpWorld(tmp_path, is_sync=True)
    peer, other = world.client(), world.client()
    peer.declare("q", durable=True)
    world.flushes_by_itself = False
    peer.send(Queue.Delete(queue="q"))
    world.set_room_for_definitions(False)
    assert other.call(Queue.Declare(queue="q", durable=True)).reply_code == 506
    world.flushes_by_itself = True
    world.turn()
    assert peer.take()[0].name == "Queue.DeleteOk"
    world.close()


def test_a_queue_that_is_deleted_twice_is_told_to_be_gone_when_that_is_on_the_disk(tmp_path):
    world = AmqpWorld(tmp_path, is_sync=True)
    peer, other = world.client(), world.client()
    peer.declare("q", durable=True)
    world.flushes_by_itself = False
    peer.send(Queue.Delete(queue="q"))
    other.send(Queue.Delete(queue="q"))
    assert peer.take() == other.take() == []
    world.flushes_by_itself = True
    world.turn()
    assert [one.name for one in (*peer.take(), *other.take())] == ["Queue.DeleteOk"] * 2
    assert isinstance(other.call(Queue.Delete(queue="q")), Queue.DeleteOk)
    world.close()


@pytest.mark.parametrize(
    "method",
    [
        Exchange.Delete(exchange="x"),
        Queue.Unbind(queue="q", exchange="x", routing_key="k"),
        Exchange.Unbind(destination="amq.fanout", source="x", routing_key="k"),
    ],
    ids=lambda one: one.name,
)
def test_what_is_taken_away_twice_is_told_to_be_gone_when_that_is_on_the_disk(tmp_path, method):
    world = AmqpWorld(tmp_path, is_sync=True)
    peer, other = world.client(), world.client()
    peer.declare("q", durable=True)
    peer.call(Exchange.Declare(exchange="x", exchange_type="topic", durable=True))
    peer.call(Queue.Bind(queue="q", exchange="x", routing_key="k"))
    peer.call(Exchange.Bind(destination="amq.fanout", source="x", routing_key="k"))
    world.flushes_by_itself = False
    peer.send(method)
    other.send(method)
    assert peer.take() == other.take() == []
    world.flushes_by_itself = True
    world.turn()
    assert [one.name for one in (*peer.take(), *other.take())] == [f"{method.name}Ok"] * 2
    world.flushes_by_itself = False
    assert other.call(method).name == f"{method.name}Ok"  # what is gone for good is told at once
    world.close()
