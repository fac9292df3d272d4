from __future__ import annotations

import pytest
from pamqp.commands import Basic, Channel, Confirm, Connection, Exchange, Queue, Tx

from gateway.amqp.channel import Channel as ServerChannel
from tests.support import amqp
from tests.support.amqp_door import AmqpWorld


@pytest.fixture
def world(tmp_path):
    world = AmqpWorld(tmp_path)
    yield world
    world.close()


# Coming in


def test_a_client_logs_in_and_opens_a_channel(world):
    peer = world.accept()
    peer.write(amqp.PROTOCOL_HEADER)
    (start,) = peer.take()
    assert (start.version_major, start.version_minor) == (0, 9)
    assert start.server_properties["capabilities"]["publisher_confirms"] is True
    assert start.server_properties["capabilities"]["exchange_exchange_bindings"] is False
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


def test_a_connection_that_does_not_speak_is_closed_in_time(world):
    peer = world.accept()
    assert peer.handler.next_deadline_ms() == 0
    peer.handler.on_timer(world.now_ms)
    peer.handler.on_timer(world.now_ms + 9_999)
    assert not peer.is_closed
    peer.handler.on_timer(world.now_ms + 10_000)
    assert peer.is_closed
    peer.handler.on_closed(world.now_ms)
    assert world.amqp_counts.connections == 0


# One queue


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


def test_confirms_wait_for_the_disk(world):
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


def test_durable_things_are_answered_when_they_are_safe_and_in_order(world):
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
    world.flush()
    world.turn()
    names = [getattr(one, "name", None) or one.method.name for one in peer.take()]
    assert names == ["Queue.DeclareOk"] or names[0] == "Queue.DeclareOk"
    world.flushes_by_itself = True
    world.turn()
    rest = [getattr(one, "name", None) or one.method.name for one in peer.take()]
    assert (names + rest)[:5] == ["Queue.DeclareOk", "Queue.BindOk", "Basic.QosOk", "Basic.ConsumeOk", "Basic.GetOk"]


def test_a_new_queue_of_an_old_name_is_empty(world):
    peer = world.client()
    peer.declare("q")
    peer.publish(b"old", key="q")
    assert peer.call(Queue.Delete(queue="q")).message_count == 1
    assert peer.declare("q").message_count == 0
    peer.publish(b"new", key="q")
    peer.consume("q")
    assert peer.bodies() == [b"new"]


def test_an_unacknowledged_message_comes_back_when_its_channel_closes(world):
    peer = world.client(channels=2)
    peer.declare("q")
    peer.publish(b"1", b"2", b"3", key="q").consume("q")
    assert peer.bodies() == [b"1", b"2", b"3"]
    peer.send(Basic.Ack(2))
    peer.call(Channel.Close(200, "", 0, 0))
    peer.consume("q", "d", channel=2)
    again = peer.messages()
    assert [one.body for one in again] == [b"1", b"3"]
    assert all(one.method.redelivered for one in again)
    peer.send(Basic.Ack(2, multiple=True), channel=2)
    assert peer.declare("q", channel=2, passive=True).message_count == 0


def test_an_unacknowledged_message_comes_back_when_its_connection_is_lost(world):
    peer, other = world.client(), world.client()
    peer.declare("q")
    peer.publish(b"1", b"2", key="q").consume("q")
    assert peer.bodies() == [b"1", b"2"]
    peer.send(Basic.Ack(1))
    other.consume("q")
    assert other.bodies() == []
    peer.vanish()
    (again,) = other.messages()
    assert (again.body, again.method.redelivered) == (b"2", True)


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


# Sharing


def test_consumers_of_a_queue_take_turns(world):
    peers = [world.client() for _ in range(3)]
    peers[0].declare("q")
    for peer in peers:
        peer.consume("q").take()
    peers[0].publish(*[b"%d" % i for i in range(30)], key="q")
    counts = [len(peer.messages()) for peer in peers]
    assert counts == [10, 10, 10]
    for _ in range(9):
        peers[0].publish(b"x", key="q")
    assert [len(peer.messages()) for peer in peers] == [3, 3, 3]


