from __future__ import annotations

import pytest

from gateway.amqp.definition_draft import LOOKED_A_STEP, HostDraft, read_arguments
from gateway.amqp.errors import AmqpError
from gateway.amqp.exchanges import Exchange
from gateway.amqp.field_table import TABLE_DEPTH_MAX, check_table


def test_arguments_of_json_have_the_types_that_rabbitmq_gives_them():
    said = {"t": "text", "n": 1, "b": True, "f": 1.5, "v": None, "a": [1, "x"], "o": {"k": "v"}}
    found = read_arguments(said)
    assert {name: field.kind for name, field in found.items()} == {
        "t": "longstr", "n": "long", "b": "bool", "f": "double", "v": "void", "a": "array", "o": "table",
    }  # fmt: skip
    assert (found["t"].value, found["n"].value, found["b"].value) == (b"text", 1, True)
    assert found["o"].value == b"\x01kS\x00\x00\x00\x01v"
    with pytest.raises(AmqpError, match="is too large"):
        read_arguments({"n": 1 << 63})


def test_draft_changes_nothing_until_it_is_carried_out(world):
    vhost = world.amqp.vhost
    vhost.add_exchange(Exchange("y", "fanout", durable=True, auto_delete=False, internal=False))
    draft = HostDraft("/", vhost)
    draft.add_exchange("x", "direct", {"alternate-exchange": "y"}, durable=True, auto_delete=False, internal=False)
    draft.add_queue("q", {"x-message-ttl": 7}, durable=True, auto_delete=False)
    assert draft.bind_queue("x", "q", "k", {})
    assert draft.bind_exchange("x", "y", "k", {})
    assert not draft.bind_queue("x", "none", "k", {})
    assert not draft.bind_exchange("none", "y", "k", {})
    assert (vhost.exchanges.find("x"), vhost.find("q")) == (None, None)
    for _ in draft.carry_out(vhost):
        world.turn()
    assert vhost.find("q").limit_ms == 7
    assert [key for _, key, _ in vhost.exchanges.get("x").bindings] == ["k", "k"]
    assert vhost.exchanges.get("x").alternate == "y"


def test_exchange_that_looks_at_headers_may_be_behind_amq_topic(world):
    vhost = world.amqp.vhost
    draft = HostDraft("/", vhost)
    draft.add_exchange("x", "fanout", {}, durable=True, auto_delete=False, internal=False)
    assert draft.bind_exchange("amq.topic", "x", "#", {})
    assert draft.bind_exchange("x", "amq.headers", "", {})


def test_what_goes_meanwhile_is_passed_over(world):
    vhost = world.amqp.vhost
    draft = HostDraft("/", vhost)
    draft.add_exchange("x", "fanout", {}, durable=True, auto_delete=False, internal=False)
    draft.add_queue("q", {}, durable=True, auto_delete=False)
    draft.bind_queue("x", "q", "", {})
    draft.bind_exchange("x", "amq.fanout", "", {})
    steps = draft.carry_out(vhost)
    next(steps)
    next(steps)
    vhost.remove(vhost.find("q"))
    vhost.remove_exchange(vhost.exchanges.get("x"))
    for _ in steps:
        pass
    assert vhost.exchanges.find("x") is None


def test_a_draft_of_a_virtual_host_that_is_to_be_made_binds_what_all_have(world):
    draft = HostDraft("v", None)
    draft.add_queue("q", {}, durable=True, auto_delete=False)
    assert draft.bind_queue("amq.topic", "q", "a.#", {})
    assert draft.bind_exchange("amq.topic", "amq.fanout", "b", {})
    assert not draft.bind_exchange("x", "amq.fanout", "b", {})
    with pytest.raises(AmqpError, match="inequivalent arg 'type'"):
        draft.add_exchange("amq.topic", "direct", {}, durable=True, auto_delete=False, internal=False)
    vhost = world.amqp.vhosts.make("v")
    for _ in draft.carry_out(vhost):
        world.turn()
    bound = {key for _, key, _ in vhost.exchanges.get("amq.topic").bindings}
    assert bound == {"a.#", "b"}


def test_that_very_many_queues_are_open_is_seen_in_steps(world):
    vhost, count = world.amqp.vhost, 3 * LOOKED_A_STEP
    draft = HostDraft("/", vhost)
    for number in range(count):
        draft.add_queue(f"q{number}", {}, durable=True, auto_delete=False)
    rests = 0
    for _ in draft.carry_out(vhost):
        rests += len(vhost) == count and all(queue.is_open for queue in vhost)
        world.turn()
    assert rests >= 3


def test_an_exchange_that_is_asked_for_twice_has_to_be_the_same(world):
    draft = HostDraft("/", world.amqp.vhost)
    how = {"durable": True, "auto_delete": False, "internal": False}
    assert draft.add_exchange("x", "direct", {}, **how)
    assert draft.add_exchange("x", "direct", {}, **how)
    with pytest.raises(AmqpError, match="inequivalent arg 'type'"):
        draft.add_exchange("x", "topic", {}, **how)


@pytest.mark.parametrize("wrap", [lambda inner: [inner], lambda inner: {"a": inner}], ids=["array", "table"])
@pytest.mark.parametrize("depth", [TABLE_DEPTH_MAX, 600])
def test_arguments_that_are_nested_deeper_than_those_of_clients_are_refused(wrap, depth):
    value = 1
    for at in range(depth):
        value = wrap(value)
        if at == TABLE_DEPTH_MAX - 2:
            (field,) = read_arguments({"a": value}).values()
            kind = b"A" if field.kind == "array" else b"F"
            entry = b"\x01a" + kind + len(field.value).to_bytes(4, "big") + field.value
            table = len(entry).to_bytes(4, "big") + entry
            assert check_table(table, 0, len(table)) == len(table)  # as a client's
    with pytest.raises(AmqpError, match="invalid arg 'a'"):
        read_arguments({"a": value})
