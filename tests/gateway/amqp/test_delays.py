from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pamqp.commands import Basic, Exchange, Queue, Tx

from tests.support import amqp
from tests.support.amqp_delays import bind, consuming, declare, publish, wait


@pytest.fixture
def peer(world):
    return consuming(world)


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
    assert peer.bodies() == [b"too large"]  # it stays until a client takes it
    wait(world, 4_000)
    assert peer.bodies() == [b"another"]
