from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from pamqp.commands import Basic, Channel, Confirm, Connection, Exchange, Queue

from tests.support import amqp
from tests.support.amqp_door import AmqpWorld
from tests.support.full_engine import FullEngine

RABBITMQ_CAPABILITIES = (
    "publisher_confirms",
    "exchange_exchange_bindings",
    "basic.nack",
    "consumer_cancel_notify",
    "connection.blocked",
    "consumer_priorities",
    "authentication_failure_close",
    "per_consumer_qos",
    "direct_reply_to",
)


def test_a_client_logs_in_and_opens_a_channel(world):
    peer = world.accept()
    peer.write(amqp.PROTOCOL_HEADER)
    (start,) = peer.take()
    assert (start.version_major, start.version_minor) == (0, 9)
    assert start.server_properties["capabilities"] == dict.fromkeys(RABBITMQ_CAPABILITIES, True)
    tune = peer.call(Connection.StartOk({}, "PLAIN", "\0guest\0guest", "en_US"), 0)
    assert (tune.channel_max, tune.frame_max, tune.heartbeat) == (2_047, 131_072, 60)
    peer.send(Connection.TuneOk(0, 0, 0), channel=0)
    assert isinstance(peer.call(Connection.Open("/"), 0), Connection.OpenOk)
    assert isinstance(peer.call(Channel.Open(), 7), Channel.OpenOk)
    assert isinstance(peer.call(Channel.Close(200, "", 0, 0), 7), Channel.CloseOk)
    assert isinstance(peer.call(Connection.Close(200, "bye", 0, 0), 0), Connection.CloseOk)
    assert peer.is_closed


def test_a_wrong_password_is_refused_with_words(world):
    peer = world.accept()
    peer.write(amqp.PROTOCOL_HEADER).take()
    said = {"capabilities": {"authentication_failure_close": True}}
    close = peer.call(Connection.StartOk(said, "PLAIN", "\0guest\0wrong", "en_US"), 0)
    assert close.reply_code == 403
    assert close.reply_text.startswith("ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN")
    assert peer.is_closed
    assert world.amqp_counts.refused["login"] == 1


def test_a_client_that_cannot_be_told_finds_the_connection_closed(world):
    peer = world.accept()
    peer.write(amqp.PROTOCOL_HEADER).take()
    peer.send(Connection.StartOk({}, "PLAIN", "\0guest\0wrong", "en_US"), channel=0)
    assert peer.take() == []
    assert peer.is_closed


def test_another_virtual_host_is_not_found(world):
    peer = world.accept()
    peer.write(amqp.PROTOCOL_HEADER)
    peer.send(Connection.StartOk({}, "PLAIN", "\0guest\0guest", "en_US"), channel=0)
    peer.send(Connection.TuneOk(0, 0, 0), Connection.Open("other"), channel=0)
    close = peer.take()[-1]
    assert (close.reply_code, close.reply_text) == (530, "NOT_ALLOWED - vhost other not found")
    peer.send(Connection.CloseOk(), channel=0)
    assert peer.is_closed


@pytest.mark.parametrize("settings", [{}, {"handshake_timeout_ms": 300}])
def test_a_connection_that_does_not_speak_is_closed_in_time(tmp_path, engine_maker, settings):
    world = AmqpWorld(tmp_path, **settings, make_engine=engine_maker)
    limit_ms = settings.get("handshake_timeout_ms", 10_000)
    peer = world.accept()
    assert peer.handler.next_deadline_ms() == 0
    peer.handler.on_timer(world.now_ms)
    peer.handler.on_timer(world.now_ms + limit_ms - 1)
    assert not peer.is_closed
    peer.handler.on_timer(world.now_ms + limit_ms)
    assert peer.is_closed
    peer.handler.on_closed(world.now_ms)
    assert world.amqp_counts.connections == 0
    world.close()


