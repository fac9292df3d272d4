from __future__ import annotations

from gateway.admin.management.argument_values import binding_arguments, exchange_arguments, told_arguments
from gateway.amqp.exchanges import CONSISTENT_HASH, DELAYED, Exchange
from gateway.amqp.field_table import Field
from gateway.amqp.header_match import HeaderMatch


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
