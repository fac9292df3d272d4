from __future__ import annotations

from gateway.admin.management.argument_values import (
    binding_arguments,
    exchange_arguments,
    told_arguments,
    unbinding_arguments,
)
from gateway.amqp.exchanges import CONSISTENT_HASH, DELAYED, Exchange
from gateway.amqp.field_table import Field, read_table
from gateway.amqp.header_match import HeaderMatch, parse_match
from gateway.amqp.table_writer import encode_entries


def _exchange(kind, **more):
    return Exchange("x", kind, durable=True, auto_delete=False, internal=False, **more)


def test_arguments_are_told_as_json_has_them():
    kept = {"x-queue-type": Field("longstr", b"quorum"), "x-expires": Field("long", 7)}
    assert told_arguments(kept) == {"x-queue-type": "quorum", "x-expires": 7}
    assert exchange_arguments(_exchange("direct")) == {}
    assert exchange_arguments(_exchange("direct", alternate="y")) == {"alternate-exchange": "y"}
    assert exchange_arguments(_exchange(CONSISTENT_HASH, hashed_by=("hash-header", "h"))) == {"hash-header": "h"}
    assert exchange_arguments(_exchange(DELAYED, delayed_type="topic")) == {"x-delayed-type": "topic"}
    assert binding_arguments(None) == {}
    match = HeaderMatch("any", (("a", "longstr", b"b"), ("n", "long", 1)))
    assert binding_arguments(match) == {"x-match": "any", "a": "b", "n": 1}
    match = HeaderMatch("any", (("a", "float", float("nan")), ("b", "float", float("inf")), ("c", "float", 1.5)))
    assert binding_arguments(match) == {"x-match": "any", "a": "nan", "b": "inf", "c": 1.5}
    assert (unbinding_arguments(match)["b"], unbinding_arguments(match)["c"]) == (float("inf"), 1.5)


def test_values_that_json_has_no_type_for_are_told_and_taken_back_as_they_were_said():
    said = {
        "at": (Field("timestamp", 7), 7, b"T\0\0\0\0\0\0\0\7"),
        "octets": (Field("binary", b"v"), "v", b"x\0\0\0\1v"),
        "part": (Field("decimal", b"\1\0\0\0\x0f"), 1.5, b"D\1\0\0\0\x0f"),
        "list": (Field("array", b"t\1V"), [True, None], b"A\0\0\0\3t\1V"),
        "table": (Field("table", b"\1at\1"), {"a": True}, b"F\0\0\0\4\1at\1"),
    }
    match = parse_match({name: field for name, (field, _, _) in said.items()})
    assert binding_arguments(match) == {"x-match": "all"} | {name: told for name, (_, told, _) in said.items()}
    assert unbinding_arguments(match) == {"x-match": "all"} | {name: raw for name, (_, _, raw) in said.items()}
    read = read_table(encode_entries(unbinding_arguments(match)), 0, len(encode_entries(unbinding_arguments(match))))
    assert parse_match(read) == match
    assert unbinding_arguments('{"a": 1}') == {"a": 1}
