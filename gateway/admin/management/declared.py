"""Bodies of requests that declare or limit something: what they may say, and the defaults where they say nothing."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, StrictInt


def _as_object(value: object) -> object:
    """Return an object where tools send an empty list in its place."""
    return {} if value is None or value == [] else value


def as_table(value: object) -> object:
    """Return an object where a file of RabbitMQ's has a list of pairs in its place, as `rabbitmqctl` writes some."""
    table: dict[str, object] = {}
    for pair in value if isinstance(value, list) else ():
        match pair:
            case [str(name), said]:
                table[name] = said
            case _:
                return value
    return table if isinstance(value, list) else value


Table = Annotated[dict[str, Any], BeforeValidator(_as_object)]
"""A table of arguments, headers or properties."""


class QueueBody(BaseModel):
    """A queue."""

    durable: bool = False
    auto_delete: bool = False
    arguments: Table = {}


class ExchangeBody(BaseModel):
    """An exchange."""

    type: str = "direct"
    durable: bool = False
    auto_delete: bool = False
    internal: bool = False
    arguments: Table = {}


class BindingBody(BaseModel):
    """A binding."""

    routing_key: str = ""
    arguments: Table = {}


class LimitBody(BaseModel):
    """A limit; below 0: none."""

    value: StrictInt
