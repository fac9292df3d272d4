from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from core.parted import CHUNK
from gateway.amqp.errors import AmqpError
from gateway.amqp.exchanges import Exchange, ExchangeTable
from gateway.amqp.traits import Traits


def make(kind):
    return Exchange("x", kind, durable=True, auto_delete=False, internal=False)


def make_table(on_changed=lambda: None):
    bound = []
    table = ExchangeTable(
        "/",
        lambda key, queue: bound.append(("+", key, queue)),
        lambda key, queue: bound.append(("-", key, queue)),
        on_changed,
    )
    return table, bound


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("direct", ["exact"]), ("fanout", ["exact", "star", "hash"]), ("topic", ["exact", "hash", "star"])],
)
def test_each_type_has_its_rule(kind, expected):
    exchange = make(kind)
    for queue, key in (("exact", "a.b"), ("star", "a.*"), ("hash", "#.b")):
        assert exchange.bind((queue, key, None))
    assert sorted(exchange.destinations("a.b", Traits("a.b"))) == sorted(expected)
    assert exchange.destinations("z", Traits("z")) == (["exact", "star", "hash"] if kind == "fanout" else [])


@pytest.mark.parametrize("kind", ["direct", "fanout", "topic"])
def test_binding_twice_is_binding_once(kind):
    exchange = make(kind)
    assert exchange.bind(("q", "k", None))
    assert not exchange.bind(("q", "k", None))
    exchange.bind(("q", "other", None))
    assert exchange.destinations("k", Traits("k")) == ["q"]
    assert exchange.unbind(("q", "k", None))
    assert not exchange.unbind(("q", "k", None))
    assert exchange.destinations("k", Traits("k")) == (["q"] if kind == "fanout" else [])


ANY_BINDING = st.tuples(st.sampled_from("pq"), st.sampled_from(["a", "b", "#"]), st.sampled_from([None, "1", "2"]))


@given(st.sampled_from(["direct", "fanout", "topic"]), st.lists(st.tuples(st.booleans(), ANY_BINDING), max_size=20))
def test_bindings_that_differ_by_their_arguments_are_as_many_and_give_a_message_once(kind, steps):
    exchange, bound = make(kind), {}
    for is_bound, binding in steps:
        if is_bound:
            assert exchange.bind(binding) == (binding not in bound)
            bound[binding] = None
        else:
            assert exchange.unbind(binding) == (binding in bound)
            bound.pop(binding, None)
        assert list(exchange.bindings) == list(bound)
        for said in "ab":
            keys = {"fanout": "ab#", "topic": f"{said}#", "direct": said}[kind]
            expected = {one for one, key, _ in bound if key in keys}
            assert sorted(exchange.destinations(said, Traits(said))) == sorted(expected)
            assert {one for one, _ in exchange.reaching(said, Traits(said))} == expected


def naive_match(pattern, words):
    if not pattern:
        return not words
    if pattern[0] == "#":
        return any(naive_match(pattern[1:], words[i:]) for i in range(len(words) + 1))
    return bool(words) and pattern[0] in ("*", words[0]) and naive_match(pattern[1:], words[1:])


WORDS = st.lists(st.sampled_from(["a", "b", "$c", "d/e", "50%"]), max_size=5)
PATTERNS = st.lists(st.sampled_from(["a", "b", "$c", "d/e", "50%", "*", "#"]), min_size=1, max_size=5)


@given(st.lists(PATTERNS, max_size=6), WORDS)
def test_topic_exchanges_match_as_the_protocol_says(patterns, words):
    exchange = make("topic")
    for i, pattern in enumerate(patterns):
        exchange.bind((str(i), ".".join(pattern), None))
    expected = [str(i) for i, pattern in enumerate(patterns) if naive_match(pattern, words)]
    assert sorted(exchange.destinations(".".join(words), Traits(".".join(words)))) == sorted(expected)


def test_bindings_of_the_topic_space_are_told():
    table, bound = make_table()
    exchange = table.get("amq.topic")
    table.bind(exchange, ("q", "a.#", None))
    table.bind(exchange, ("q", "a.#", None))
    table.bind(table.get("amq.direct"), ("q", "k", None))
    assert bound == [("+", "a.#", "q")]
    bindings = list(table.bindings_to("q"))
    assert {(exchange.name, binding[1]) for exchange, binding in bindings} == {
        ("amq.topic", "a.#"),
        ("amq.direct", "k"),
    }
    for exchange, binding in bindings:
        assert table.unbind(exchange, binding)
    assert not list(table.bindings_to("q"))
    assert bound == [("+", "a.#", "q"), ("-", "a.#", "q")]