def test_the_settings_are_offered_and_held_to(tmp_path, engine_maker):
    world = AmqpWorld(tmp_path, heartbeat_s=7, frame_bytes_max=4_096, channels_max=2, make_engine=engine_maker)
    peers = [world.accept(), world.accept()]
    for peer in peers:
        peer.write(amqp.PROTOCOL_HEADER).take()
        tune = peer.call(Connection.StartOk({}, "PLAIN", "\0guest\0guest", "en_US"), 0)
        assert (tune.channel_max, tune.frame_max, tune.heartbeat) == (2, 4_096, 7)
        peer.send(Connection.TuneOk(0, 0, 7), Connection.Open("/"), channel=0).take()
        for number in (2, 65_535):
            assert isinstance(peer.call(Channel.Open(), number), Channel.OpenOk)
    close = peers[0].call(Channel.Open(), 3)
    said = "NOT_ALLOWED - number of channels opened (2) has reached the negotiated channel_max (2)"
    assert (close.reply_code, close.reply_text) == (530, said)
    peers[1].write(amqp.raw_frame(1, 2, bytes(4_096)))
    assert peers[1].take()[-1].reply_code == 501
    world.close()


def test_what_is_published_is_confirmed_consumed_and_acknowledged(world):
    peer = world.client()
    answer = peer.declare("q", durable=True)
    assert (answer.queue, answer.message_count, answer.consumer_count) == ("q", 0, 0)
    peer.confirms().publish(b"one", b"two", key="q", delivery_mode=2, headers={"n": 1})
    (ack,) = peer.take()
    assert (ack.delivery_tag, ack.multiple) == (2, True)
    peer.consume("q", "tag")
    started, first, second = peer.take()
    assert started.consumer_tag == "tag"
    assert [first.body, second.body] == [b"one", b"two"]
    assert (first.method.exchange, first.method.routing_key) == ("", "q")
    assert first.properties.headers == {"n": 1}
    assert (first.tag, second.tag) == (1, 2)
    peer.send(Basic.Ack(2, multiple=True))
    assert peer.declare("q", passive=True).message_count == 0
    assert peer.take() == []


def test_confirms_wait_for_the_disk(tmp_path, engine_maker):
    world = AmqpWorld(tmp_path, is_sync=True, make_engine=engine_maker)
    world.flushes_by_itself = False
    peer = world.client()
    peer.send(Queue.Declare(queue="q"), Confirm.Select())
    peer.take()
    peer.publish(b"a", b"b", key="q").publish(b"c", key="q")
    assert peer.take() == []
    world.flush()
    world.turn()
    world.flush()
    assert [(ack.delivery_tag, ack.multiple) for ack in peer.take()] == [(2, True), (3, False)]
    world.close()


@pytest.mark.at_once(reason="the append itself finds no room")
def test_what_finds_no_room_is_refused_after_what_was_taken_and_never_confirmed(tmp_path):
    world = AmqpWorld(tmp_path, make_engine=FullEngine)
    peer = world.client()
    peer.declare("q", durable=True)
    peer.confirms()
    world.engine.left = 2
    peer.publish(b"1", b"2", b"3", b"4", key="q")
    world.engine.left = None
    peer.publish(b"5", key="q")
    world.turn()
    told = [(type(one).__name__, one.delivery_tag, one.multiple) for one in peer.take()]
    assert told == [("Ack", 2, True), ("Nack", 3, False), ("Nack", 4, False), ("Ack", 5, False)]
    assert [peer.call(Basic.Get(queue="q", no_ack=True)).body for _ in range(3)] == [b"1", b"2", b"5"]
    assert world.amqp_counts.refused == {"disk_full": 2}
    world.close()


def test_what_came_before_the_end_is_confirmed_and_nothing_more_is_delivered(tmp_path, engine_maker):
    world = AmqpWorld(tmp_path, is_sync=True, make_engine=engine_maker)
    peer = world.client()
    peer.declare("q", durable=True)
    peer.confirms().consume("q")
    peer.take()
    world.flushes_by_itself = False
    peer.end(amqp.publish(1, b"a"))
    world.turn()
    assert not peer.is_closed
    world.flush()
    world.turn()
    (ack, *_) = peer.take()
    assert (ack.name, ack.delivery_tag) == ("Basic.Ack", 1)
    assert peer.is_closed
    world.flushes_by_itself = True
    other = world.client().consume("q")
    assert [one.body for one in other.messages()] == [b"a"]
    world.close()


