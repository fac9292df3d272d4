"""Read one part of a log as Arrow batches, through the store's read-only door. Needs no Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from core.errors import CorruptRecordError
from core.message import StoredBatch
from core.store.log_survey import RECORD, Stretch
from core.store.reader import StoreReader
from spark_analytics.byte_ranges import Ints
from spark_analytics.dispatch_groups import DispatchGroups
from spark_analytics.message_columns import MessageColumns
from spark_analytics.options import ReadOptions
from spark_analytics.partitions import LogRange
from spark_analytics.schema import Column, columns_of

_ROWS_A_SCAN = 16_384  # records: 1.2 MiB of columns
_BODY_BYTES_A_BATCH_MAX = 16 << 20  # chosen: a batch is copied to Spark's process in one piece
_QUEUES_A_BATCH_MAX = 400_000  # list items: of names of 40 bytes 16 MB, as bodies
_COPIED = {"body", "properties"}


def read_batches(options: ReadOptions, part: LogRange) -> Iterator[pa.RecordBatch]:
    """Yield what `part` of the log holds, in log order.

    Raises:
        CorruptRecordError: A record is damaged, and the options do not say to skip it.
        StoreError: The data folder cannot be read, or its retention has dropped the segment meanwhile.
    """
    reader = StoreReader.open(Path(options.path))
    columns = columns_of(options)
    if options.view == "dispatches":
        yield from _read_groups(reader, options, part, columns)
        return
    for rows in _scan(reader, options, part):
        yield from _cut_to_batches(rows, columns)


def _scan(reader: StoreReader, options: ReadOptions, part: LogRange) -> Iterator[MessageColumns]:
    batch = StoredBatch(_ROWS_A_SCAN)
    position = part.start
    told = 0

    def names_of(record: int) -> list[bytes] | None:
        try:
            return reader.dispatch_names(batch, record)
        except CorruptRecordError:
            return None  # a damaged set costs its messages their dispatches, not the report

    while position < part.end:
        position = reader.scan(part.base, position, part.end, batch)
        if not options.skip_bad_records:
            _check(reader.damaged[told:])
            told = len(reader.damaged)
        rows = _wanted_rows(batch, options)
        if rows:
            yield MessageColumns(batch, part.base, names_of, rows)


def _check(damaged: Sequence[Stretch]) -> None:
    for stretch in damaged:
        if stretch.what == RECORD:
            raise CorruptRecordError(stretch.start, f"the bytes up to {stretch.end} are damaged")


def _wanted_rows(batch: StoredBatch, options: ReadOptions) -> range:
    if options.starting_ms is None and options.ending_ms is None:
        return range(batch.count)
    stored = np.frombuffer(batch.store_ms, np.int64, batch.count)  # never falls along the log
    first = 0 if options.starting_ms is None else int(np.searchsorted(stored, options.starting_ms))
    if options.ending_ms is None:
        return range(first, batch.count)
    return range(first, int(np.searchsorted(stored, options.ending_ms)))


def _read_groups(
    reader: StoreReader, options: ReadOptions, part: LogRange, columns: Sequence[Column]
) -> Iterator[pa.RecordBatch]:
    groups = DispatchGroups()
    for rows in _scan(reader, options, part):
        groups.add(rows)
        if groups.is_full:
            yield from groups.take_batches(columns)
    yield from groups.take_batches(columns)
    if any(column.name == "damage" for column in columns):
        yield from groups.damage_batches(reader.damaged, columns)


def _cut_to_batches(rows: MessageColumns, columns: Sequence[Column]) -> Iterator[pa.RecordBatch]:
    names = {column.name for column in columns}
    cuts = [0, rows.count]
    if names & _COPIED:
        cuts += _cuts(rows.ranges_of("record").sizes(), _BODY_BYTES_A_BATCH_MAX)
    if "queues" in names:
        cuts += _cuts(rows.fanout(), _QUEUES_A_BATCH_MAX)
    bounds = sorted(set(cuts))
    for start, stop in pairwise(bounds):
        yield rows.slice(start, stop).to_batch(columns)


def _cuts(weights: Ints, weight_max: int) -> list[int]:
    full_batches = np.cumsum(weights, dtype=np.int64) // weight_max
    return [int(place) + 1 for place in np.flatnonzero(np.diff(full_batches))]