def test_prefetch_bounds_what_a_consumer_has(world):
    peer = world.client()
    peer.declare("q")
    peer.publish(*[b"%d" % i for i in range(10)], key="q")
    peer.call(Basic.Qos(prefetch_count=3))
    peer.consume("q")
    assert peer.bodies() == [b"0", b"1", b"2"]
    peer.send(Basic.Ack(2, multiple=True))
    assert peer.bodies() == [b"3", b"4"]
    peer.send(Basic.Nack(3, requeue=False))
    assert peer.bodies() == [b"5"]


def test_a_global_prefetch_bounds_all_consumers_of_a_channel(world):
    peer = world.client()
    peer.declare("q")
    peer.publish(*[b"%d" % i for i in range(10)], key="q")
    peer.call(Basic.Qos(prefetch_count=3, global_=True))
    peer.consume("q", "a").consume("q", "b")
    assert len(peer.messages()) == 3
    peer.send(Basic.Ack(1))
    assert len(peer.messages()) == 1
    peer.send(Basic.Qos(prefetch_count=0, global_=True))
    assert len(peer.messages()) == 6


def test_a_consumer_that_does_not_read_is_not_written_to(world):
    peer, other = world.client(), world.client()
    peer.declare("q")
    peer.consume("q").take()
    peer.stall()
    other.publish(*[b"x" * 1_000] * 100, key="q")
    assert len(peer.transport.sent) == 0
    other.consume("q")
    assert len(other.messages()) == 100
    other.publish(b"more", key="q")
    other.vanish()
    peer.drain()
    assert len(peer.messages()) == 101


def test_without_acknowledgement_a_message_is_done_when_it_is_sent(world):
    peer = world.client()
    peer.declare("q")
    peer.publish(b"1", b"2", key="q").consume("q", no_ack=True)
    assert peer.bodies() == [b"1", b"2"]
    peer.send(Channel.Close(200, "", 0, 0))
    peer.take()
    peer.call(Channel.Open())
    assert peer.declare("q", passive=True).message_count == 0


def test_rejected_messages_are_shown_again_or_dropped(world):
    peer = world.client()
    peer.declare("q")
    peer.publish(b"1", b"2", b"3", key="q")
    peer.call(Basic.Qos(prefetch_count=3))
    peer.consume("q").take()
    peer.send(Basic.Reject(1, requeue=False), Basic.Reject(2, requeue=True), Basic.Nack(3, requeue=True))
    again = peer.messages()
    assert [(one.body, one.method.redelivered) for one in again] == [(b"2", True), (b"3", True)]
    peer.send(Basic.Nack(0, multiple=True, requeue=False))
    assert peer.take() == []
    assert peer.declare("q", passive=True).message_count == 0
    assert world.amqp_counts.dropped["rejected"] == 3


def test_recover_shows_everything_again(world):
    peer = world.client()
    peer.declare("q")
    peer.publish(b"1", b"2", key="q").consume("q").take()
    peer.send(Basic.Recover(requeue=True))
    answer, first, second = peer.take()
    assert isinstance(answer, Basic.RecoverOk)
    assert [(one.body, one.tag, one.method.redelivered) for one in (first, second)] == [
        (b"1", 3, True),
        (b"2", 4, True),
    ]


def test_get_gives_one_message_at_a_time(world):
    peer = world.client()
    peer.declare("q")
    peer.publish(b"1", b"2", key="q")
    first = peer.call(Basic.Get(queue="q"))
    assert (first.body, first.tag, first.method.message_count) == (b"1", 1, 1)
    second = peer.call(Basic.Get(queue="q", no_ack=True))
    assert (second.body, second.tag, second.method.message_count) == (b"2", 2, 0)
    assert isinstance(peer.call(Basic.Get(queue="q")), Basic.GetEmpty)
    peer.send(Basic.Nack(1, requeue=True))
    third = peer.call(Basic.Get(queue="q"))
    assert (third.body, third.method.redelivered) == (b"1", True)
    peer.send(Basic.Ack(3))
    assert isinstance(peer.call(Basic.Get(queue="q")), Basic.GetEmpty)