def test_declarations_before_the_end_are_answered_in_order(tmp_path, engine_maker):
    world = AmqpWorld(tmp_path, is_sync=False, make_engine=engine_maker)
    peer = world.client()
    world.flushes_by_itself = False
    declared = [Queue.Declare(queue=name, durable=True) for name in ("a", "b")]
    peer.end(*[amqp.method(1, one) for one in (declared[0], Basic.Get(queue="a"), declared[1])])
    assert peer.take() == []
    names = []
    while world.is_flush_due:
        assert not peer.is_closed
        world.flush()
        world.turn()
        names += [one.name for one in peer.take()]
    assert sorted(names) == ["Basic.GetEmpty", "Queue.DeclareOk", "Queue.DeclareOk"]
    assert peer.is_closed
    world.close()


@pytest.mark.parametrize(
    "declared",
    [
        [Queue.Declare(queue="new", durable=True, nowait=True)],
        [Queue.Bind(queue="old", exchange="amq.direct", routing_key="new", nowait=True)],
        [
            Exchange.Declare(exchange="x", durable=True, nowait=True),
            Queue.Bind(queue="old", exchange="x", routing_key="new"),
        ],
    ],
    ids=["queue", "binding", "exchange"],
)
def test_a_message_that_follows_a_declaration_is_confirmed_when_that_is_kept(tmp_path, engine_maker, declared):
    world = AmqpWorld(tmp_path, is_sync=False, make_engine=engine_maker)
    peer = world.client()
    peer.declare("old", durable=True)
    peer.confirms().take()
    world.flushes_by_itself = False
    exchange = getattr(declared[-1], "exchange", "")
    peer.write(*[amqp.method(1, one) for one in declared], amqp.publish(1, b"a", exchange=exchange, key="new"))
    assert peer.take() == []
    peer.publish(b"b", exchange=exchange, key="new")
    assert peer.take() == []
    world.flush()
    world.turn()
    *_, ack = peer.take()
    assert (ack.name, ack.delivery_tag) == ("Basic.Ack", 2)
    peer.publish(b"c", exchange=exchange, key="new")
    assert [one.name for one in peer.take()] == ["Basic.Ack"]
    world.close()


def test_a_queue_is_not_said_to_be_there_before_it_is_kept(tmp_path, engine_maker):
    world = AmqpWorld(tmp_path, is_sync=False, make_engine=engine_maker)
    first, second = world.client(), world.client()
    world.flushes_by_itself = False
    first.send(Queue.Declare(queue="q", durable=True))
    second.send(Queue.Declare(queue="q", passive=True))
    assert second.take() == []
    world.flush()
    world.turn()
    assert [one.name for one in second.take()] == ["Queue.DeclareOk"]
    world.close()


def test_durable_things_are_answered_when_they_are_safe_and_in_order(tmp_path, engine_maker):
    world = AmqpWorld(tmp_path, is_sync=True, make_engine=engine_maker)
    peer = world.client()
    world.flushes_by_itself = False
    peer.send(
        Queue.Declare(queue="q", durable=True),
        Queue.Bind(queue="q", exchange="amq.direct", routing_key="k"),
        Basic.Qos(prefetch_count=3),
        Basic.Consume(queue="q", consumer_tag="c"),
        Basic.Get(queue="q"),
    )
    peer.publish(b"early", exchange="amq.direct", key="k")
    assert peer.take() == []
    names = []
    while world.is_flush_due:
        world.flush()
        world.turn()
        names += [getattr(one, "name", None) or one.method.name for one in peer.take()]
    answers = ["Queue.DeclareOk", "Queue.BindOk", "Basic.QosOk", "Basic.ConsumeOk", "Basic.GetEmpty"]
    assert names == [*answers, "Basic.Deliver"]  # the message came after the get
    world.close()


