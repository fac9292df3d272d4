"""`amq.topic` bound to exchanges that look at more than the routing key: messages of every door find their way."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from pamqp.commands import Basic, Exchange, Queue, Tx

from core.lmq.queue_name import amqp_crossing_name, is_crossing
from core.message import FLAG_MARK
from core.properties import TOPIC, encode_properties
from gateway.amqp.crossing import Crossing
from gateway.amqp.exchanges import ExchangeTable
from gateway.mqtt.properties import Property
from tests.support import mqtt
from tests.support.mqtt_5 import encoded, enter


def bind(peer, queue, exchange, key="", **arguments):
    peer.declare(queue, durable=True)
    arguments = {name.replace("_", "-"): value for name, value in arguments.items()}
    assert isinstance(
        peer.call(Queue.Bind(queue=queue, exchange=exchange, routing_key=key, arguments=arguments)), Queue.BindOk
    )


def link(peer, source, destination, key="#"):
    answer = peer.call(Exchange.Bind(destination=destination, source=source, routing_key=key))
    assert isinstance(answer, Exchange.BindOk)


def declare(peer, name, kind, **arguments):
    said = {key.replace("_", "-"): value for key, value in arguments.items()}
    answer = peer.call(Exchange.Declare(exchange=name, exchange_type=kind, durable=True, arguments=said))
    assert isinstance(answer, Exchange.DeclareOk)


def got(world, queue):
    """Return what a queue has, and empty it."""
    peer = world.client()
    found = []
    while not isinstance(answer := peer.call(Basic.Get(queue=queue, no_ack=True)), Basic.GetEmpty):
        found.append(answer.body)
    return found


def device(world, *properties):
    peer = enter(world, b"device")
    number = iter(range(1, 100))

    def publish(topic, body, *pairs):
        said = encoded(*((Property.USER, pair) for pair in pairs))
        peer.send(mqtt.publish_5(topic, body, said, qos=1, packet_id=next(number)))

    return publish


@pytest.fixture
def peer(world):
    peer = world.client()
    bind(peer, "red", "amq.headers", colour="red")
    bind(peer, "two", "amq.headers", coats=2)
    link(peer, "amq.topic", "amq.headers", "paint.#")
    return peer


def test_message_of_amqp_goes_by_its_headers(world, peer):
    for headers in ({"colour": "red"}, {"colour": "blue"}, {"coats": 2, "colour": "red"}, None):
        peer.publish(b"%r" % headers, exchange="amq.topic", key="paint.wall", headers=headers)
    peer.publish(b"other", exchange="amq.topic", key="wood", headers={"colour": "red"})
    assert got(world, "red") == [b"{'colour': 'red'}", b"{'coats': 2, 'colour': 'red'}"]
    assert got(world, "two") == [b"{'coats': 2, 'colour': 'red'}"]


@pytest.mark.parametrize("is_transactional", [False, True])
def test_mandatory_message_that_none_of_its_headers_takes_anywhere_comes_back(world, peer, is_transactional):
    if is_transactional:
        peer.call(Tx.Select())
    for colour in ("blue", "red"):
        peer.publish(colour.encode(), exchange="amq.topic", key="paint.x", mandatory=True, headers={"colour": colour})
    peer.publish(b"not mandatory", exchange="amq.topic", key="paint.x", headers={"colour": "blue"})
    if is_transactional:
        peer.send(Tx.Commit())
    returned = [frame for frame in peer.take() if getattr(frame, "body", None) is not None]
    assert [(frame.body, frame.method.reply_code, frame.method.routing_key) for frame in returned] == [
        (b"blue", 312, "paint.x")
    ]
    assert got(world, "red") == [b"red"]


def test_mandatory_message_that_another_reader_of_its_topic_takes_does_not_come_back(world, peer):
    bind(peer, "all", "amq.topic", "paint.#")
    peer.publish(b"1", exchange="amq.topic", key="paint.x", mandatory=True, headers={"colour": "blue"})
    assert peer.take() == []
    assert got(world, "all") == [b"1"]


def test_message_of_a_device_goes_by_its_user_properties(world, peer):
    publish = device(world)
    publish(b"paint/wall", b"1", (b"colour", b"red"))
    publish(b"paint/wall", b"2", (b"colour", b"blue"))
    publish(b"paint/wall", b"3")
    publish(b"paint/wall", b"4", (b"coats", b"2"), (b"x-amqp-types", b"bcoats="))  # a number, as from AMQP
    assert (got(world, "red"), got(world, "two")) == ([b"1"], [b"4"])


def test_headers_that_the_gateway_adds_count_as_a_consumer_is_told_them(world, peer):
    """Each header of a delivery, bound to alone with its very value, would have led the message there."""
    long = b"long/" + b"x" * 300
    bind(peer, "seen", "amq.topic", "#")
    link(peer, "amq.topic", "amq.match")
    publish = device(world)
    publish(b"a", b"0", (b"level", b"hi"))
    (frame,) = [peer.call(Basic.Get(queue="seen", no_ack=True))]
    told = dict(frame.properties.headers)
    assert {"x-client-id", "x-protocol", "timestamp_in_ms", "x-mqtt-publish-qos", "level"} <= told.keys()
    del told["timestamp_in_ms"]
    for name, value in told.items():
        bind(peer, f"by {name}", "amq.match", **{"x-match": "any-with-x", name: value})
    peer.declare("when", durable=True)
    peer.call(Queue.Bind(queue="when", exchange="amq.match", arguments={"timestamp_in_ms": None}))
    bind(peer, "both", "amq.match", **{"x-match": "all-with-x", "x-client-id": "device", "level": "hi"})
    bind(peer, "other", "amq.match", **{"x-match": "any-with-x", "x-client-id": "other", "x-mqtt-publish-qos": 0})
    bind(peer, "whole", "amq.match", **{"x-match": "any-with-x", "x-topic": long.decode()})
    publish(b"a", b"1", (b"level", b"hi"))
    publish(long, b"2", (b"level", b"lo"))
    assert got(world, "both") == got(world, "by level") == [b"1"]
    assert got(world, "by x-client-id") == got(world, "by x-mqtt-publish-qos") == got(world, "when") == [b"1", b"2"]
    assert (got(world, "other"), got(world, "whole")) == ([], [b"2"])


def test_other_readers_of_the_topic_get_all_of_it(world, peer):
    bind(peer, "all", "amq.topic", "paint.#")
    listener = world.client_of_mqtt(b"listener", (b"paint/#", 0))
    for colour in ("red", "blue"):
        peer.publish(colour.encode(), exchange="amq.topic", key="paint.wall", headers={"colour": colour})
    assert listener.bodies() == got(world, "all") == [b"red", b"blue"]
    assert got(world, "red") == [b"red"]


def test_exchange_behind_others_is_found_too(world):
    peer = world.client()
    declare(peer, "mid", "fanout")
    declare(peer, "last", "fanout", alternate_exchange="amq.match")
    bind(peer, "red", "amq.match", colour="red")
    link(peer, "amq.topic", "mid")
    link(peer, "mid", "last", "")
    publish = device(world)
    publish(b"a", b"1", (b"colour", b"red"))
    publish(b"a", b"2", (b"colour", b"blue"))
    assert got(world, "red") == [b"1"]


def test_exchange_that_leads_to_amq_topic_leads_on_from_there(world, peer):
    declare(peer, "in", "direct")
    link(peer, "in", "amq.topic", "paint.wall")
    peer.publish(b"1", exchange="in", key="paint.wall", headers={"colour": "red"})
    peer.publish(b"2", exchange="in", key="paint.wall", headers={"colour": "blue"})
    assert got(world, "red") == [b"1"]


def test_random_exchange_gives_each_message_to_one(world):
    peer = world.client()
    declare(peer, "chance", "x-random")
    for name in ("a", "b"):
        bind(peer, name, "chance", name)
    link(peer, "amq.topic", "chance")
    publish = device(world)
    for i in range(64):
        publish(b"t", b"%d" % i)
    counts = [len(got(world, name)) for name in ("a", "b")]
    assert sum(counts) == 64
    assert min(counts) > 0


def test_exchange_that_hashes_a_header_gives_equal_values_to_one_queue(world):
    peer = world.client()
    declare(peer, "shards", "x-consistent-hash", hash_header="site")
    for name in ("a", "b"):
        bind(peer, name, "shards", "1")
    link(peer, "amq.topic", "shards")
    publish = device(world)
    for i in range(40):
        publish(b"t", b"%d" % (i % 10), (b"site", b"%d" % (i % 10)))
    found = [{*got(world, name)} for name in ("a", "b")]
    assert found[0] & found[1] == set()
    assert len(found[0] | found[1]) == 10


def test_it_holds_after_a_start_and_ends_with_the_binding(world, peer):
    world.flush()
    world.store.close()
    world.open()
    peer = world.client()
    peer.publish(b"1", exchange="amq.topic", key="paint.wall", headers={"colour": "red"})
    assert got(world, "red") == [b"1"]
    unlinked = Exchange.Unbind(destination="amq.headers", source="amq.topic", routing_key="paint.#")
    assert isinstance(peer.call(unlinked), Exchange.UnbindOk)
    peer.publish(b"2", exchange="amq.topic", key="paint.wall", headers={"colour": "red"})
    assert got(world, "red") == []
    assert world.broker.detours.crossroads.asked == {}


def test_one_of_two_bindings_may_go(world, peer):
    link(peer, "amq.topic", "amq.headers", "#")
    peer.publish(b"1", exchange="amq.topic", key="paint.wall", headers={"colour": "red"})
    peer.call(Exchange.Unbind(destination="amq.headers", source="amq.topic", routing_key="paint.#"))
    peer.publish(b"2", exchange="amq.topic", key="paint.wall", headers={"colour": "red"})
    assert got(world, "red") == [b"1", b"2"]


def test_binding_that_comes_later_is_found(world, peer):
    peer.publish(b"1", exchange="amq.topic", key="paint.wall", headers={"colour": "blue"})
    bind(peer, "blue", "amq.headers", colour="blue")
    peer.publish(b"2", exchange="amq.topic", key="paint.wall", headers={"colour": "blue"})
    assert got(world, "blue") == [b"2"]


def test_in_transactions_with_confirms_and_full_queues_too(world, peer):
    peer.declare("few", durable=True, arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    peer.call(Queue.Bind(queue="few", exchange="amq.headers", arguments={"colour": "green"}))
    peer.confirms()
    for i in range(3):
        peer.publish(b"%d" % i, exchange="amq.topic", key="paint.wall", headers={"colour": "green"})
    world.turn()
    assert [type(one) for one in peer.take()] == [Basic.Ack, Basic.Nack, Basic.Nack]
    assert got(world, "few") == [b"0"]


def test_nothing_is_in_the_queue_that_stands_for_it(world, peer):
    peer.publish(b"1", exchange="amq.topic", key="paint.wall", headers={"colour": "red"})
    name = amqp_crossing_name(b"/", b"amq.headers")
    assert is_crossing(name)
    assert world.broker.max_offset(world.broker.find_queue(name)) == 0


def test_message_that_names_the_queue_which_stands_for_it_goes_nowhere_from_there(world, peer):
    """A producer of RocketMQ may name any light queues."""
    peer.publish(b"0", exchange="amq.topic", key="paint.wall", headers={"colour": "blue"})
    name = amqp_crossing_name(b"/", b"amq.headers")
    crossing = world.broker.detours.crossroads.asked[world.broker.find_queue(name)]
    assert crossing.lead(b"", b"colour\x01red\x02", FLAG_MARK, 0).names == ()
    assert crossing.lead(encode_properties([(TOPIC, b"paint/wall")]), b"colour\x01red\x02", FLAG_MARK, 0).names != []


@given(st.binary(max_size=200), st.integers(0, 2**31 - 1), st.sampled_from((b"t", b"t" * 300)))
def test_whatever_the_properties_are_they_are_read(properties, flag, topic):
    table = ExchangeTable("/", lambda *_: None, lambda *_: None, lambda: None)
    crossing = Crossing("/", table.get("amq.headers"), table, lambda _: [], lambda *_: [])
    assert crossing.lead(encode_properties([(TOPIC, topic)]), properties, flag, 0) == ([], (), None)