@pytest.mark.parametrize("kind", ["direct", "topic", "fanout", "headers"])
def test_very_many_bindings_to_one_exchange_and_with_one_key_are_told_some_at_a_time(kind):
    table, _ = make_table()
    target, source = make("fanout"), make(kind)
    bindings = [(target, str(number), None) for number in range(1, 3 * CHUNK)]
    queues = [(f"q{number}", "1", None) for number in range(3 * CHUNK)]
    for binding in (*bindings, *queues):
        assert table.bind(source, binding)
    assert list(table.bindings_to(target)) == [(source, binding) for binding in bindings]
    assert list(table.bindings_to("q7")) == [(source, queues[7])]
    if kind == "direct":
        assert source.destinations("1", Traits("1")) == [target, *[queue for queue, _, _ in queues]]
    found = table.bindings_to(target)
    assert next(found) == (source, bindings[0])
    for binding in (*bindings, *queues):
        assert table.unbind(source, binding)
    assert len(list(found)) < CHUNK
    assert not list(table.bindings_to(target))
    assert not source.bindings
    assert source.destinations("1", Traits("1")) == []


def test_a_table_that_is_let_go_finds_nothing_out_anew_for_each_binding():
    changes = []
    table, bound = make_table(lambda: changes.append(1))
    x = make("topic")
    table.add(x)
    for key in "abcd":
        table.bind(table.topic_space, (x, key, None))
        table.bind(x, (table.get("amq.fanout"), key, None))
    bound.clear()
    changes.clear()
    table.let_go()
    assert sorted(bound) == [("-", key, x) for key in "abcd"]
    assert not changes
    assert not list(table.bindings_to(x))
    assert not x.bindings
    assert not table.topic_space.bindings


def test_every_change_makes_a_new_version():
    table, _ = make_table()
    seen = {table.version}
    exchange = make("direct")
    for change in (
        lambda: table.add(exchange),
        lambda: table.bind(exchange, ("q", "k", None)),
        lambda: table.unbind(exchange, ("q", "k", None)),
        lambda: table.remove(exchange),
    ):
        change()
        assert table.version not in seen
        seen.add(table.version)


def test_a_missing_exchange_is_not_found():
    table, _ = make_table()
    assert {exchange.name for exchange in table} == {
        "", "amq.direct", "amq.fanout", "amq.headers", "amq.match", "amq.rabbitmq.trace", "amq.topic",
    }  # fmt: skip
    assert table.find("none") is None
    with pytest.raises(AmqpError, match="NOT_FOUND - no exchange 'none' in vhost '/'"):
        table.get("none")


def test_a_random_exchange_takes_each_of_its_bindings_once_in_a_while():
    exchange = make("x-random")
    assert exchange.destinations("k", Traits("k")) == []
    for queue in ("a", "b"):
        exchange.bind((queue, "", None))
    found = [exchange.destinations("k", Traits("k")) for _ in range(200)]
    assert {tuple(one) for one in found} == {("a",), ("b",)}
    exchange.unbind(("a", "", None))
    assert exchange.destinations("k", Traits("k")) == ["b"]


def test_a_modulus_hash_gives_a_key_to_one_binding_whatever_the_order_they_came_in():
    exchange, again = make("x-modulus-hash"), make("x-modulus-hash")
    assert exchange.destinations("k", Traits("k")) == []
    for i in range(4):
        exchange.bind((f"q{i}", f"{i}", None))
        again.bind((f"q{3 - i}", "", None))
    keys = [f"k{i}" for i in range(200)]
    found = [exchange.destinations(key, Traits(key)) for key in keys]
    assert {tuple(one) for one in found} == {("q0",), ("q1",), ("q2",), ("q3",)}
    assert [again.destinations(key, Traits(key)) for key in keys] == found
    assert exchange.reaching("k1", Traits("k1")) == [(found[1][0], "by hash, one of 4")]


@pytest.mark.parametrize("kind", ["x-random", "x-consistent-hash", "x-modulus-hash"])
def test_one_destination_is_chosen_for_a_message_whatever_its_keys(kind):
    exchange = make(kind)
    for i in range(20):
        exchange.bind((f"q{i}", "1", None))
    traits = Traits("k")
    assert len({tuple(exchange.destinations(f"k{i}", traits)) for i in range(20)}) == 1


def test_destinations_of_one_name_are_told_apart_when_hashed():
    exchange, other = make("x-consistent-hash"), make("fanout")
    exchange.bind(("x", "1", None))
    exchange.bind((other, "1", None))
    found = [exchange.destinations("", Traits(f"k{i}"))[0] for i in range(100)]
    assert set(found) == {"x", other}
