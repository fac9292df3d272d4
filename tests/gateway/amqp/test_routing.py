from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from pamqp.commands import Basic, Exchange as Method, Queue

from gateway.amqp.exchanges import Exchange, ExchangeTable
from gateway.amqp.routing import NO_HEADERS, find_way, trace_way
from tests.support import amqp


def exchange(peer, name, kind="fanout", **options):
    return peer.call(Method.Declare(exchange=name, exchange_type=kind, **options))


def link(peer, source, destination, key="", **options):
    answer = peer.call(Method.Bind(destination=destination, source=source, routing_key=key, **options))
    assert isinstance(answer, Method.BindOk)


def bind(peer, queue, source, key="", **arguments):
    peer.declare(queue, durable=True)
    assert isinstance(
        peer.call(Queue.Bind(queue=queue, exchange=source, routing_key=key, arguments=arguments)), Queue.BindOk
    )


def counts(peer, *queues):
    return [peer.declare(queue, durable=True).message_count for queue in queues]


def make(name, kind="fanout", alternate=None):
    return Exchange(name, kind, durable=True, auto_delete=False, internal=False, alternate=alternate)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9)), max_size=20))
def test_a_way_through_exchanges_is_what_is_bound_and_circles_end(links):
    table = ExchangeTable("/", lambda *_: None, lambda *_: None, lambda: None)
    nodes = [make(f"x{i}") for i in range(5)]
    for node in nodes:
        table.add(node)
    for source, to in links:
        table.bind(nodes[source], (nodes[to] if to < 5 else f"q{to}", "k", None))
    reached, before = {0}, set()
    while reached != before:
        before = set(reached)
        reached |= {to for source, to in links if source in reached and to < 5}
    expected = {f"q{to}" for source, to in links if source in reached and to >= 5}
    assert set(find_way(table, nodes[0], "k", NO_HEADERS).queues) == expected
    assert set(trace_way(table, nodes[0], "k")) == expected


def test_messages_go_through_exchanges_by_their_routing_key(world):
    peer = world.client()
    exchange(peer, "in", "topic")
    exchange(peer, "out", "direct")
    link(peer, "in", "out", "a.#")
    link(peer, "out", "in", "a.b")  # a circle
    bind(peer, "q", "out", "a.b")
    bind(peer, "other", "out", "a.c")
    peer.publish(b"1", b"2", exchange="in", key="a.b")
    peer.publish(b"no", exchange="in", key="b.b")
    assert counts(peer, "q", "other") == [2, 0]
    answer = peer.call(Method.Unbind(destination="out", source="in", routing_key="a.#"))
    assert isinstance(answer, Method.UnbindOk)
    peer.publish(b"3", exchange="in", key="a.b")
    assert counts(peer, "q") == [2]
    assert isinstance(peer.call(Method.Unbind(destination="none", source="in")), Method.UnbindOk)


def test_what_no_binding_takes_goes_to_the_alternate(world):
    peer = world.client()
    exchange(peer, "lost", "fanout")
    exchange(peer, "second", "direct", arguments={"alternate-exchange": "lost"})
    exchange(peer, "first", "direct", arguments={"alternate-exchange": "second"})
    bind(peer, "q", "first", "known")
    bind(peer, "rest", "lost")
    for key in ("known", "unknown"):
        peer.publish(key.encode(), exchange="first", key=key, mandatory=True)
    assert peer.messages() == []
    assert counts(peer, "q", "rest") == [1, 1]
    peer.call(Method.Delete(exchange="lost"))
    peer.publish(b"back", exchange="first", key="unknown", mandatory=True)
    (back,) = peer.messages()
    assert isinstance(back.method, Basic.Return)


def test_a_headers_exchange_looks_at_each_message(world):
    peer = world.client()
    bind(peer, "all", "amq.headers", format="pdf", size=1)
    bind(peer, "any", "amq.match", **{"x-match": "any", "format": "pdf", "size": 1})
    link(peer, "amq.headers", "amq.match")
    sent = [{"format": "pdf", "size": 1}, {"format": "pdf"}, {"size": 2}, None]
    for headers in sent:
        peer.publish(b"m", exchange="amq.headers", headers=headers, mandatory=True)
    assert len(peer.messages()) == 2
    assert counts(peer, "all", "any") == [1, 2]


