from __future__ import annotations

import pytest
from pamqp.commands import Basic, Exchange, Queue

from gateway.amqp.channel import Channel as AmqpChannel, Incomplete
from gateway.amqp.copies import take_copies
from gateway.amqp.errors import AmqpError
from gateway.amqp.events import make_publish_run
from gateway.amqp.output import ConnectionOutput
from gateway.amqp.property_block import BlockReader
from gateway.amqp.publishing import Publisher
from gateway.auth.credentials import Identity
from gateway.auth.permissions import Permissions
from tests.support import amqp
from tests.support.mqtt_door import MemoryTransport


def taken(block):
    reader = BlockReader()
    reader.read(block, 0, len(block))
    return take_copies(block, reader.headers_start, reader.headers_end)


def counts(peer, *queues):
    return [peer.declare(queue, passive=True).message_count for queue in queues]


@pytest.mark.parametrize(
    ("headers", "keys", "left"),
    [
        ({"CC": ["a", "b"]}, (b"a", b"b"), {"CC": ["a", "b"]}),
        ({"BCC": ["a"], "x": 1}, (b"a",), {"x": 1}),
        ({"x": 1, "BCC": ["a"]}, (b"a",), {"x": 1}),
        (
            {"p": [True], "BCC": ["b"], "q": {"r": 1}, "CC": ["c"]},
            (b"c", b"b"),
            {"p": [True], "q": {"r": 1}, "CC": ["c"]},
        ),
        ({"CC": [1, "a", {"b": "c"}, None]}, (b"a",), {"CC": [1, "a", {"b": "c"}, None]}),
        ({"BCC": []}, (), {}),
    ],
)
def test_keys_come_out_and_bcc_goes(headers, keys, left):
    found, block = taken(amqp.block(headers=headers, content_type="t", message_id="m"))
    assert found == keys
    assert block == amqp.block(headers=left, content_type="t", message_id="m")


@pytest.mark.parametrize(("value", "kind"), [("a", "longstr"), (True, "bool"), (None, "void"), ({"a": "b"}, "table")])
@pytest.mark.parametrize("name", ["CC", "BCC"])
def test_what_is_no_array_is_refused_in_the_words_of_rabbitmq(name, value, kind):
    block = amqp.block(headers={name: value})
    with pytest.raises(AmqpError) as caught:
        taken(block)
    reason = f'invalid message: {{unacceptable_type_in_header,"{name}",{kind}}}'
    assert caught.value.reply_text == f"PRECONDITION_FAILED - {reason}"


def test_a_wrong_header_costs_the_channel(world):
    peer = world.client()
    peer.publish(b"x", key="q", headers={"CC": "q2"})
    (close,) = peer.take()
    assert (close.reply_code, close.class_id, close.method_id) == (406, 60, 40)
    assert "unacceptable_type_in_header" in close.reply_text


def test_copies_go_to_each_queue_once(world):
    peer = world.client()
    for queue in ("q1", "q2", "q3", "q4"):
        peer.declare(queue)
    peer.confirms().publish(b"x", key="q1", headers={"CC": ["q2", "q1", "none"], "BCC": ["q3", "q2"]})
    assert [type(one) for one in peer.take()] == [Basic.Ack]
    assert counts(peer, "q1", "q2", "q3", "q4") == [1, 1, 1, 0]
    for queue in ("q2", "q3"):
        got = peer.call(Basic.Get(queue=queue))
        assert (got.method.routing_key, got.properties.headers) == ("q1", {"CC": ["q2", "q1", "none"]})


def test_a_run_of_publishes_goes_on_after_one_with_copies(world):
    peer = world.client()
    for queue in ("q1", "q2"):
        peer.declare(queue)
    with_copies = amqp.publish(1, b"c", key="q1", headers={"CC": ["q2"]})
    plain = amqp.publish(1, b"p", key="q1", headers={"CCC": ["q2"]})
    peer.confirms().write(plain, plain, with_copies, with_copies, plain, amqp.publish(1, b"", key="q2"))
    assert [(ack.delivery_tag, ack.multiple) for ack in peer.take()] == [(6, True)]
    assert counts(peer, "q1", "q2") == [5, 3]
    bodies = [peer.call(Basic.Get(queue="q1")).body for _ in range(5)]
    assert bodies == [b"p", b"p", b"c", b"c", b"p"]


def test_direct_and_topic_exchanges_take_copies(world):
    peer = world.client()
    for kind in ("direct", "topic"):
        peer.call(Exchange.Declare(exchange=kind, exchange_type=kind))
        for key in ("a.b", "c.d"):
            peer.declare(f"{kind} {key}")
            peer.call(Queue.Bind(queue=f"{kind} {key}", exchange=kind, routing_key=key))
        peer.publish(b"x", exchange=kind, key="none", headers={"BCC": ["c.d"]})
        assert counts(peer, f"{kind} a.b", f"{kind} c.d") == [0, 1]


