"""The columns of the view `messages`, out of a batch of stored records: whole columns, never an object a record."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from itertools import accumulate

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from core import properties
from core.message import StoredBatch
from spark_analytics import property_scan
from spark_analytics.byte_ranges import (
    ByteRanges,
    Ints,
    Longs,
    as_text,
    ints,
    longs,
    moments,
    text_lists,
)
from spark_analytics.schema import Column, arrow_schema

_SCANNED = (
    properties.CLIENT,
    properties.USER,
    properties.PROTOCOL,
    properties.INNER_MULTI_DISPATCH,
    properties.INNER_MULTI_QUEUE_OFFSET,
    properties.DISPATCH_SET,
)
_SCANNED_TEXT = b"".join(_SCANNED)
_SCANNED_ENDS = array("i", accumulate(len(name) for name in _SCANNED))
_SEPARATORS = 2  # one byte after a property's key, one after its value
_NOT_DISPATCHED = 0x4  # bit of RocketMQ's sysFlag
_OTHER_DOOR = "rocketmq"  # a record without LMQ_PROTOCOL


class MessageColumns:
    """Columns of some rows of a scanned batch, each made when it is asked for.

    Args:
        batch: What the store's reader scanned; it must not change while a column is made.
        segment: Base offset of the segment that was scanned.
        names_of: Gives the light queues of the batch's record i, None where they are lost.
        rows: Which of the batch's records.
    """

    def __init__(
        self, batch: StoredBatch, segment: int, names_of: Callable[[int], list[bytes] | None], rows: range
    ) -> None:
        self._batch = batch
        self._segment_base = segment
        self._names_of = names_of
        self._rows = rows
        self._scanned: dict[bytes, ByteRanges] = {}

    @property
    def count(self) -> int:
        """Return the number of rows."""
        return len(self._rows)

    def slice(self, start: int, stop: int) -> MessageColumns:
        """Return the rows [start, stop) of these."""
        if (start, stop) == (0, len(self._rows)):
            return self
        return MessageColumns(self._batch, self._segment_base, self._names_of, self._rows[start:stop])

    def to_batch(self, columns: Sequence[Column]) -> pa.RecordBatch:
        """Return the rows with `columns`, in their order."""
        arrays = [_MAKERS[column.name](self) for column in columns]
        return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(columns))

    def ints_of(self, attribute: str) -> Ints:
        """Return a copy of the rows' part of a 32-bit column of the batch."""
        whole = np.frombuffer(getattr(self._batch, attribute), np.int32)
        return whole[self._rows.start : self._rows.stop].copy()

    def longs_of(self, attribute: str) -> Longs:
        """Return a copy of the rows' part of a 64-bit column of the batch."""
        whole = np.frombuffer(getattr(self._batch, attribute), np.int64)
        return whole[self._rows.start : self._rows.stop].copy()

    def ranges_of(self, what: str) -> ByteRanges:
        """Return where each row has its record, topic, body or properties."""
        return ByteRanges(self._batch.buf, self.ints_of(f"{what}_start"), self.ints_of(f"{what}_end"))

    def property_ranges(self, name: bytes) -> ByteRanges:
        """Return where each row has the value of `name`, one of those that are scanned for."""
        if not self._scanned:
            self._scan_properties()
        return self._scanned[name]

    def _scan_properties(self) -> None:
        encoded = self.ranges_of("properties")
        count = len(self._rows)
        starts = np.empty(len(_SCANNED) * count, np.int32)
        ends = np.empty(len(_SCANNED) * count, np.int32)
        property_scan.find_properties(
            encoded.buf, encoded.starts, encoded.ends, count, _SCANNED_TEXT, _SCANNED_ENDS, starts, ends
        )
        for place, name in enumerate(_SCANNED):
            part = slice(place * count, (place + 1) * count)
            self._scanned[name] = ByteRanges(encoded.buf, starts[part], ends[part])

    def segment_bases(self) -> Longs:
        """Return the segment's base offset for each row."""
        return np.full(len(self._rows), self._segment_base, np.int64)

    def dispatch_text(self) -> ByteRanges:
        """Return the lists of queues that stand in the records.

        A list without offsets went to no queue, and nor does a transaction that is prepared or rolled back.
        """
        names = self.property_ranges(properties.INNER_MULTI_DISPATCH)
        dispatched = self.property_ranges(properties.INNER_MULTI_QUEUE_OFFSET).found()
        dispatched &= (self.ints_of("sys_flag") & _NOT_DISPATCHED) == 0
        return ByteRanges(names.buf, np.where(dispatched, names.starts, 0), np.where(dispatched, names.ends, 0))

    def interned_rows(self) -> list[int]:
        """Return the rows that refer to a dispatch set in place of a list."""
        found = self.property_ranges(properties.DISPATCH_SET).found()
        return [int(row) for row in np.flatnonzero(found)]

    def names_of(self, row: int) -> list[bytes] | None:
        """Return the light queues of one row, None where they are lost."""
        return self._names_of(self._rows.start + row)

    def fanout(self) -> Ints:
        """Return how many light queues each row was indexed into."""
        counts = self.dispatch_text().count_items()
        size_by_set: dict[bytes, int] = {}
        keys = self.property_ranges(properties.DISPATCH_SET)
        for row in self.interned_rows():
            key = bytes(keys.buf[keys.starts[row] : keys.ends[row]])
            if key not in size_by_set:
                size_by_set[key] = len(self.names_of(row) or ())
            counts[row] = size_by_set[key]
        return counts

    def dispatch_bytes(self) -> Ints:
        """Return how much of each record tells its queues, separators included."""
        total = np.zeros(len(self._rows), np.int32)
        for name in _SCANNED[3:]:
            ranges = self.property_ranges(name)
            total += np.where(ranges.found(), ranges.sizes() + len(name) + _SEPARATORS, 0).astype(np.int32)
        return total

    def queues(self) -> pa.ListArray:
        """Return the light queues of each row; null where it went to none."""
        inline = pc.split_pattern(self.dispatch_text().to_text(), ",")
        interned = self.interned_rows()
        if not interned:
            return inline
        place = np.arange(len(self._rows), dtype=np.int64)
        place[interned] = len(self._rows) + np.arange(len(interned))
        lists = text_lists([self.names_of(row) or [] for row in interned])
        return pa.concat_arrays([inline, lists]).take(longs(place))

    def protocol(self) -> pa.StringArray:
        """Return the door that each row came in by."""
        return pc.fill_null(self.property_ranges(properties.PROTOCOL).to_text(), _OTHER_DOOR)

    def property_maps(self) -> pa.MapArray:
        """Return all properties of each row; this is the one column that costs objects."""
        maps = [
            properties.decode_properties(encoded) for encoded in self.ranges_of("properties").to_binary().to_pylist()
        ]
        keys = as_text(pa.array([key for found in maps for key in found], pa.binary()))
        values = as_text(pa.array([value for found in maps for value in found.values()], pa.binary()))
        bounds = np.zeros(len(maps) + 1, np.int32)
        np.cumsum([len(found) for found in maps], out=bounds[1:])
        return pa.MapArray.from_arrays(ints(bounds), keys, values)


_MAKERS: dict[str, Callable[[MessageColumns], pa.Array]] = {
    "phys": lambda rows: longs(rows.longs_of("physical_offset")),
    "segment": lambda rows: longs(rows.segment_bases()),
    "topic": lambda rows: rows.ranges_of("topic").to_text(),
    "device": lambda rows: rows.property_ranges(properties.CLIENT).to_text(),
    "protocol": MessageColumns.protocol,
    "user": lambda rows: rows.property_ranges(properties.USER).to_text(),
    "born": lambda rows: moments(rows.longs_of("born_ms")),
    "stored": lambda rows: moments(rows.longs_of("store_ms")),
    "fanout": lambda rows: ints(rows.fanout()),
    "record_bytes": lambda rows: ints(rows.ranges_of("record").sizes()),
    "body_bytes": lambda rows: ints(rows.ranges_of("body").sizes()),
    "dispatch_bytes": lambda rows: ints(rows.dispatch_bytes()),
    "queues": MessageColumns.queues,
    "properties": MessageColumns.property_maps,
    "body": lambda rows: rows.ranges_of("body").to_binary(),
}
