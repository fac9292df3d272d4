"""Messages wait at an exchange that delays where a binding leads to it."""

from __future__ import annotations

import pytest
from pamqp.commands import Basic, Confirm, Exchange, Tx

from gateway.mqtt.exact_log import ExactLog
from gateway.mqtt.properties import Property
from tests.support import mqtt
from tests.support.amqp_delays import bind, consuming, counts, declare, wait
from tests.support.mqtt_5 import encoded, enter


@pytest.fixture
def peer(world):
    return consuming(world)


def link(peer, source, destination="later", key="a", **arguments):
    method = Exchange.Bind(destination=destination, source=source, routing_key=key, arguments=arguments)
    assert isinstance(peer.call(method), Exchange.BindOk)


def inflow(peer, source="in", kind="direct", key="a"):
    """Declare an exchange that leads to `later` and to the queue `now`."""
    if not source.startswith("amq."):
        peer.call(Exchange.Declare(exchange=source, exchange_type=kind, durable=True))
    link(peer, source, key=key)
    bind(peer, "now", key, source)


def test_a_message_waits_on_one_of_its_ways_and_goes_on_at_once_by_the_others(world, peer):
    inflow(peer)
    peer.consume("now", "n", no_ack=True)
    peer.take()
    peer.publish(b"m", exchange="in", key="a", headers={"x-delay": 1_000, "n": 7}, message_id="1")
    (at_once,) = peer.messages()
    assert (at_once.method.exchange, at_once.method.routing_key, at_once.properties.headers["x-delay"]) == (
        "in",
        "a",
        1_000,
    )
    wait(world, 999)
    assert peer.bodies() == []
    wait(world, 1)
    (later,) = peer.messages()
    assert (later.body, later.method.exchange, later.method.routing_key) == (b"m", "in", "a")
    assert (later.properties.headers["x-delay"], later.properties.headers["n"]) == (-1_000, 7)
    assert later.properties.message_id == "1"
    wait(world, 5_000)
    assert peer.bodies() == []


@pytest.mark.parametrize("headers", [{}, {"x-delay": 0}, {"x-delay": -5}])
def test_what_says_no_delay_goes_through_at_once(peer, headers):
    inflow(peer)
    peer.publish(b"m", exchange="in", key="a", headers=headers)
    assert peer.bodies() == [b"m"]
    assert counts(peer, "now") == [1]


def test_several_exchanges_hold_a_message_and_a_queue_behind_two_of_them_gets_it_once(world, peer):
    inflow(peer)
    declare(peer, "second", "fanout")
    link(peer, "in", "second")
    bind(peer, "q", "", "second")
    bind(peer, "other", "", "second")
    peer.publish(b"m", exchange="in", key="a", headers={"x-delay": 1_000})
    assert (peer.bodies(), counts(peer, "now", "other")) == ([], [1, 0])
    peer.call(Exchange.Delete(exchange="second"))
    declare(peer, "second", "fanout")
    bind(peer, "other", "", "second")
    wait(world, 1_000)
    assert (peer.bodies(), counts(peer, "now", "other")) == ([b"m"], [1, 1])


def test_a_message_waits_at_exchanges_whose_names_fill_several_records(world, peer):
    names = [f"{number:02d}" + "x" * 120 for number in range(20)]
    peer.call(Exchange.Declare(exchange="in", exchange_type="fanout"))
    for name in names:
        declare(peer, name, "fanout")
        link(peer, "in", name)
        bind(peer, name[:2], "", name)
    peer.publish(b"m", exchange="in", key="a", headers={"x-delay": 1_000})
    assert counts(peer, *(name[:2] for name in names)) == 20 * [0]
    wait(world, 1_000)
    assert counts(peer, *(name[:2] for name in names)) == 20 * [1]


