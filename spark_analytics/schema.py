"""The columns of the format `lmq`: one table, from which Spark's and Arrow's schema are made.

Every column is nullable, and the types are those that Spark takes over without a conversion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from spark_analytics.options import OptionError, ReadOptions

INDEX_ENTRY_BYTES = 4  # what a message costs in the store's index for each queue that it is in
_MOMENT = pa.timestamp("us", tz="UTC")
_SPARK_TYPES = {
    pa.int64(): "bigint",
    pa.int32(): "int",
    pa.string(): "string",
    pa.binary(): "binary",
    _MOMENT: "timestamp",
    pa.list_(pa.string()): "array<string>",
    pa.map_(pa.string(), pa.string()): "map<string,string>",
}


@dataclass(frozen=True)
class Column:
    """One column: its type, and whether it is there when nothing is asked for by name."""

    name: str
    type: pa.DataType
    is_default: bool = True


MESSAGE_COLUMNS = (
    Column("phys", pa.int64()),  # physical offset of the record
    Column("segment", pa.int64(), is_default=False),  # base offset of its segment
    Column("topic", pa.string()),  # the publisher's topic, or the record's own
    Column("device", pa.string()),  # the publisher's client id
    Column("protocol", pa.string()),  # the door it came in by
    Column("user", pa.string(), is_default=False),
    Column("born", _MOMENT, is_default=False),  # the publisher's clock for RocketMQ, ours for the rest
    Column("stored", _MOMENT),
    Column("fanout", pa.int32()),  # light queues that the message was indexed into
    Column("record_bytes", pa.int32()),
    Column("body_bytes", pa.int32()),
    Column("dispatch_bytes", pa.int32()),  # what the list of queues takes of the record
    Column("queues", pa.list_(pa.string()), is_default=False),
    Column("properties", pa.map_(pa.string(), pa.string()), is_default=False),
    Column("body", pa.binary(), is_default=False),
)

DISPATCH_COLUMNS = (
    Column("topic", pa.string()),
    Column("queues", pa.list_(pa.string())),
    Column("fanout", pa.int32()),
    Column("messages", pa.int64()),
    Column("record_bytes", pa.int64()),
    Column("body_bytes", pa.int64()),
    Column("dispatch_bytes", pa.int64()),
    Column("first_stored", _MOMENT),
    Column("last_stored", _MOMENT),
    Column("damage", pa.string(), is_default=False),  # what is damaged; rows of messages have nothing here
    Column("damaged_from", pa.int64(), is_default=False),
    Column("damaged_until", pa.int64(), is_default=False),
)
"""One row for each topic and set of light queues that a part of the log holds: sums to add up.

Where `damage` is asked for, also one for each stretch that was passed over, and for each dispatch set that is lost,
with the number of messages of which the queues are not known."""

_COLUMNS_BY_VIEW = {"messages": MESSAGE_COLUMNS, "dispatches": DISPATCH_COLUMNS}


def columns_of(options: ReadOptions) -> list[Column]:
    """Return the columns that `options` ask for, in the order asked for.

    Raises:
        OptionError: A column that the view does not have.
    """
    known = {column.name: column for column in _COLUMNS_BY_VIEW[options.view]}
    if not options.columns:
        return [
            column for column in known.values() if column.is_default or (options.include_body and column.name == "body")
        ]
    return [_known_column(known, name) for name in options.columns]


def _known_column(known: dict[str, Column], name: str) -> Column:
    if name not in known:
        raise OptionError("columns", f"no column {name!r}; there are {', '.join(known)}")
    return known[name]


def arrow_schema(columns: Sequence[Column]) -> pa.Schema:
    """Return the Arrow schema of `columns`."""
    return pa.schema([pa.field(column.name, column.type) for column in columns])


def spark_ddl(columns: Sequence[Column]) -> str:
    """Return the schema of `columns` in Spark's words."""
    return ", ".join(f"`{column.name}` {_SPARK_TYPES[column.type]}" for column in columns)
