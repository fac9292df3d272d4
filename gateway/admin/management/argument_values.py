"""Arguments of queues, exchanges and bindings, between field tables and JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping

from gateway.amqp.binding_terms import Terms
from gateway.amqp.exchange_arguments import ALTERNATE, DELAYED_TYPE
from gateway.amqp.exchanges import Exchange
from gateway.amqp.federation import told_downstream
from gateway.amqp.field_table import Field
from gateway.amqp.header_match import X_MATCH


def told_arguments(arguments: Mapping[str, Field]) -> dict[str, object]:
    """Return the arguments of a queue as JSON has them."""
    return {name: told_value(field.value) for name, field in arguments.items()}


def told_value(value: object) -> object:
    """Return a value as JSON has it: bytes as text."""
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
    return {X_MATCH: terms.kind, **{name: told_value(value) for name, _, value in terms.pairs}}
