from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pamqp.commands import Basic, Confirm, Exchange, Queue, Tx

from gateway.mqtt.exact_log import ExactLog
from gateway.mqtt.properties import Property
from tests.support import amqp, mqtt
from tests.support.mqtt_5 import encoded, enter


def wait(world, ms):
    world.now_ms += ms
    world.broker.request_run(world.broker.timer)
    world.turn()
    while world.broker.has_work:
        world.turn()


def declare(peer, name="later", kind="direct", **arguments):
    arguments = {"x-delayed-type": kind, **arguments}
    method = Exchange.Declare(exchange=name, exchange_type="x-delayed-message", durable=True, arguments=arguments)
    assert isinstance(peer.call(method), Exchange.DeclareOk)


def bind(peer, queue, key, source="later", **arguments):
    peer.declare(queue, durable=True)
    method = Queue.Bind(queue=queue, exchange=source, routing_key=key, arguments=arguments)
    assert isinstance(peer.call(method), Queue.BindOk)


def publish(peer, text, delay=None, key="a", **options):
    headers = options.pop("headers", {})
    if delay is not None:
        headers["x-delay"] = delay
    return peer.publish(text, exchange="later", key=key, headers=headers, **options)


@pytest.fixture
def peer(world):
    peer = world.client()
    declare(peer)
    bind(peer, "q", "a")
    peer.consume("q", no_ack=True)
    peer.take()
    return peer


def test_a_message_comes_when_its_delay_is_over(world, peer):
    publish(peer, b"last", 5_000)
    publish(peer, b"first", 2_000)
    publish(peer, b"now")
    assert peer.bodies() == [b"now"]
    wait(world, 1_999)
    assert peer.bodies() == []
    wait(world, 1)
    assert peer.bodies() == [b"first"]
    wait(world, 3_000)
    assert peer.bodies() == [b"last"]


def test_a_delayed_message_is_what_was_published_and_says_that_it_was_delayed(world, peer):
    at = datetime.fromtimestamp(1_700_000_000, UTC)
    publish(
        peer,
        b"m",
        70_000,
        headers={"n": 1, "t": "x"},
        timestamp=at,
        delivery_mode=2,
        message_id="id",
        expiration="5000",
    )
    wait(world, 70_000)
    (message,) = peer.messages()
    assert (message.method.exchange, message.method.routing_key) == ("later", "a")
    said = message.properties
    assert said.headers == {"n": 1, "t": "x", "x-delay": -70_000}
    assert (said.timestamp, said.delivery_mode, said.message_id, said.expiration) == (at, 2, "id", "5000")
    stored = world.read_parent()[-1]
    assert (stored[b"x-delay"], stored[b"LMQ_PROTOCOL"]) == (b"-70000", b"amqp")


@pytest.mark.parametrize("delay", [0, -5, 1 << 32, 1 << 40, "soon", "", True, [1], {"a": 1}, 0.5])
def test_what_is_no_delay_goes_at_once(peer, delay):
    publish(peer, b"m", delay)
    (message,) = peer.messages()
    assert message.properties.headers == {"x-delay": delay}


@pytest.mark.parametrize(("delay", "back"), [("1000", -1_000), (1_000.9, -1_000)])
def test_texts_and_fractions_that_are_numbers_are_delays(world, peer, delay, back):
    publish(peer, b"m", delay)
    wait(world, 999)
    assert peer.messages() == []
    wait(world, 1)
    assert peer.messages()[0].properties.headers == {"x-delay": back}


def test_a_message_goes_where_the_bindings_lead_when_it_is_due(world, peer):
    publish(peer, b"m", 1_000)
    publish(peer, b"none", 1_000, key="nothing")
    bind(peer, "late", "a")
    peer.call(Queue.Unbind(queue="q", exchange="later", routing_key="a"))
    wait(world, 1_000)
    assert peer.messages() == []
    peer.consume("late", "l", no_ack=True)
    assert peer.bodies() == [b"m"]
    assert world.amqp_counts.dropped == {"unroutable": 1}


def test_a_message_for_an_exchange_that_is_gone_is_dropped(world, peer):
    publish(peer, b"m", 1_000)
    peer.call(Exchange.Delete(exchange="later"))
    wait(world, 1_000)
    assert peer.messages() == []
    assert world.amqp_counts.dropped == {"unroutable": 1}


def test_what_waits_is_confirmed_and_not_returned_and_outlives_the_process(world, peer):
    peer.confirms()
    publish(peer, b"m", 90_000, mandatory=True, user_id="guest")
    assert [type(one) for one in peer.take()] == [Basic.Ack]
    world.close()
    world.open()
    peer = world.client().consume("q", no_ack=True)
    wait(world, 89_000)
    assert peer.messages() == []
    wait(world, 1_000)
    assert peer.bodies() == [b"m"]
    wait(world, 100_000)
    assert peer.messages() == []


def test_copies_wait_with_the_message_and_each_queue_gets_it_once(world, peer):
    bind(peer, "other", "b")
    bind(peer, "other", "c")
    publish(peer, b"m", 1_000, headers={"CC": ["b"], "BCC": ["c"]})
    wait(world, 1_000)
    (message,) = peer.messages()
    assert message.properties.headers == {"CC": ["b"], "x-delay": -1_000}
    peer.consume("other", "o", no_ack=True)
    assert peer.bodies() == [b"m"]