def test_what_was_not_acknowledged_survives_a_killed_process_and_what_was_does_not(world):
    peer = world.client()
    peer.declare("q", durable=True)
    peer.confirms().publish(*[b"%d" % i for i in range(10)], key="q", delivery_mode=2)
    peer.consume("q")
    assert len(peer.messages()) == 10
    peer.send(Basic.Ack(4), Basic.Ack(7, multiple=True), Basic.Nack(9, requeue=False))
    world.close()
    world.open()
    peer = world.client()
    assert peer.declare("q", passive=True).message_count == 2
    peer.consume("q")
    assert peer.bodies() == [b"7", b"9"]


def test_mqtt_and_amq_topic_are_one_space(world):
    peer = world.client()
    peer.declare("q")
    peer.call(Queue.Bind(queue="q", exchange="amq.topic", routing_key="site.*.temp"))
    device = world.client_of_mqtt(b"dev-1", (b"site/#", 1))
    device.publish(b"site/7/temp", b"21", qos=1)
    peer.consume("q")
    (message,) = peer.messages()
    assert (message.method.exchange, message.method.routing_key, message.body) == ("amq.topic", "site.7.temp", b"21")
    assert message.properties.delivery_mode == 2
    assert message.properties.headers["x-client-id"] == "dev-1"
    assert message.properties.headers["x-protocol"] == "mqtt"
    assert message.properties.headers["x-mqtt-publish-qos"] == 1
    assert device.bodies() == [b"21"]
    peer.publish(b"22", exchange="amq.topic", key="site.8.temp")
    assert device.bodies() == [b"22"]
    assert peer.bodies() == [b"22"]
    peer.call(Queue.Unbind(queue="q", exchange="amq.topic", routing_key="site.*.temp"))
    device.publish(b"site/7/temp", b"23")
    assert peer.take() == []


def test_long_bodies_come_in_and_go_out_in_frames(world):
    peer = world.client(frame_max=4_096)
    peer.declare("q")
    body = bytes(range(256)) * 1_000
    peer.confirms().publish(body, b"", key="q", piece=4_088)
    assert peer.take()[-1].delivery_tag == 2
    peer.consume("q")
    first, second = peer.messages()
    assert first.body == body
    assert second.body == b""


def test_a_user_may_be_kept_from_things(tmp_path, engine_maker, monkeypatch):
    monkeypatch.setenv("JOE", "secret")
    joe = {"password_env": "JOE", "may_publish": False, "may_configure": False, "may_subscribe": False}
    world = AmqpWorld(tmp_path, auth={"users": {"joe": joe}}, make_engine=engine_maker)
    world.client().declare("q")
    for do in (
        lambda peer: peer.publish(b"x", key="q"),
        lambda peer: peer.send(Queue.Declare(queue="r")),
        lambda peer: peer.send(Exchange.Declare(exchange="r")),
        lambda peer: peer.send(Basic.Consume(queue="q")),
        lambda peer: peer.send(Basic.Get(queue="q")),
        lambda peer: peer.send(Queue.Purge(queue="q")),
        lambda peer: peer.send(Queue.Delete(queue="q")),
        lambda peer: peer.send(Queue.Bind(queue="q", exchange="amq.direct", routing_key="k")),
    ):
        peer = world.client(user="joe", password="secret")
        do(peer)
        (close,) = peer.take()
        assert close.reply_code == 403
        assert "refused for user 'joe'" in close.reply_text
    world.close()


def test_heartbeats_are_sent_and_missed_ones_cost_the_connection(world):
    peer = world.client(heartbeat=10)
    peer.declare("q")
    peer.consume("q").take()
    now = world.now_ms
    assert peer.handler.next_deadline_ms() == now + 5_000
    peer.handler.on_timer(now + 5_000)
    peer.handler.on_timer(now + 10_000)
    assert bytes(peer.transport.sent) == b"\x08\x00\x00\x00\x00\x00\x00\xce"
    peer.handler.on_timer(now + 20_000)
    assert peer.is_closed
    assert world.client().declare("q", passive=True).consumer_count == 0


def test_the_clients_are_told_when_the_gateway_goes_down(world):
    peer = world.client()
    world.amqp.stop(world.now_ms)
    (close,) = peer.take()
    assert close.reply_code == 320
    assert peer.is_closed