def test_a_cancelled_consumer_gets_nothing_more_and_keeps_what_it_has(world):
    peer = world.client()
    peer.declare("q")
    peer.publish(b"1", key="q").consume("q", "c").take()
    assert peer.call(Basic.Cancel("c")).consumer_tag == "c"
    peer.publish(b"2", key="q")
    assert peer.take() == []
    peer.send(Basic.Ack(1))
    assert peer.declare("q", passive=True).message_count == 1
    assert peer.call(Basic.Cancel("unknown")).consumer_tag == "unknown"


def test_slots_are_used_again(world):
    peer = world.client()
    peer.declare("q")
    (channel,) = peer.handler._connection.channels.values()
    assert isinstance(channel, ServerChannel)
    for i in range(50):
        peer.publish(b"x", key="q").consume("q", f"c{i}").take()
        peer.send(Basic.Cancel(f"c{i}"), Basic.Ack(i + 1))
        peer.take()
    assert len(channel.slots) == 1


def test_the_end_of_a_queue_is_told_to_its_consumers(world):
    peer, other = world.client(), world.client()
    peer.declare("q")
    other.publish(b"1", key="q").consume("q", "mine").take()
    assert isinstance(peer.call(Queue.Delete(queue="q")), Queue.DeleteOk)
    (cancel,) = other.take()
    assert isinstance(cancel, Basic.Cancel)
    assert cancel.consumer_tag == "mine"
    other.send(Basic.Ack(1))
    assert other.take() == []
    assert other.declare("q").message_count == 0


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


def test_an_exclusive_consumer_has_the_queue_to_itself(world):
    peer = world.client(channels=3)
    peer.declare("q")
    peer.consume("q", "a", exclusive=True).take()
    close = peer.call(Basic.Consume(queue="q"), 2)
    assert (close.reply_code, close.reply_text) == (403, "ACCESS_REFUSED - queue 'q' in vhost '/' in exclusive use")
    peer.call(Basic.Cancel("a"))
    assert isinstance(peer.call(Basic.Consume(queue="q"), 3), Basic.ConsumeOk)


# Exchanges


def test_exchanges_route_by_their_type(world):
    peer = world.client()
    for name, kind in (("d", "direct"), ("f", "fanout"), ("t", "topic")):
        peer.call(Exchange.Declare(exchange=name, exchange_type=kind))
        for queue, key in ((f"{name}1", "a.b"), (f"{name}2", "a.*"), (f"{name}3", "#")):
            peer.declare(queue)
            peer.call(Queue.Bind(queue=queue, exchange=name, routing_key=key))
    for name, expected in (("d", [1, 0, 0]), ("f", [1, 1, 1]), ("t", [1, 1, 1])):
        peer.publish(b"x", exchange=name, key="a.b")
        assert [peer.declare(f"{name}{i}", passive=True).message_count for i in (1, 2, 3)] == expected
    peer.publish(b"y", exchange="t", key="a.c")
    assert [peer.declare(f"t{i}", passive=True).message_count for i in (1, 2, 3)] == [1, 2, 2]
    assert isinstance(peer.call(Queue.Unbind(queue="t2", exchange="t", routing_key="a.*")), Queue.UnbindOk)
    peer.publish(b"y", exchange="t", key="a.c")
    assert [peer.declare(f"t{i}", passive=True).message_count for i in (1, 2, 3)] == [1, 2, 3]


def test_what_must_be_routed_and_cannot_be_is_returned(world):
    peer = world.client()
    peer.confirms().publish(b"lost", key="nowhere", mandatory=True, content_type="text/plain")
    returned, ack = peer.take()
    assert isinstance(returned.method, Basic.Return)
    assert (returned.method.reply_code, returned.method.reply_text) == (312, "NO_ROUTE")
    assert (returned.method.exchange, returned.method.routing_key) == ("", "nowhere")
    assert (returned.body, returned.properties.content_type) == (b"lost", "text/plain")
    assert ack.delivery_tag == 1
    peer.publish(b"lost", key="nowhere")
    assert isinstance(peer.take()[0], Basic.Ack)
    assert world.amqp_counts.dropped == {"returned": 1, "unroutable": 1}
    peer.publish(b"y", exchange="amq.topic", key="no.body", mandatory=True)
    assert isinstance(peer.take()[0].method, Basic.Return)