def test_messages_of_one_read_part_by_their_headers_and_keep_their_order(world):
    peer = world.client().confirms()
    bind(peer, "even", "amq.headers", n=0)
    bind(peer, "odd", "amq.headers", n=1)
    peer.write(*[amqp.publish(1, b"%d" % i, exchange="amq.headers", headers={"n": i % 2}) for i in range(40)])
    acks = [one for one in peer.take() if isinstance(one, Basic.Ack)]
    assert acks[-1].delivery_tag == 40
    for queue, first in (("even", 0), ("odd", 1)):
        peer.consume(queue, queue, no_ack=True)
        assert peer.bodies() == [b"%d" % i for i in range(first, 40, 2)]


def test_devices_reach_queues_through_an_exchange_that_is_bound_to_the_topic_space(world):
    peer = world.client()
    device = world.client_of_mqtt(b"d")
    device.publish(b"a/b", b"0", qos=1)
    exchange(peer, "fan")
    link(peer, "amq.topic", "fan", "a.#")
    bind(peer, "one", "fan")
    device.publish(b"a/b", b"1", qos=1)
    bind(peer, "two", "fan")
    device.publish(b"a/b", b"2", qos=1)
    device.publish(b"b/b", b"3", qos=1)
    assert counts(peer, "one", "two") == [2, 1]
    assert isinstance(peer.call(Method.Delete(exchange="fan")), Method.DeleteOk)
    device.publish(b"a/b", b"4", qos=1)
    assert counts(peer, "one", "two") == [2, 1]


def test_devices_get_what_an_exchange_leads_to_the_topic_space(world):
    peer = world.client()
    subscriber = world.client_of_mqtt(b"d", (b"a/#", 0))
    exchange(peer, "in", "topic")
    link(peer, "in", "amq.topic", "a.*")
    peer.publish(b"1", exchange="in", key="a.b")
    peer.publish(b"2", exchange="in", key="a.b.c")
    assert subscriber.bodies() == [b"1"]


def test_links_and_what_bindings_ask_for_outlive_the_process(world):
    peer = world.client()
    exchange(peer, "in", "headers", durable=True, arguments={"alternate-exchange": "amq.fanout"})
    exchange(peer, "out", durable=True)
    link(peer, "in", "out", arguments={"a": 1})
    bind(peer, "q", "out")
    bind(peer, "rest", "amq.fanout")
    exchange(peer, "passing")
    link(peer, "in", "passing")
    world.close()
    world.open()
    peer = world.client()
    peer.publish(b"1", exchange="in", headers={"a": 1})
    peer.publish(b"2", exchange="in", headers={"a": 2})
    assert counts(peer, "q", "rest") == [1, 1]
    peer.call(Method.Delete(exchange="out"))
    exchange(peer, "out", durable=True)
    world.close()
    world.open()
    peer = world.client()
    peer.publish(b"3", exchange="in", headers={"a": 1})
    assert counts(peer, "q", "rest") == [1, 2]


def test_an_exchange_that_deletes_itself_goes_with_its_last_link(world):
    peer = world.client(channels=2)
    exchange(peer, "in", auto_delete=True)
    exchange(peer, "out")
    link(peer, "in", "out")
    assert isinstance(peer.call(Method.Delete(exchange="out")), Method.DeleteOk)
    assert peer.call(Method.Declare(exchange="in", passive=True), 2).reply_code == 404


@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        ({"destination": "", "source": "amq.fanout"}, 403, "operation not permitted on the default exchange"),
        ({"destination": "amq.fanout", "source": ""}, 403, "operation not permitted on the default exchange"),
        ({"destination": "none", "source": "amq.fanout"}, 404, "no exchange 'none' in vhost '/'"),
        ({"destination": "amq.fanout", "source": "none"}, 404, "no exchange 'none' in vhost '/'"),
        (
            {"destination": "amq.fanout", "source": "amq.match", "arguments": {"x-match": "some"}},
            406,
            "Invalid x-match",
        ),
    ],
)
def test_a_link_that_cannot_be_costs_the_channel(world, options, code, text):
    close = world.client().call(Method.Bind(**options))
    assert close.reply_code == code
    assert text in close.reply_text


def test_a_dead_letter_goes_by_its_headers(world):
    peer = world.client()
    bind(peer, "dead", "amq.headers", kind="a")
    peer.declare("q", arguments={"x-dead-letter-exchange": "amq.headers"})
    for kind in ("a", "b"):
        peer.publish(kind.encode(), key="q", headers={"kind": kind})
    peer.consume("q")
    for message in peer.messages():
        peer.send(Basic.Reject(message.tag, requeue=False))
    world.turn()
    peer.consume("dead", "d")
    assert peer.bodies() == [b"a"]