def test_it_routes_like_the_type_that_was_named(world, peer):
    declare(peer, "by_topic", "topic")
    declare(peer, "by_headers", "headers")
    declare(peer, "by_hash", "x-consistent-hash", **{"hash-header": "h"})
    bind(peer, "t", "a.#", "by_topic")
    bind(peer, "h", "", "by_headers", kind="x")
    for queue in ("c1", "c2"):
        bind(peer, queue, "1", "by_hash")
    world.close()
    world.open()
    peer = world.client()
    for delay in (0, 1_000):
        headers = {"x-delay": delay, "kind": "x", "h": 1}
        for source in ("by_topic", "by_headers", "by_hash"):
            peer.write(*[amqp.publish(1, b"m", exchange=source, key=f"a.{i}", headers=headers) for i in range(3)])
    wait(world, 1_000)
    counts = {queue: peer.declare(queue, durable=True).message_count for queue in ("t", "h", "c1", "c2")}
    assert (counts["t"], counts["h"], sorted((counts["c1"], counts["c2"]))) == (6, 6, [0, 6])


def test_devices_get_what_a_delaying_exchange_leads_to_the_topic_space(world, peer):
    subscriber = world.client_of_mqtt(b"d", (b"a/#", 0))
    declare(peer, "by_topic", "topic")
    peer.call(Exchange.Bind(destination="amq.topic", source="by_topic", routing_key="a.*"))
    peer.publish(b"m", exchange="by_topic", key="a.b", headers={"x-delay": 1_000})
    assert subscriber.bodies() == []
    wait(world, 1_000)
    assert subscriber.bodies() == [b"m"]


def test_the_delay_of_what_a_transaction_publishes_begins_with_its_commit(world, peer):
    peer.call(Tx.Select())
    publish(peer, b"m", 1_000)
    wait(world, 5_000)
    assert peer.messages() == []
    assert isinstance(peer.call(Tx.Commit()), Tx.CommitOk)
    wait(world, 999)
    assert peer.messages() == []
    wait(world, 1)
    assert peer.bodies() == [b"m"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "Invalid argument, 'x-delayed-type' must be an existing exchange type"),
        ({"x-delayed-type": 1}, "Invalid argument, 'x-delayed-type' must be an existing exchange type"),
        ({"x-delayed-type": "x-none"}, "unknown exchange type 'x-none'"),
        ({"x-delayed-type": "x-delayed-message"}, "unknown exchange type 'x-delayed-message'"),
    ],
)
def test_a_type_that_it_cannot_route_like_costs_the_channel(world, arguments, text):
    declare = Exchange.Declare(exchange="x", exchange_type="x-delayed-message", arguments=arguments)
    close = world.client().call(declare)
    assert (close.reply_code, text in close.reply_text) == (406, True)


def test_one_that_is_there_is_declared_again(peer):
    declare(peer)


def test_an_alternate_takes_what_finds_no_binding_when_it_is_due(world, peer):
    declare(peer, "second", **{"alternate-exchange": "amq.fanout"})
    bind(peer, "rest", "", "amq.fanout")
    peer.publish(b"m", exchange="second", headers={"x-delay": 1_000})
    assert peer.declare("rest", durable=True).message_count == 0
    wait(world, 1_000)
    assert peer.declare("rest", durable=True).message_count == 1


def test_what_comes_as_an_alternate_or_as_a_dead_letter_waits_too(world, peer):
    peer.call(Exchange.Declare(exchange="first", exchange_type="direct", arguments={"alternate-exchange": "later"}))
    peer.publish(b"alternate", exchange="first", key="a", headers={"x-delay": 1_000})
    peer.publish(b"at once", exchange="first", key="a")
    assert peer.bodies() == [b"at once"]
    wait(world, 1_000)
    assert peer.bodies() == [b"alternate"]
    peer.declare("dying", arguments={"x-dead-letter-exchange": "later", "x-dead-letter-routing-key": "a"})
    peer.publish(b"letter", key="dying", headers={"x-delay": 1_000})
    peer.consume("dying", "d")
    (message,) = peer.messages()
    peer.send(Basic.Reject(message.tag, requeue=False))
    world.turn()
    assert peer.bodies() == []
    wait(world, 1_000)
    (letter,) = peer.messages()
    assert (letter.body, letter.properties.headers["x-delay"]) == (b"letter", -1_000)
    assert letter.properties.headers["x-first-death-queue"] == "dying"


# Bindings that lead to an exchange that delays


def link(peer, source, destination="later", key="a", **arguments):
    method = Exchange.Bind(destination=destination, source=source, routing_key=key, arguments=arguments)
    assert isinstance(peer.call(method), Exchange.BindOk)


def inflow(peer, source="in", kind="direct", key="a"):
    """Declare an exchange that leads to `later` and to the queue `now`."""
    if not source.startswith("amq."):
        peer.call(Exchange.Declare(exchange=source, exchange_type=kind, durable=True))
    link(peer, source, key=key)
    bind(peer, "now", key, source)


def counts(peer, *queues):
    return [peer.declare(queue, durable=True).message_count for queue in queues]


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


def test_a_dead_letter_that_no_record_has_room_for_holds_no_other_up(world, peer):
    bind(peer, "q", "dying")
    peer.declare("dying", arguments={"x-dead-letter-exchange": "later"})
    keys = [f"{number:0200}" for number in range(75)]  # they wait with the message, beside its own properties
    peer.publish(b"too large", key="dying", headers={"x-delay": 5_000, "CC": keys})
    peer.publish(b"another", key="dying", headers={"x-delay": 5_000})
    peer.consume("dying", "d")
    for expected in ([b"too large", b"another"], [b"another"], []):
        messages = peer.messages()
        assert [message.body for message in messages] == expected
        if messages:
            peer.send(Basic.Nack(messages[-1].tag, multiple=True, requeue=False))
        world.turn()
    world.now_ms += 1_000
    world.broker.handle_timer(world.now_ms)
    world.turn()
    assert peer.bodies() == [b"too large"]  # it stays until somebody takes it
    wait(world, 4_000)
    assert peer.bodies() == [b"another"]
