"""One byte range of a buffer for each record of a batch, and the Arrow columns that such ranges make."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_analytics import property_scan

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]
Buffer = bytes | bytearray | memoryview

_MICROS_A_MILLISECOND = 1000  # Arrow's timestamps are in microseconds


class ByteRanges:
    """One byte range of `buf` for each record; where a record has none, both positions are 0."""

    def __init__(self, buf: Buffer, starts: Ints, ends: Ints) -> None:
        self.buf = buf
        self.starts = starts
        self.ends = ends

    def sizes(self) -> Ints:
        """Return the size of each range."""
        return self.ends - self.starts

    def found(self) -> Truths:
        """Return which records have a range; it may be an empty one."""
        return self.ends > 0

    def count_items(self) -> Ints:
        """Return how many pieces between commas each range has; an empty one has none."""
        counts = np.empty(len(self.starts), np.int32)
        property_scan.count_items(self.buf, self.starts, self.ends, len(counts), counts)
        return counts

    def to_binary(self) -> pa.BinaryArray:
        """Return the bytes, copied into one buffer; null where there is no range."""
        count = len(self.starts)
        offsets = array("i", bytes(4 * (count + 1)))
        data = property_scan.gather(self.buf, self.starts, self.ends, count, offsets)
        buffers = [_validity(self.found()), pa.py_buffer(offsets), pa.py_buffer(data)]
        return pa.BinaryArray.from_buffers(pa.binary(), count, buffers)

    def to_text(self) -> pa.StringArray:
        """Return the bytes as UTF-8; what is none becomes U+FFFD."""
        return as_text(self.to_binary())


def as_text(binary: pa.BinaryArray) -> pa.StringArray:
    """Return `binary` as UTF-8, without a copy where it already is; what is none becomes U+FFFD."""
    text = binary.view(pa.string())
    try:
        text.validate(full=True)
    except pa.ArrowInvalid:
        pieces = [None if piece is None else piece.decode(errors="replace") for piece in binary.to_pylist()]
        return pa.array(pieces, pa.string())
    return text


def ints(values: Ints) -> pa.Int32Array:
    """Return a column of 32-bit integers that shares the memory of `values`."""
    return pa.Array.from_buffers(pa.int32(), len(values), [None, pa.py_buffer(values)])


def longs(values: Longs) -> pa.Int64Array:
    """Return a column of 64-bit integers that shares the memory of `values`."""
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(values)])


def moments(values_ms: Longs) -> pa.TimestampArray:
    """Return a column of moments, from milliseconds since 1970."""
    micros = values_ms * _MICROS_A_MILLISECOND
    kind = pa.timestamp("us", tz="UTC")
    return pa.Array.from_buffers(kind, len(micros), [None, pa.py_buffer(micros)])


def text_lists(lists: Sequence[Sequence[bytes]]) -> pa.ListArray:
    """Return a column of lists of text, from lists of bytes."""
    pieces = pa.array([piece for pieces in lists for piece in pieces], pa.binary())
    bounds = np.zeros(len(lists) + 1, np.int32)
    np.cumsum([len(pieces) for pieces in lists], out=bounds[1:])
    return pa.ListArray.from_arrays(ints(bounds), as_text(pieces))


def _validity(found: Truths) -> pa.Buffer | None:
    if found.all():
        return None
    return pa.py_buffer(np.packbits(found, bitorder="little"))
