from __future__ import annotations

import json

import pytest

from gateway.amqp.definition_rows import (
    binding_key,
    dump_arguments,
    exchange_row,
    load_arguments,
    load_exchange,
    load_terms,
)
from gateway.amqp.exchanges import Exchange
from gateway.amqp.field_table import Field
from gateway.amqp.header_match import parse_match


def make(name="x", **options):
    return Exchange(name, "headers", durable=True, auto_delete=True, internal=False, **options)


@pytest.mark.parametrize("alternate", [None, "", "other"])
def test_an_exchange_comes_back_from_its_row(alternate):
    found = load_exchange("x", json.loads(exchange_row(make(alternate=alternate))))
    assert (found.name, found.kind, found.is_auto_delete, found.is_internal) == ("x", "headers", True, False)
    assert found.alternate == alternate


def test_what_an_exchange_hashes_comes_back_from_its_row():
    hashed_by = ("hash-header", "device")
    assert load_exchange("x", json.loads(exchange_row(make(hashed_by=hashed_by)))).hashed_by == hashed_by
    assert load_exchange("x", json.loads(exchange_row(make()))).hashed_by is None


def test_an_exchange_of_an_older_gateway_has_no_alternate():
    assert load_exchange("x", {"kind": "topic", "auto_delete": False, "internal": True}).alternate is None


@pytest.mark.parametrize("destination", ["q", make("y")])
def test_what_a_binding_asks_for_comes_back_from_its_key(destination):
    said = {
        "x-match": Field("longstr", b"any"),
        "a": Field("long", 1),
        "b": Field("binary", b"\xff"),
        "c": Field("void", None),
    }
    match = parse_match(said)
    parts = json.loads(binding_key(make(), (destination, "k", match)))
    assert parts[:4] == (["b", "x", "q", "k"] if destination == "q" else ["e", "x", "y", "k"])
    assert load_terms(parts) == match
    for terms in (None, '{"a": [1, "\\u00fc"]}'):
        assert load_terms(json.loads(binding_key(make(), (destination, "k", terms)))) == terms


def test_arguments_come_back_with_their_types():
    said = {"a": Field("longstr", b"\xff"), "b": Field("int", 1)}
    found = load_arguments(json.loads(json.dumps(dump_arguments(said))))
    assert {name: (one.kind, one.value) for name, one in found.items()} == {"a": ("longstr", b"\xff"), "b": ("int", 1)}
    assert load_arguments({"x-expires": 5})["x-expires"].value == 5  # an older gateway kept numbers alone
