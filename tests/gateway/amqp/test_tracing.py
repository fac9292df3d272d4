from __future__ import annotations

import pytest

from gateway.amqp.exchanges import Exchange, ExchangeTable
from gateway.amqp.field_table import Field
from gateway.amqp.header_match import parse_match
from gateway.amqp.tracing import BINDINGS_MAX, say_why_not, trace_way
from gateway.amqp.traits import Traits
from tests.support import amqp


def table_of(*exchanges):
    table = ExchangeTable("/", lambda *_: None, lambda *_: None, lambda: None)
    for one in exchanges:
        table.add(one)
    return table


def make(name, kind, alternate=None):
    return Exchange(name, kind, durable=True, auto_delete=False, internal=False, alternate=alternate)


def match(kind, **values):
    words = {"x-match": kind, **values}
    return parse_match({name: Field("longstr", value.encode()) for name, value in words.items()})


def test_a_circle_of_exchanges_is_passed_once_and_its_ways_are_told():
    one, two = make("one", "fanout"), make("two", "topic")
    table = table_of(one, two)
    table.bind(one, (two, "", None))
    table.bind(two, (one, "#", None))
    table.bind(two, ("q", "a.*", None))
    trace = trace_way(table, one, "a.b")
    assert trace.queues == {"q": ["one > two a.*"]}
    assert trace.passed == {one: "", two: "one"}
    assert not trace.is_topic_space


def test_a_way_that_passes_the_topic_space_says_so():
    fan = make("fan", "fanout")
    table = table_of(fan)
    table.bind(fan, (table.topic_space, "", None))
    assert trace_way(table, fan, "a").is_topic_space
    assert not trace_way(table, fan, "").is_topic_space


@pytest.mark.parametrize(
    ("asked", "headers", "reason"),
    [
        (match("all", a="1", b="2"), {"a": "1"}, "the message lacks what the binding asks for: b"),
        (match("all", a="1"), {"a": "2"}, "a header has another value, or type, than the binding asks for: a"),
        (match("any", a="1", b="2"), {"c": "1"}, "none of its headers is as the binding asks: a, b"),
        (match("any"), {"c": "1"}, "the binding asks for any of no headers"),
    ],
)
def test_a_binding_of_a_headers_exchange_says_what_it_misses(asked, headers, reason):
    exchange = make("h", "headers")
    table = table_of(exchange)
    table.bind(exchange, ("q", "", asked))
    traits = Traits("k", amqp.block(headers=headers))
    trace = trace_way(table, exchange, "k", traits)
    assert trace.queues == {}
    assert say_why_not(table, trace, "q", "k", traits) == [f"exchange 'h': {reason}"]


def test_one_of_several_is_said_to_be_chance_or_hash():
    exchange = make("c", "x-consistent-hash")
    table = table_of(exchange)
    for queue in ("q0", "q1"):
        table.bind(exchange, (queue, "1", None))
    trace = trace_way(table, exchange, "k")
    (reached,) = trace.queues
    (other,) = {"q0", "q1"} - {reached}
    (said,) = say_why_not(table, trace, other, "k", Traits("k"))
    assert said == "exchange 'c': the message goes to one queue of several, this time to another"


def test_of_very_many_bindings_the_first_ones_are_told():
    exchange = make("d", "direct")
    table = table_of(exchange)
    for number in range(BINDINGS_MAX + 2):
        table.bind(exchange, ("q", str(number), None))
    said = say_why_not(table, trace_way(table, exchange, "k"), "q", "k", Traits("k"))
    assert len(said) == BINDINGS_MAX + 1
    assert said[BINDINGS_MAX] == f"it has more than these {BINDINGS_MAX} bindings"