def test_a_missing_exchange_costs_the_channel_and_nothing_that_came_before(world):
    peer = world.client()
    peer.declare("q")
    peer.confirms().write(
        amqp.publish(1, b"good", key="q"), amqp.publish(1, b"bad", exchange="none"), amqp.publish(1, b"late", key="q")
    )
    close, *rest = [one for one in peer.take() if not isinstance(one, Basic.Ack)]
    assert rest == []
    assert (close.reply_code, close.reply_text) == (404, "NOT_FOUND - no exchange 'none' in vhost '/'")
    assert (close.class_id, close.method_id) == (60, 40)
    peer.publish(b"ignored", key="q")
    peer.send(Channel.CloseOk())
    peer.call(Channel.Open())
    assert peer.declare("q", passive=True).message_count == 1


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


def test_a_body_larger_than_allowed_costs_the_channel(tmp_path):
    world = AmqpWorld(tmp_path, body_bytes_max=1_000)
    peer = world.client()
    peer.publish(b"x" * 1_001, key="q")
    (close,) = peer.take()
    assert close.reply_code == 406
    assert close.reply_text == "PRECONDITION_FAILED - message size 1001 is larger than configured max size 1000"
    peer.send(Channel.CloseOk())
    assert isinstance(peer.call(Channel.Open()), Channel.OpenOk)
    world.close()


# What is refused

