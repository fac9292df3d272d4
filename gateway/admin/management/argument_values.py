"""Arguments of queues, exchanges and bindings, between field tables and JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, cast

from gateway.amqp.binding_terms import Terms
from gateway.amqp.exchange_arguments import ALTERNATE, DELAYED_TYPE
from gateway.amqp.exchanges import Exchange
from gateway.amqp.federation import told_downstream
from gateway.amqp.field_table import Field
from gateway.amqp.header_match import X_MATCH, HeaderMatch, Value
from gateway.amqp.table_writer import RawValue
from gateway.amqp.value_texts import text_of

_RAW = {"timestamp": b"T", "binary": b"x", "decimal": b"D", "array": b"A", "table": b"F"}  # by type, its letter


def told_arguments(arguments: Mapping[str, Field]) -> dict[str, object]:
    """Return the arguments of a queue as JSON has them."""
    return {name: told_value(field.value) for name, field in arguments.items()}


def told_value(value: object) -> object:
    """Return a value as JSON has it: bytes as text, and numbers that are none."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value


def exchange_arguments(exchange: Exchange) -> dict[str, object]:
    """Return the arguments that an exchange was declared with."""
    told: dict[str, object] = {}
    if exchange.alternate is not None:
        told[ALTERNATE] = exchange.alternate
    if exchange.hashed_by is not None:
        told[exchange.hashed_by[0]] = exchange.hashed_by[1]
    if exchange.is_delaying:
        told[DELAYED_TYPE] = exchange.rule
    if exchange.downstream is not None:
        told.update(told_downstream(exchange.downstream))
    return told


def binding_arguments(terms: Terms) -> dict[str, object]:
    """Return the arguments that a binding was made with."""
    if terms is None:
        return {}
    if isinstance(terms, str):
        told: dict[str, object] = json.loads(terms)
        return told
    told = {
        name: told_value(value) if kind not in _RAW else _read(_raw(kind, value)) for name, kind, value in terms.pairs
    }
    return {X_MATCH: terms.kind, **told}


def unbinding_arguments(terms: Terms) -> dict[str, Any]:
    """Return the arguments by which a binding is taken back: those of JSON, and what JSON has no type for."""
    told = binding_arguments(terms)
    if isinstance(terms, HeaderMatch):
        told |= {name: value for name, kind, value in terms.pairs if kind == "float"}  # also infinities
        told |= {name: _raw(kind, value) for name, kind, value in terms.pairs if kind in _RAW}
    return told


def _raw(kind: str, value: Value) -> RawValue:
    if kind == "timestamp":
        return RawValue(b"T" + cast("int", value).to_bytes(8, "big"))
    octets = cast("bytes", value)
    return RawValue(_RAW[kind] + (b"" if kind == "decimal" else len(octets).to_bytes(4, "big")) + octets)


def _read(raw: RawValue) -> object:
    """Return a value as JSON has it: of a decimal the number, of bytes and moments as of texts and integers."""
    letter, text = text_of(raw)
    if letter in {"A", "F"}:
        return json.loads(text)
    if letter in {"x", "X"}:
        return told_value(raw[5:])
    return float(text) if letter == "D" else int(text)