def test_a_message_waits_once_on_a_way_with_several_exchanges_that_delay_and_circles_end(world, peer):
    inflow(peer)
    declare(peer, "further")
    link(peer, "later", "further")
    link(peer, "further", "in")
    bind(peer, "end", "a", "further")
    peer.publish(b"m", exchange="in", key="a", headers={"x-delay": 1_000})
    wait(world, 1_000)
    assert (peer.bodies(), counts(peer, "now", "end")) == ([b"m"], [2, 1])
    wait(world, 10_000)
    assert (peer.bodies(), counts(peer, "now", "end")) == ([], [2, 1])


def test_the_alternate_of_the_source_takes_nothing_that_waits(world, peer):
    bind(peer, "rest", "", "amq.fanout")
    arguments = {"alternate-exchange": "amq.fanout"}
    peer.call(Exchange.Declare(exchange="in", exchange_type="direct", arguments=arguments))
    link(peer, "in")
    peer.publish(b"m", exchange="in", key="a", headers={"x-delay": 1_000})
    wait(world, 1_000)
    assert (peer.bodies(), counts(peer, "rest")) == ([b"m"], [0])


def test_what_only_waits_behind_a_binding_is_confirmed_and_not_returned(world, peer):
    peer.call(Exchange.Declare(exchange="in", exchange_type="fanout", durable=True))
    link(peer, "in")
    peer.call(Confirm.Select())
    peer.publish(b"m", exchange="in", key="a", headers={"x-delay": 1_000}, mandatory=True)
    world.flush()
    assert [type(frame) for frame in peer.take()] == [Basic.Ack]


def test_copies_of_a_message_wait_with_it_behind_a_binding(world, peer):
    inflow(peer)
    bind(peer, "b", "b")
    peer.publish(b"m", exchange="in", key="a", headers={"x-delay": 1_000, "CC": ["b"]})
    wait(world, 1_000)
    assert (peer.bodies(), counts(peer, "b", "now")) == ([b"m"], [1, 1])


def test_confirmed_messages_that_wait_behind_a_binding_outlive_the_process_once_each(world, peer):
    inflow(peer)
    peer.call(Confirm.Select())
    for number in range(300):
        peer.publish(b"%d" % number, exchange="in", key="a", headers={"x-delay": 1_000})
    world.flush()
    peer.take()
    world.close()
    world.open()
    again = world.client()
    wait(world, 1_000)
    assert counts(again, "now", "q") == [300, 300]
    wait(world, 10_000)
    assert counts(again, "now", "q") == [300, 300]


def test_a_transaction_publishes_to_both_ways_with_its_commit_or_to_none(world, peer):
    inflow(peer)
    peer.call(Tx.Select())
    peer.publish(b"m", exchange="in", key="a", headers={"x-delay": 1_000})
    peer.call(Tx.Rollback())
    wait(world, 2_000)
    assert (peer.bodies(), counts(peer, "now")) == ([], [0])
    peer.publish(b"m", exchange="in", key="a", headers={"x-delay": 1_000})
    wait(world, 2_000)
    assert isinstance(peer.call(Tx.Commit()), Tx.CommitOk)
    assert (peer.bodies(), counts(peer, "now")) == ([], [1])
    wait(world, 1_000)
    assert (peer.bodies(), counts(peer, "now")) == ([b"m"], [1])


def test_a_source_that_asks_for_headers_leads_to_it(world, peer):
    peer.call(Exchange.Declare(exchange="in", exchange_type="headers", durable=True))
    link(peer, "in", colour="red")
    for colour in ("red", "blue"):
        peer.publish(colour.encode(), exchange="in", key="a", headers={"x-delay": 1_000, "colour": colour})
    wait(world, 1_000)
    assert peer.bodies() == [b"red"]