def test_flow_may_be_asked_for_what_is_so_anyway(world):
    peer = world.client()
    assert isinstance(peer.call(Channel.Flow(active=True)), Channel.FlowOk)


NAMES = st.sampled_from(["", "q", "amq.topic", "x", "none", "amq.gen-1"])
TABLES = st.sampled_from([{}, {"x-queue-type": "classic"}, {"x-odd": 1}, {"a": {"b": [1, None]}}])
METHODS = st.one_of(
    st.builds(Queue.Declare, queue=NAMES, durable=st.booleans(), passive=st.booleans(), exclusive=st.booleans(),
              auto_delete=st.booleans(), nowait=st.booleans(), arguments=TABLES),
    st.builds(Queue.Bind, queue=NAMES, exchange=NAMES, routing_key=NAMES, nowait=st.booleans(), arguments=TABLES),
    st.builds(Queue.Unbind, queue=NAMES, exchange=NAMES, routing_key=NAMES),
    st.builds(Queue.Delete, queue=NAMES, if_unused=st.booleans(), if_empty=st.booleans(), nowait=st.booleans()),
    st.builds(Queue.Purge, queue=NAMES, nowait=st.booleans()),
    st.builds(Exchange.Declare, exchange=NAMES, exchange_type=st.sampled_from(["direct", "topic", "fanout"]),
              auto_delete=st.booleans(), passive=st.booleans(), internal=st.booleans()),
    st.builds(Exchange.Delete, exchange=NAMES, if_unused=st.booleans()),
    st.builds(Basic.Consume, queue=NAMES, consumer_tag=NAMES, no_ack=st.booleans(), exclusive=st.booleans()),
    st.builds(Basic.Cancel, consumer_tag=NAMES, nowait=st.booleans()),
    st.builds(Basic.Get, queue=NAMES, no_ack=st.booleans()),
    st.builds(Basic.Qos, prefetch_count=st.integers(0, 3), global_=st.booleans()),
    st.builds(Basic.Ack, delivery_tag=st.integers(0, 4), multiple=st.booleans()),
    st.builds(Basic.Nack, delivery_tag=st.integers(0, 4), multiple=st.booleans(), requeue=st.booleans()),
    st.builds(Basic.Recover, requeue=st.just(value=True)),
    st.builds(Confirm.Select),
    st.builds(Channel.Close, st.just(200), st.just(""), st.just(0), st.just(0)),
    st.builds(Channel.Open),
    st.builds(Channel.CloseOk),
)  # fmt: skip
READING = st.sampled_from([
    Basic.Consume(queue="q"), Basic.Get(queue="q"), Basic.Get(queue="q"), Basic.Ack(0, multiple=True),
    Basic.Nack(0, multiple=True), Basic.Recover(True), Basic.Recover(True),
])  # fmt: skip
MOSTLY_FIRST = st.sampled_from([0, 0, 0, 1])
STEPS = st.lists(st.tuples(MOSTLY_FIRST, MOSTLY_FIRST, READING | METHODS | NAMES), min_size=20, max_size=40)


@given(STEPS)
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_order_of_methods_breaks_the_door(tmp_path_factory, steps):
    world = AmqpWorld(tmp_path_factory.mktemp("door"))
    peers = [world.client(channels=2), world.client(channels=2)]
    peers[0].declare("q")
    peers[0].publish(b"1", b"2", b"3", key="q")
    for which, index, step in steps:
        channel = 1 + index
        if peers[which].is_closed:
            peers[which] = world.client(channels=2)
        if isinstance(step, str):
            peers[which].publish(b"x", key=step, exchange=step if step.startswith("amq.t") else "", channel=channel)
        else:
            peers[which].send(step, channel=channel)
        if any(isinstance(one, Channel.Close) for one in peers[which].take()):
            peers[which].send(Channel.CloseOk(), Channel.Open(), channel=channel).take()
    for peer in peers:
        peer.vanish()
    assert world.client().declare("fresh").message_count == 0
    world.close()
