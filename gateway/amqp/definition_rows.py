"""The rows of durable exchanges, queues and bindings: keys and values in JSON, for a table of the broker."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Protocol

from core.row_format import RowFormat
from gateway.amqp.binding_terms import Terms
from gateway.amqp.exchanges import Binding, Exchange
from gateway.amqp.federation import Downstream
from gateway.amqp.field_table import Field
from gateway.amqp.header_match import HeaderMatch, find_same

QUEUE = "q"
EXCHANGE = "x"
BINDING = "b"
LINK = "e"  # a binding that leads to an exchange
DEFAULT_VHOST = "/"
_PARTS_WITH_TERMS = 5  # kind, exchange, destination, key, and what it says besides
_PLAIN_MAX = 64  # there are few: queues differ by what was said of them, most by nothing
ROWS = RowFormat(3)  # since 2 there are rows of other virtual hosts than `/`, since 3 bindings have arguments


class Rows(Protocol):
    """A durable table, as far as rows are written."""

    def put(self, key: bytes, value: bytes) -> None:
        """Set the value of a key."""

    def delete(self, key: bytes) -> None:
        """Remove a key, where it is there."""


class KeptQueue(Protocol):
    """What is written down of a queue."""

    is_durable: bool
    is_auto_delete: bool
    is_passing: bool
    owner: object | None
    arguments: dict[str, Field]
    first_offset: int
    light_name: bytes


class HostRows:
    """The rows of one virtual host in the table of all: those of `/` have the keys of `row_key`, others name the host.

    Args:
        table: The table of all.
        vhost: The virtual host.
    """

    def __init__(self, table: Rows, vhost: str) -> None:
        self._table = table
        self._before = b"" if vhost == DEFAULT_VHOST else b"{" + json.dumps(vhost).encode() + b": "
        self._behind = b"}" if self._before else b""

    def put(self, key: bytes, value: bytes) -> None:
        """Set the value of a key."""
        self._table.put(self._before + key + self._behind, value)

    def delete(self, key: bytes) -> None:
        """Remove a key, where it is there."""
        self._table.delete(self._before + key + self._behind)


def split_key(key: bytes) -> tuple[str, list[Any]]:
    """Return the virtual host of a row, and the parts that `row_key` was told."""
    parts = json.loads(key)
    if isinstance(parts, list):
        return DEFAULT_VHOST, parts
    ((vhost, parts),) = parts.items()
    return vhost, parts


def row_key(*parts: object) -> bytes:
    """Return the key of a row: its kind, then its names."""
    return json.dumps(parts).encode()


def binding_key(exchange: Exchange, binding: Binding) -> bytes:
    """Return the key of a binding's row, which says all of it."""
    destination, key, terms = binding
    kind, name = (LINK, destination.name) if isinstance(destination, Exchange) else (BINDING, destination)
    if terms is None:
        return row_key(kind, exchange.name, name, key)
    if isinstance(terms, str):
        return row_key(kind, exchange.name, name, key, terms)
    pairs = [[header, type_name, _to_row(value)] for header, type_name, value in terms.pairs]
    return row_key(kind, exchange.name, name, key, [terms.kind, pairs])


def load_terms(parts: list[Any]) -> Terms:
    """Return what a binding says besides its key, from the parts of its row's key."""
    if len(parts) < _PARTS_WITH_TERMS:
        return None
    said = parts[_PARTS_WITH_TERMS - 1]
    if isinstance(said, str):
        return said
    kind, pairs = said
    return HeaderMatch(
        kind, tuple((header, type_name, find_same(_from_row(value))) for header, type_name, value in pairs)
    )


def exchange_row(exchange: Exchange) -> bytes:
    """Return the value of an exchange's row."""
    row: dict[str, object] = {
        "kind": exchange.kind,
        "auto_delete": exchange.is_auto_delete,
        "internal": exchange.is_internal,
    }
    if exchange.alternate is not None:
        row["alternate"] = exchange.alternate
    if exchange.hashed_by is not None:
        row["hashed_by"] = exchange.hashed_by
    if exchange.is_delaying:
        row["delayed_type"] = exchange.rule
    if exchange.downstream is not None:
        row["downstream"] = exchange.downstream
    return json.dumps(row).encode()


def queue_row(queue: KeptQueue) -> bytes:
    """Return the row of a queue; the light queue of one that ends with its users is not told by its name."""
    is_durable = queue.is_durable and queue.owner is None
    if not queue.arguments and not queue.is_passing:
        return _plain_row(queue.first_offset, durable=is_durable, auto_delete=queue.is_auto_delete)
    row = _queue_row(queue.first_offset, queue.arguments, durable=is_durable, auto_delete=queue.is_auto_delete)
    if queue.is_passing:
        row["light"] = queue.light_name.decode()
    return json.dumps(row).encode()


def _queue_row(first: int, arguments: Mapping[str, Field], *, durable: bool, auto_delete: bool) -> dict[str, object]:
    said = dump_arguments(arguments)
    return {"durable": durable, "auto_delete": auto_delete, "arguments": said, "first": first}


@lru_cache(_PLAIN_MAX)
def _plain_row(first: int, *, durable: bool, auto_delete: bool) -> bytes:
    """Return the row that many queues have, the same object for all of them."""
    return json.dumps(_queue_row(first, {}, durable=durable, auto_delete=auto_delete)).encode()


def load_exchange(name: str, row: Mapping[str, Any]) -> Exchange:
    """Return the exchange that a row says."""
    return Exchange(
        name,
        row["kind"],
        durable=True,
        auto_delete=row["auto_delete"],
        internal=row["internal"],
        alternate=row.get("alternate"),
        hashed_by=tuple(row["hashed_by"]) if "hashed_by" in row else None,
        delayed_type=row.get("delayed_type"),
        downstream=Downstream(*row["downstream"]) if "downstream" in row else None,
    )


def dump_arguments(arguments: Mapping[str, Field]) -> dict[str, object]:
    """Return arguments as a queue's row keeps them: type and value by name."""
    return {name: [field.kind, _to_row(field.value)] for name, field in arguments.items()}


def load_arguments(row: Mapping[str, Any]) -> dict[str, Field]:
    """Return arguments as they were kept: pairs of type and value, or numbers alone in a table of an older gateway."""
    pairs = {name: found if isinstance(found, list) else ["long", found] for name, found in row.items()}
    return {name: Field(kind, _from_row(value)) for name, (kind, value) in pairs.items()}


def _to_row(value: object) -> object:
    return value.decode(errors="surrogateescape") if isinstance(value, bytes) else value


def _from_row(value: float | str | None) -> float | bytes | None:
    return value.encode(errors="surrogateescape") if isinstance(value, str) else value