def test_messages_of_amq_topic_wait_behind_its_bindings_whatever_door_they_come_by(world, peer):
    inflow(peer, "amq.topic")
    peer.consume("now", "n", no_ack=True)
    peer.take()
    device = enter(world, b"device")
    peer.publish(b"amqp", exchange="amq.topic", key="a", headers={"x-delay": 1_000})
    said = encoded((Property.USER, (b"x-delay", b"2000")), (Property.USER, (b"unit", b"C")))
    device.send(mqtt.publish_5(b"a", b"mqtt", said, qos=1, packet_id=1))
    world.turn()
    assert peer.bodies() == [b"amqp", b"mqtt"]
    wait(world, 1_000)
    (later,) = peer.messages()
    assert (later.body, later.method.exchange, later.properties.headers["x-delay"]) == (b"amqp", "amq.topic", -1_000)
    wait(world, 1_000)
    (later,) = peer.messages()
    headers = later.properties.headers
    assert (later.body, later.method.routing_key, headers["x-delay"], headers["unit"]) == (b"mqtt", "a", "-2000", "C")
    assert headers["x-protocol"] == "mqtt"
    wait(world, 10_000)
    assert peer.bodies() == []


def test_a_retained_message_that_waits_is_retained_once_and_what_comes_later_is_not(world, peer):
    inflow(peer, "amq.topic")
    device = enter(world, b"device")
    said = encoded((Property.USER, (b"x-delay", b"1000")))
    device.send(mqtt.publish_5(b"a", b"kept", said, qos=1, packet_id=1, retain=True))
    world.turn()
    assert (peer.bodies(), counts(peer, "now"), len(world.broker.retained)) == ([], [1], 1)
    wait(world, 1_000)
    assert (peer.bodies(), len(world.broker.retained)) == ([b"kept"], 1)


def test_the_log_says_once_that_a_message_at_qos_2_came_that_also_waits(world, peer):
    inflow(peer, "amq.topic")
    device = enter(world, b"device", (Property.SESSION_EXPIRY, 600))
    said = encoded((Property.USER, (b"x-delay", b"1000")))
    device.send(mqtt.publish_5(b"a", b"1", said, qos=2, packet_id=7), mqtt.publish_5(b"b", b"2", qos=2, packet_id=8))
    world.turn()
    log = ExactLog(world.broker)
    assert [found[:2] for found in log.find_from(0)] == [(b"device", 7), (b"device", 8)]
    assert log.count_from(0) == 2  # what came to the log before a kill: a copy is stored before its message


def test_mandatory_messages_that_wait_behind_amq_topic_are_not_returned(world, peer):
    link(peer, "amq.topic")
    peer.call(Confirm.Select())
    peer.publish(b"m", exchange="amq.topic", key="a", headers={"x-delay": 1_000}, mandatory=True)
    world.flush()
    assert [type(frame) for frame in peer.take()] == [Basic.Ack]
    wait(world, 1_000)
    assert peer.bodies() == [b"m"]


def test_dead_letters_wait_behind_a_binding(world, peer):
    inflow(peer)
    peer.declare("dying", arguments={"x-dead-letter-exchange": "in", "x-dead-letter-routing-key": "a"})
    for text in (b"1", b"2"):
        peer.publish(text, key="dying", headers={"x-delay": 1_000})
    peer.consume("dying", "d")
    for message in peer.messages():
        peer.send(Basic.Reject(message.tag, requeue=False))
    world.turn()
    assert (peer.bodies(), counts(peer, "now")) == ([], [2])
    wait(world, 1_000)
    assert [(one.body, one.properties.headers["x-death"][0]["queue"]) for one in peer.messages()] == [
        (b"1", "dying"), (b"2", "dying"),
    ]  # fmt: skip


def test_a_binding_that_leads_to_it_holds_after_a_start_and_ends_with_unbind(world, peer):
    inflow(peer)
    world.close()
    world.open()
    again = world.client()
    again.consume("q", no_ack=True)
    again.publish(b"m", exchange="in", key="a", headers={"x-delay": 1_000})
    wait(world, 1_000)
    assert again.bodies() == [b"m"]
    again.call(Exchange.Unbind(destination="later", source="in", routing_key="a"))
    again.publish(b"m", exchange="in", key="a", headers={"x-delay": 1_000})
    wait(world, 1_000)
    assert (again.bodies(), counts(again, "now")) == ([], [2])
