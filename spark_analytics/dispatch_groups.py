"""The view `dispatches`: sums for each topic and set of light queues, made while the log is read.

A message to a thousand queues is one row here and not a thousand, and a set that a million messages went to is one
row too, so that counting by queue costs what the distinct sets cost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from core import properties
from core.store.log_survey import LOST_SET, Stretch
from spark_analytics.byte_ranges import ints, longs, moments, text_lists
from spark_analytics.message_columns import MessageColumns
from spark_analytics.schema import Column, arrow_schema

GROUP_ROWS_MAX = 200_000  # partial rows that are kept before they are summed up again; chosen
_QUEUES_A_BATCH_MAX = 200_000  # list items in one batch of the answer; chosen: half of what a read has
_KEYS = ("topic", "dispatch", "set")
_SUMS = ("messages", "record_bytes", "body_bytes", "dispatch_bytes")
_AGGREGATES = [(name, "sum") for name in _SUMS] + [("first_ms", "min"), ("last_ms", "max")]
_NAMES = [*_SUMS, "first_ms", "last_ms", *_KEYS]


class DispatchGroups:
    """Adds up the rows of one segment."""

    def __init__(self) -> None:
        self._parts: list[pa.Table] = []
        self._row_count = 0
        self._names_by_set: dict[bytes, list[bytes]] = {}
        self._lost: Counter[bytes] = Counter()  # messages of sets of which the queues are lost

    def add(self, rows: MessageColumns) -> None:
        """Count `rows`; afterwards their batch may be read into again."""
        self._remember_sets(rows)
        part = _sum_up(_as_table(rows))
        self._parts.append(part)
        self._row_count += part.num_rows
        if self._row_count > GROUP_ROWS_MAX:
            self._parts = [_sum_up(pa.concat_tables(self._parts))]
            self._row_count = self._parts[0].num_rows

    @property
    def is_full(self) -> bool:
        """Return whether even the sums are many, so that they should be taken now."""
        return self._row_count > GROUP_ROWS_MAX // 2 and len(self._parts) == 1

    def take_batches(self, columns: Sequence[Column]) -> Iterator[pa.RecordBatch]:
        """Yield the sums with `columns`, and start anew."""
        if not self._parts:
            return
        table = _sum_up(pa.concat_tables(self._parts))
        self._parts, self._row_count = [], 0
        for start, stop in _slices(self._queue_lists(table), _QUEUES_A_BATCH_MAX):
            yield self._to_batch(table.slice(start, stop - start), columns)

    def damage_batches(self, damaged: Sequence[Stretch], columns: Sequence[Column]) -> Iterator[pa.RecordBatch]:
        """Yield a row for each stretch that was passed over, and for each set of which the queues are lost."""
        rows = [{"damage": one.what, "damaged_from": one.start, "damaged_until": one.end} for one in damaged]
        for key, count in self._lost.items():
            rows.append({"damage": LOST_SET, "damaged_from": int(key), "messages": count})
        if rows:
            table = pa.Table.from_pylist(rows, arrow_schema(columns))
            yield from table.combine_chunks().to_batches()

    def _remember_sets(self, rows: MessageColumns) -> None:
        keys = rows.property_ranges(properties.DISPATCH_SET)
        for row in rows.interned_rows():
            key = bytes(keys.buf[keys.starts[row] : keys.ends[row]])
            if key not in self._names_by_set:
                names = rows.names_of(row)
                self._names_by_set[key] = names or []
                if names is None:
                    self._lost[key] = 0
            if key in self._lost:
                self._lost[key] += 1

    def _queue_lists(self, table: pa.Table) -> list[list[bytes]]:
        pairs = zip(table["dispatch"].to_pylist(), table["set"].to_pylist(), strict=True)
        return [self._names_by_set[key] if key else (text.split(b",") if text else []) for text, key in pairs]

    def _to_batch(self, table: pa.Table, columns: Sequence[Column]) -> pa.RecordBatch:
        lists = self._queue_lists(table)
        made = {
            "topic": pc.cast(table["topic"].combine_chunks(), pa.string(), safe=False),
            "queues": text_lists(lists),
            "fanout": ints(np.array([len(names) for names in lists], np.int32)),
            "first_stored": moments(_numbers(table["first_ms"])),
            "last_stored": moments(_numbers(table["last_ms"])),
            "damage": pa.nulls(len(lists), pa.string()),
            "damaged_from": pa.nulls(len(lists), pa.int64()),
            "damaged_until": pa.nulls(len(lists), pa.int64()),
        } | {name: longs(_numbers(table[name])) for name in _SUMS}
        return pa.RecordBatch.from_arrays([made[column.name] for column in columns], schema=arrow_schema(columns))


def _as_table(rows: MessageColumns) -> pa.Table:
    record_bytes = rows.ranges_of("record").sizes().astype(np.int64)
    stored = longs(rows.longs_of("store_ms"))
    made = {
        "messages": longs(np.ones(len(record_bytes), np.int64)),
        "record_bytes": longs(record_bytes),
        "body_bytes": longs(rows.ranges_of("body").sizes().astype(np.int64)),
        "dispatch_bytes": longs(rows.dispatch_bytes().astype(np.int64)),
        "first_ms": stored,
        "last_ms": stored,
        "topic": rows.ranges_of("topic").to_text(),
        "dispatch": rows.dispatch_text().to_binary(),
        "set": rows.property_ranges(properties.DISPATCH_SET).to_binary(),
    }
    return pa.table(made)


def _sum_up(table: pa.Table) -> pa.Table:
    summed = table.group_by(list(_KEYS)).aggregate(_AGGREGATES)
    plain = [name.removesuffix("_sum").removesuffix("_min").removesuffix("_max") for name in summed.column_names]
    return summed.rename_columns(plain).select(_NAMES)


def _numbers(column: pa.ChunkedArray) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.asarray(column.combine_chunks(), np.int64).copy()


def _slices(lists: Sequence[Sequence[bytes]], items_max: int) -> Iterator[tuple[int, int]]:
    start = items = 0
    for place, names in enumerate(lists):
        if items and items + len(names) > items_max:
            yield start, place
            start, items = place, 0
        items += len(names)
    if start < len(lists):
        yield start, len(lists)
