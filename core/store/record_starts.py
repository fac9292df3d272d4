"""Where a segment may be cut into parts that are read side by side: at records' first bytes, each found for certain.

By the sealed index where there is one; else from record to record from the segment's start. What looks like a record
inside a body is never taken for one.
"""

from __future__ import annotations

from array import array
from pathlib import Path

from core.errors import CorruptRecordError
from core.message import StoredBatch
from core.store.layout import INDEX_FOLDER, segment_name
from core.store.record import Buffer, fill_columns
from core.store.record_walk import find_start
from core.store.sealed_index import SealedIndex


def cut_segment(data_dir: Path, view: Buffer, base: int, limit: int, count: int) -> list[int]:
    """Return up to `count` - 1 positions in (0, limit), ascending, where records start: about equal parts.

    There are fewer where damage hides how the records follow on one another.
    """
    found = _by_index(data_dir, base, count)
    scratch = StoredBatch(1)
    if not found or not all(fill_columns(scratch, 0, view, at, base) for at in found):
        found = _by_walk(view, base, limit, count)
    return sorted({at for at in found if 0 < at < limit})


def _by_index(data_dir: Path, base: int, count: int) -> list[int]:
    """Return positions from the entries of the queue that has most of them; they are in the order of the log."""
    path = data_dir / INDEX_FOLDER / segment_name(base)
    if not path.exists():
        return []
    try:
        index = SealedIndex.open(path)
        if index.segment_base != base or not index.entry_count:
            return []
        ref, first, entries = max(index.queues(), key=lambda queue: queue[2])
        out = array("i", [0])
        found = [out[0] for k in range(1, count) if index.lookup(ref, first + k * entries // count, 1, out)]
        return [at for at in found if at >= 0]
    except (CorruptRecordError, OSError):
        return []


def _by_walk(view: Buffer, base: int, limit: int, count: int) -> list[int]:
    found: list[int] = []
    at = 0
    for k in range(1, count):
        at = find_start(view, base, at, k * limit // count)
        if at < 0:
            break
        found.append(at)
    return found