SOFT = [
    (Queue.Declare(queue="none", passive=True), 404, "NOT_FOUND - no queue 'none' in vhost '/'"),
    (Queue.Declare(passive=True), 404, "NOT_FOUND - no previously declared queue"),
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
        Queue.Declare(queue="r", arguments={"x-message-ttl": 1}),
        406,
        "PRECONDITION_FAILED - invalid arg 'x-message-ttl' for queue 'r' in vhost '/': not supported",
    ),
    (
        Queue.Declare(queue="r", arguments={"x-queue-type": "quorum"}),
        406,
        "PRECONDITION_FAILED - invalid arg 'x-queue-type' for queue 'r' in vhost '/': 'quorum' is not supported",
    ),
    (
        Exchange.Declare(exchange="r", arguments={"alternate-exchange": "x"}),
        406,
        "PRECONDITION_FAILED - invalid arg 'alternate-exchange' for exchange 'r' in vhost '/': not supported",
    ),
    (
        Basic.Consume(queue="q", consumer_tag="t", arguments={"x-priority": 1}),
        406,
        "PRECONDITION_FAILED - invalid arg 'x-priority' for consumer 't' of queue 'q': not supported",
    ),
    (Queue.Declare(queue="amq.mine"), 403, "ACCESS_REFUSED - queue name 'amq.mine' contains reserved prefix 'amq.*'"),
    (
        Exchange.Declare(exchange="amq.mine"),
        403,
        "ACCESS_REFUSED - exchange name 'amq.mine' contains reserved prefix 'amq.*'",
    ),
    (Exchange.Declare(exchange=""), 403, "ACCESS_REFUSED - operation not permitted on the default exchange"),
    (Exchange.Delete(exchange=""), 403, "ACCESS_REFUSED - operation not permitted on the default exchange"),
    (Exchange.Delete(exchange="amq.fanout"), 403, "ACCESS_REFUSED - exchange name 'amq.fanout' contains reserved"),
    (Queue.Bind(queue="q", exchange=""), 403, "ACCESS_REFUSED - operation not permitted on the default exchange"),
    (Queue.Delete(queue="q", if_unused=True), 406, "PRECONDITION_FAILED - queue 'q' in vhost '/' in use"),
    (Queue.Delete(queue="full", if_empty=True), 406, "PRECONDITION_FAILED - queue 'full' in vhost '/' is not empty"),
    (Exchange.Delete(exchange="x", if_unused=True), 406, "PRECONDITION_FAILED - exchange 'x' in vhost '/' in use"),
    (Basic.Ack(1), 406, "PRECONDITION_FAILED - unknown delivery tag 1"),
    (Basic.Ack(-1), 406, f"PRECONDITION_FAILED - unknown delivery tag {2**64 - 1}"),
    (Basic.Nack(9, requeue=True), 406, "PRECONDITION_FAILED - unknown delivery tag 9"),
    (Basic.Reject(0), 406, "PRECONDITION_FAILED - unknown delivery tag 0"),
]
HARD = [
    (Exchange.Declare(exchange="r", exchange_type="headers"), 540, "NOT_IMPLEMENTED - exchanges of type 'headers'"),
    (Exchange.Declare(exchange="r", exchange_type="x-odd"), 503, "COMMAND_INVALID - unknown exchange type 'x-odd'"),
    (Tx.Select(), 540, "NOT_IMPLEMENTED - tx.select is not supported"),
    (Exchange.Bind(destination="a", source="b"), 540, "NOT_IMPLEMENTED - exchange.bind is not supported"),
    (Basic.Recover(requeue=False), 540, "NOT_IMPLEMENTED - requeue=false"),
    (Basic.Qos(prefetch_size=1), 540, "NOT_IMPLEMENTED - prefetch_size!=0 (1)"),
    (Channel.Flow(active=False), 540, "NOT_IMPLEMENTED - active=false"),
    (Basic.Consume(queue="q", consumer_tag="used"), 530, "NOT_ALLOWED - attempt to reuse consumer tag 'used'"),
    (Channel.Open(), 504, "CHANNEL_ERROR - second 'channel.open' seen"),
    (Queue.PurgeOk(message_count=0), 503, "COMMAND_INVALID - unexpected queue.purgeok"),
    (Connection.Blocked("x"), 503, "COMMAND_INVALID - connection.blocked on a channel"),
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
    assert (close.class_id << 16 | close.method_id) == method.index or isinstance(
        method, Basic.Ack | Basic.Nack | Basic.Reject
    )
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


def test_immediate_is_not_implemented(world):
    peer = world.client()
    peer.publish(b"x", key="q", immediate=True)
    (close,) = peer.take()
    assert (close.reply_code, close.reply_text) == (540, "NOT_IMPLEMENTED - immediate=true")


def test_a_right_tag_before_a_wrong_one_counts(world):
    peer = world.client()
    peer.declare("q")
    peer.publish(b"1", b"2", key="q").consume("q").take()
    peer.send(Basic.Ack(1), Basic.Ack(7), Basic.Ack(2))
    (close,) = peer.take()
    assert close.reply_text == "PRECONDITION_FAILED - unknown delivery tag 7"
    peer.send(Channel.CloseOk())
    peer.call(Channel.Open())
    assert peer.declare("q", passive=True).message_count == 1


def test_a_user_may_be_kept_from_things(tmp_path, monkeypatch):
    monkeypatch.setenv("JOE", "secret")
    joe = {"password_env": "JOE", "may_publish": False, "may_configure": False, "may_subscribe": False}
    world = AmqpWorld(tmp_path, auth={"users": {"joe": joe}})
    world.client().declare("q")
    for do in (
        lambda peer: peer.publish(b"x", key="q"),
        lambda peer: peer.send(Queue.Declare(queue="r")),
        lambda peer: peer.send(Exchange.Declare(exchange="r")),
        lambda peer: peer.send(Basic.Consume(queue="q")),
        lambda peer: peer.send(Basic.Get(queue="q")),
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


def test_origin_travels_to_other_doors(world):
    device = world.client_of_mqtt(b"dev-1", (b"#", 0))
    peer = world.client(properties={"connection_name": "billing"})
    peer.publish(b"x", exchange="amq.topic", key="a")
    assert device.bodies() == [b"x"]
    stored = world.read_parent()
    assert stored[-1][b"LMQ_PROTOCOL"] == b"amqp"
    assert stored[-1][b"LMQ_CLIENT"] == b"billing"
    assert stored[-1][b"LMQ_USER"] == b"guest"


def test_flow_may_be_asked_for_what_is_so_anyway(world):
    peer = world.client()
    assert isinstance(peer.call(Channel.Flow(active=True)), Channel.FlowOk)
