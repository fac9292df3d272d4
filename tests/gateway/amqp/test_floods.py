"""However much one client sends at once, the others are served in between, and it is answered whole and in order."""

from __future__ import annotations

import pytest
from pamqp.commands import Basic, Channel, Confirm, Exchange, Queue

from core.message import STEP_DISPATCHES
from gateway.amqp.connection import FRAMES_AT_ONCE
from gateway.runtime.chores import AT_ONCE
from tests.support import amqp
from tests.support.amqp_door import AmqpWorld

COUNT = 200
TABLE = {"a": {"b": [1, 2]}}

FLOODS = {
    "queue.declare": lambda i: Queue.Declare(queue=f"f{i}"),
    "durable queue.declare": lambda i: Queue.Declare(queue=f"f{i}", durable=True),
    "queue.bind": lambda i: Queue.Bind(queue="q", exchange="amq.topic", routing_key=f"f.{i}.*"),
    "tables": lambda i: Queue.Bind(queue="q", exchange="amq.direct", routing_key="k", arguments={f"a{i}": TABLE}),
    "exchange.declare": lambda i: Exchange.Declare(exchange=f"x{i}", durable=True),
    "basic.get": lambda _: Basic.Get(queue="q", no_ack=True),
    "basic.consume": lambda i: Basic.Consume(queue="q", consumer_tag=f"c{i}"),
    "basic.cancel": lambda i: Basic.Cancel(f"c{i}"),
}
FRAMES = {
    **{name: lambda i, make=make: amqp.method(1, make(i)) for name, make in FLOODS.items()},
    "channels": lambda _: amqp.method(2, Channel.Open()) + amqp.method(2, Channel.Close(0, "", 0, 0)),
    "publish to new keys": lambda i: amqp.publish(1, b"x", exchange="amq.topic", key=f"new.{i}"),
    "publish to new queues": lambda i: amqp.publish(1, b"x", key=f"new.{i}"),
}


@pytest.fixture
def world(tmp_path, engine_maker):
    world = AmqpWorld(tmp_path, make_engine=engine_maker)
    yield world
    world.close()


@pytest.mark.at_once(reason="looks at the turn in which a message came")
@pytest.mark.parametrize("kind", FRAMES)
def test_others_are_served_before_a_flood_is_through(world, kind):
    receiver, sender = world.client(), world.client()
    sender.declare("live")
    receiver.consume("live", no_ack=True).take()
    flooder = world.client()
    flooder.declare("q")
    flooder.transport.share = 10
    flooder.begin(*map(FRAMES[kind], range(COUNT)))
    turns = 0
    while flooder in world.waiting:
        sender.begin(amqp.publish(1, b"%d" % turns, key="live"))
        world.step()
        assert receiver.bodies() == [b"%d" % turns]
        turns += 1
    assert turns >= COUNT // 12
    flooder.transport.sent.clear()
    assert isinstance(flooder.call(Basic.Qos(prefetch_count=1)), Basic.QosOk)


def test_frames_without_an_event_between_them_are_a_step_too(world):
    flooder = world.client()
    flooder.transport.share = 1
    flooder.begin(*(amqp.method(i, Channel.Open()) for i in range(2, 2 + 3 * FRAMES_AT_ONCE)))
    assert len(flooder.take()) == FRAMES_AT_ONCE
    world.turn()
    assert len(flooder.take()) == 2 * FRAMES_AT_ONCE


def test_answers_of_a_flood_come_whole_and_in_order(world):
    peer = world.client().confirms()
    peer.transport.share = 7
    peer.write(
        *(amqp.method(1, Queue.Declare(queue=f"f{i}", durable=i % 2 == 0)) for i in range(COUNT)),
        *(amqp.publish(1, b"%d" % i, key=f"f{i}") for i in range(COUNT)),
        *(amqp.method(1, Basic.Get(queue=f"f{i}", no_ack=True)) for i in range(COUNT)),
    )
    answers = peer.take()
    assert [one.queue for one in answers if isinstance(one, Queue.DeclareOk)] == [f"f{i}" for i in range(COUNT)]
    assert [one.body for one in answers if hasattr(one, "body")] == [b"%d" % i for i in range(COUNT)]
    acks = [one for one in answers if isinstance(one, Basic.Ack)]
    assert acks[-1].delivery_tag == COUNT
    assert world.amqp_counts.messages_in == COUNT
    assert world.amqp_counts.bytes_in == sum(len(b"%d" % i) for i in range(COUNT))