def test_copies_on_the_one_topic_space_reach_queues_and_devices(world):
    device = world.client_of_mqtt(b"dev", (b"c/+", 0))
    peer = world.client()
    peer.declare("q")
    peer.call(Queue.Bind(queue="q", exchange="amq.topic", routing_key="a.*"))
    peer.publish(b"x", exchange="amq.topic", key="a.b", headers={"CC": ["c.d"]})
    assert device.bodies() == [b"x"]
    got = peer.call(Basic.Get(queue="q"))
    assert (got.body, got.method.exchange, got.method.routing_key) == (b"x", "amq.topic", "a.b")


def test_what_none_of_the_keys_routes_is_returned_without_bcc(world):
    peer = world.client()
    peer.publish(b"x", key="none", mandatory=True, headers={"CC": ["no"], "BCC": ["nobody"], "a": 1})
    (returned,) = peer.take()
    assert isinstance(returned.method, Basic.Return)
    assert returned.properties.headers == {"CC": ["no"], "a": 1}
    peer.declare("there")
    peer.publish(b"x", key="none", mandatory=True, headers={"CC": ["there"]})
    assert counts(peer, "there") == [1]


class OpenOnly(Permissions):
    """May publish below `open` only."""

    def may_publish(self, topic):
        return topic.startswith(b"open/")


def test_the_user_must_be_allowed_to_publish_to_each_key(world):
    metrics = world.amqp_counts
    publisher = Publisher(world.broker, world.amqp.vhost, Identity("bob", OpenOnly()), metrics)
    pool = world.amqp.cutters
    transport = MemoryTransport(1)
    output = ConnectionOutput(transport)
    for key, is_allowed in (("open.b", True), ("secret", False)):
        block = amqp.block(headers={"BCC": [key]})
        pool.show().add(b"\x09amq.topic\x06open.a", 0, block, b"x", b"bob")
        run = make_publish_run(pool, AmqpChannel(1, Incomplete(0)))
        if is_allowed:
            publisher.publish(run, output, transport, world.now_ms)
            assert metrics.messages_in == 1
            continue
        with pytest.raises(AmqpError) as caught:
            publisher.publish(run, output, transport, world.now_ms)
        assert caught.value.code == 403


def test_a_key_longer_than_a_routing_key_can_be_routes_where_it_matches(world):
    peer = world.client()
    peer.declare("q")
    peer.call(Queue.Bind(queue="q", exchange="amq.topic", routing_key="long.#"))
    peer.publish(b"x", exchange="amq.topic", key="a", headers={"CC": ["long." + "x" * 5_000]})
    assert counts(peer, "q") == [1]


def test_an_alternate_takes_what_none_of_the_keys_leads_on(world):
    peer = world.client()
    for queue in ("a", "rest"):
        peer.declare(queue)
    peer.call(Exchange.Declare(exchange="else", exchange_type="fanout"))
    arguments = {"alternate-exchange": "else"}
    peer.call(Exchange.Declare(exchange="x", exchange_type="direct", arguments=arguments))
    peer.call(Queue.Bind(queue="rest", exchange="else"))
    peer.call(Queue.Bind(queue="a", exchange="x", routing_key="a"))
    peer.publish(b"1", exchange="x", key="nobody", headers={"CC": ["a"]})
    peer.publish(b"2", exchange="x", key="a", headers={"BCC": ["nobody"]})
    assert counts(peer, "a", "rest") == [2, 0]
    peer.publish(b"3", exchange="x", key="nobody", headers={"CC": ["none"]})
    assert counts(peer, "a", "rest") == [2, 1]


def test_exchanges_behind_the_first_are_led_through_by_all_keys(world):
    peer = world.client()
    peer.declare("q")
    for name in ("first", "second"):
        peer.call(Exchange.Declare(exchange=name, exchange_type="direct"))
    peer.call(Exchange.Bind(destination="second", source="first", routing_key="a"))
    peer.call(Queue.Bind(queue="q", exchange="second", routing_key="b"))
    peer.publish(b"1", exchange="first", key="a", headers={"CC": ["b"]})
    assert counts(peer, "q") == [1]
    peer.declare("dead", arguments={"x-dead-letter-exchange": "first", "x-message-ttl": 0})
    peer.publish(b"2", key="dead", headers={"CC": ["a", "b"]})
    assert counts(peer, "q") == [2]
