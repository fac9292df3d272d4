"""Walks from record to record: fills columns with messages, and finds starts of records, gaps and dispatch sets."""

from __future__ import annotations

from core import octets
from core.message import StoredBatch
from core.properties import DISPATCH_SET
from core.store.layout import PHYSICAL_OFFSET_AT
from core.store.record import (
    BLANK,
    Buffer,
    fill_columns,
    find_gap_end,
    find_property,
    is_gap,
    is_intact,
    is_set,
    read_decimal,
    record_size,
)

_SET = DISPATCH_SET
_PLACE_AT = PHYSICAL_OFFSET_AT


def fill_range(into: StoredBatch, buf: Buffer, base: int, pos: int, end: int, trusted_from: int) -> int:
    """Fill `into`, behind what it holds, with the messages that start in [pos, end) of the segment `buf`.

    Gaps and dispatch sets are passed over.

    Args:
        into: Goes on at its `count`, up to its capacity.
        buf: The segment.
        base: Its first physical offset.
        pos: Where a record starts.
        end: Where to stop.
        trusted_from: Records from this position on need no check.

    Returns:
        Where the first record starts that was not read: at `end` or after it, at the end of what is there, at damage,
        or where `into` was full.
    """
    filled = into.count
    while pos < end and filled < into.capacity and fill_columns(into, filled, buf, pos, base):
        if pos < trusted_from and not is_intact(into, filled, buf):
            break
        pos = into.record_end[filled]
        if not is_gap(into, filled, buf) and not is_set(into, filled, buf):
            filled += 1
    into.count = filled
    return pos


def find_way_on(buf: Buffer, base: int, pos: int) -> int:
    """Return where the gap ends that has swallowed `pos`, or -1; the segment's size where nothing is kept after `pos`.

    A reader that stands there came before it was a gap.
    """
    at = 0
    while at <= pos:
        end = find_gap_end(buf, base, at)
        if end > pos:
            return end
        size = record_size(buf, at)
        if size <= 0:
            return len(buf) if size == BLANK else -1
        at += size
    return -1


def find_start(buf: Buffer, base: int, pos: int, target: int) -> int:
    """Return where the first record starts at `target` or after it, or -1 where the records from `pos` on end before.

    Sizes lead from one to the next; each must name its own place.
    """
    while pos < target:
        size = record_size(buf, pos)
        if size <= 0 or octets.read_i64(buf, pos + _PLACE_AT) != base + pos:
            return -1
        pos += size
    return pos if record_size(buf, pos) > 0 else -1


def find_sets(into: StoredBatch, buf: Buffer, base: int, pos: int, end: int, out: list[int]) -> int:
    """Add to `out` what the records that start in [pos, end) name as their dispatch sets, without repetitions in a row.

    Returns:
        Where the first thing stands that is no sound record, or not whole in `buf`; `end` or more where there is none.
    """
    last = -1
    while pos < end and fill_columns(into, 0, buf, pos, base) and is_intact(into, 0, buf):
        at = find_property(buf, into.properties_start[0], into.properties_end[0], _SET)
        if at >= 0:
            found = read_decimal(buf, at, into.properties_end[0])
            if found >= 0 and found != last:
                last = found
                out.append(found)
        pos = into.record_end[0]
    return pos