@pytest.mark.parametrize("confirms", [False, True])
def test_wide_messages_are_published_a_few_at_a_time(world, confirms):
    peer = world.client()
    queues = 500
    step = STEP_DISPATCHES // queues
    for i in range(queues):
        world.broker.bind_filter(b"t", b"%%LMQ%%q%d" % i, hides_dollar=False)
    if confirms:
        assert isinstance(peer.call(Confirm.Select()), Confirm.SelectOk)
    peer.transport.share = 1
    peer.begin(*(amqp.publish(1, b"x", exchange="amq.topic", key="t") for _ in range(5 * step)))
    assert 0 < world.store.message_count <= step
    world.turn()
    assert world.store.message_count == 5 * step
    if confirms:
        assert peer.take()[-1].delivery_tag == 5 * step


@pytest.mark.at_once(reason="looks at what was answered in one turn")
def test_one_that_does_not_read_what_it_gets_is_given_no_more(world):
    peer = world.client()
    peer.declare("q")
    peer.publish(*(b"%d" % i for i in range(20)), key="q")
    peer.stall()
    peer.begin(*(amqp.method(1, Basic.Get(queue="q", no_ack=True)) for _ in range(20)))
    assert not peer.transport.is_reading  # and so the transport does not go on
    assert peer.bodies() == [b"0"]
    peer.transport.is_writable = True
    peer.handler.on_writable(world.now_ms)
    assert peer.transport.is_reading
    world.turn()
    assert peer.bodies() == [b"%d" % i for i in range(1, 20)]


def test_connection_with_thousands_of_channels_and_queues_closes_in_steps(world):
    count = 2 * AT_ONCE
    peer = world.client(channels=count)
    peer.write(*(amqp.method(1 + i, Queue.Declare(queue=f"own{i}", exclusive=True)) for i in range(count)))
    peer.transport.is_closed = True
    peer.handler.on_closed(world.now_ms)
    assert len(world.amqp.vhost) > 0
    other = world.client()
    other.declare("q")
    other.publish(b"x", key="q")
    world.turn()
    assert [queue.name for queue in world.amqp.vhost] == ["q"]
    assert other.declare("own7", exclusive=True).queue == "own7"


@pytest.mark.parametrize("what", ["queue", "exchange"])
def test_what_has_many_bindings_is_deleted_in_steps_and_its_name_waits_for_that(world, what):
    count = 2 * AT_ONCE
    peer = world.client()
    declare_exchange = Exchange.Declare(exchange="x", exchange_type="direct", durable=True)
    declare_queue = Queue.Declare(queue="q", durable=True)
    peer.send(declare_exchange, declare_queue)
    peer.send(*(Queue.Bind(queue="q", exchange="x", routing_key=f"k{i}") for i in range(count)))
    peer.take()
    exchange = world.amqp.vhost.exchanges.get("x")
    again = world.client()
    peer.begin(amqp.method(1, Queue.Delete(queue="q") if what == "queue" else Exchange.Delete(exchange="x")))
    assert 0 < len(exchange.bindings) < count
    again.begin(
        amqp.method(1, declare_queue if what == "queue" else declare_exchange),
        amqp.method(1, Queue.Bind(queue="q", exchange="x", routing_key="k9")),
    )
    assert again.take() == []
    world.turn()
    assert [type(one) for one in again.take()][1:] == [Queue.BindOk]
    for _ in range(2):
        assert [*world.amqp.vhost.exchanges.get("x").bindings] == [("q", "k9", None)]
        world.flush()
        world.store.close()
        world.open()


def test_bindings_that_a_killed_process_did_not_forget_do_not_come_back(world):
    peer = world.client()
    peer.declare("q", durable=True)
    peer.call(Queue.Bind(queue="q", exchange="amq.direct", routing_key="k"))
    table = world.broker.table("amqp")
    row = find_bindings(table)[0]
    peer.call(Queue.Delete(queue="q"))
    table.put(row, b"{}")  # as if the process had been killed before
    for _ in range(2):
        world.flush()
        world.store.close()
        world.open()
    world.client().declare("q", durable=True)
    assert not world.amqp.vhost.exchanges.get("amq.direct").bindings
    assert not find_bindings(world.broker.table("amqp"))


def find_bindings(table):
    return [row[0] for row in table.items() if row[0].startswith(b'["b"')]
