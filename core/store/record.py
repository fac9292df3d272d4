"""One record of the commit log where it stands: find its parts, check it.

The format is RocketMQ's, byte for byte. A position is where a record's first byte stands in the buffer of its segment.

Source: docs/storage-format.md, "Record".
"""

from __future__ import annotations

from array import array

from core import octets
from core.message import StoredBatch
from core.properties import CRC, TOPIC
from core.reserved import DISPATCH_SET_TOPIC, GAP_TOPIC
from core.store.layout import (
    CRC_PROPERTY_BYTES,
    GAP_BODY_AT,
    GAP_MARK,
    GAP_MARK_AT,
    MAGIC_BLANK,
    MAGIC_V1,
    MAGIC_V2,
    RECORD_BYTES_MIN,
)

_MAGIC_V1 = MAGIC_V1
_MAGIC_V2 = MAGIC_V2
_MAGIC_BLANK = MAGIC_BLANK
_RECORD_BYTES_MIN = RECORD_BYTES_MIN
_CRC_BYTES = CRC_PROPERTY_BYTES
_GAP_MARK = GAP_MARK
_GAP_MARK_AT = GAP_MARK_AT
_GAP_BODY_AT = GAP_BODY_AT
_GAP_TOPIC = GAP_TOPIC
_GAP_TAIL_BYTES = 3 + len(GAP_TOPIC)
_SET_TOPIC = DISPATCH_SET_TOPIC
_CRC_FROM = 12  # a gap's own checksum starts after the body's, which covers it
_CRC_MARKS = 10  # bytes of the property that are always the same
_CRC_NAME = CRC + b"\x01"
_TOPIC_NAME = TOPIC + b"\x01"
_TOPIC_NAME_BYTES = len(_TOPIC_NAME)
_AHEAD = 16  # records whose memory is fetched together
_DECIMAL_DIGITS_MAX = 18  # any number of so many fits into 64 bits

BLANK = 0
NO_RECORD = -1

Buffer = bytes | bytearray | memoryview


def record_size(buf: Buffer, pos: int) -> int:
    """Return the size of the record at `pos` by its first fields alone.

    Returns:
        `BLANK` (0) where the rest of the segment is unused, `NO_RECORD` (-1) where no record can stand.
    """
    end = len(buf)
    if pos < 0 or pos + 8 > end:
        return NO_RECORD
    size = octets.read_u32(buf, pos)
    magic = octets.read_u32(buf, pos + 4)
    if magic == _MAGIC_BLANK:
        return BLANK
    if magic not in (_MAGIC_V1, _MAGIC_V2) or size < _RECORD_BYTES_MIN or size > end - pos:
        return NO_RECORD
    return size


def fill_columns(into: StoredBatch, i: int, buf: Buffer, pos: int, base: int) -> bool:
    """Fill place `i` of `into` with the record at `pos` of the segment `buf` that starts at `base`.

    Returns:
        False where the lengths inside the record do not add up to its size, or it names another physical offset.
    """
    into.fill_number += 1
    into.sound_rows = min(into.sound_rows, i)
    size = record_size(buf, pos)
    if size <= 0:
        return False
    end = pos + size
    physical_offset = octets.read_i64(buf, pos + 28)
    sys_flag = octets.read_i32(buf, pos + 36)
    at = pos + 56 + (12 if sys_flag & 0x10 else 0)
    store_ms = octets.read_i64(buf, at)
    at += 16 + (12 if sys_flag & 0x20 else 0)
    if physical_offset != base + pos or at + 16 > end:
        return False
    reconsume_times = octets.read_i32(buf, at)
    body_start = at + 16
    body_size = octets.read_i32(buf, at + 12)
    if body_size < 0 or body_size > end - body_start - 3:
        return False
    at = body_start + body_size
    if octets.read_u32(buf, pos + 4) == _MAGIC_V2:
        topic_size = octets.read_u16(buf, at)
        at += 2
    else:
        topic_size = buf[at]
        at += 1
    if topic_size > end - at - 2:
        return False
    properties_start = at + topic_size + 2
    if properties_start + octets.read_u16(buf, properties_start - 2) != end:
        return False
    into.record_start[i] = pos
    into.record_end[i] = end
    into.topic_start[i] = at
    into.topic_end[i] = at + topic_size
    into.body_start[i] = body_start
    into.body_end[i] = body_start + body_size
    into.properties_start[i] = properties_start
    into.properties_end[i] = end
    into.flag[i] = octets.read_i32(buf, pos + 16)
    into.sys_flag[i] = sys_flag
    into.attempt[i] = reconsume_times + 1
    into.queue_offset[i] = octets.read_i64(buf, pos + 20)
    into.physical_offset[i] = physical_offset
    into.born_ms[i] = octets.read_i64(buf, pos + 40)
    into.store_ms[i] = store_ms
    if has_prefix(buf, properties_start, end, _TOPIC_NAME):
        at = octets.find_byte(buf, 2, properties_start, end)
        into.topic_start[i] = properties_start + _TOPIC_NAME_BYTES
        into.topic_end[i] = at if at >= 0 else end
    return True


def is_intact(into: StoredBatch, i: int, buf: Buffer) -> bool:
    """Return whether the record in place `i`, filled by `fill_columns`, holds what its checksums say.

    A record with the property `__CRC32#` at its end is checked whole, one without it its body only. Of a gap only its
    head is read: the rest has no pages.
    """
    start = into.record_start[i]
    end = into.record_end[i]
    if is_gap(into, i, buf):
        return find_gap_end(buf, into.physical_offset[i] - start, start) == end
    at = end - _CRC_BYTES
    if at >= into.properties_start[i]:
        likeness = _crc_likeness(buf, at)
        if likeness == _CRC_MARKS:
            return octets.crc32(buf, start, at) == _read_digits(buf, at + 9)
        if likeness > _CRC_MARKS // 2:
            return False
    elif into.topic_end[i] - into.topic_start[i] == len(_GAP_TOPIC) and has_prefix(
        buf, into.topic_start[i], into.topic_end[i], _GAP_TOPIC
    ):
        return False  # a gap whose mark is damaged: whatever else is stored here has a checksum of the whole
    if octets.find_byte(buf, 0, max(at, into.properties_start[i]), end) >= 0:
        return False  # the end was never written, or part of it never reached the disk: properties are text
    return octets.crc32(buf, into.body_start[i], into.body_end[i]) == octets.read_u32(buf, start + 8)


def is_gap(into: StoredBatch, i: int, buf: Buffer) -> bool:
    """Return whether the record in place `i`, filled by `fill_columns`, leads over what is no longer kept."""
    return octets.read_i64(buf, into.body_start[i] - _GAP_BODY_AT + _GAP_MARK_AT) == _GAP_MARK


def is_set(into: StoredBatch, i: int, buf: Buffer) -> bool:
    """Return whether the record in place `i`, filled by `fill_columns`, holds a dispatch set.

    Its topic says so, and that it has no property but its checksum: every message bears more, whatever its topic is.
    """
    end = into.properties_end[i]
    return (
        end - into.properties_start[i] == _CRC_BYTES
        and _crc_likeness(buf, end - _CRC_BYTES) == _CRC_MARKS
        and into.topic_end[i] - into.topic_start[i] == len(_SET_TOPIC)
        and has_prefix(buf, into.topic_start[i], into.topic_end[i], _SET_TOPIC)
    )


def find_gap_end(buf: Buffer, base: int, pos: int) -> int:
    """Return where the gap ends whose sound head stands at `pos` of the segment `buf`, or -1."""
    size = record_size(buf, pos)
    if size < _GAP_BODY_AT + 8 or octets.read_i64(buf, pos + _GAP_MARK_AT) != _GAP_MARK:
        return -1
    if size != _GAP_BODY_AT + octets.read_u32(buf, pos + _GAP_BODY_AT - 4) + _GAP_TAIL_BYTES:
        return -1
    data_end = pos + _GAP_BODY_AT + 4 + octets.read_u32(buf, pos + _GAP_BODY_AT)
    if octets.read_i64(buf, pos + 28) != base + pos or data_end + 4 > pos + size:
        return -1
    if octets.crc32(buf, pos + _CRC_FROM, data_end) != octets.read_u32(buf, data_end):
        return -1
    return pos + size


def read_decimal(buf: Buffer, at: int, end: int) -> int:
    """Return the decimal number at `at`, up to 0x02 or `end`; -1 where there is none."""
    value = 0
    digits = 0
    while at < end and buf[at] != 2:
        digit = buf[at] - 48
        if digit < 0 or digit > 9 or digits >= _DECIMAL_DIGITS_MAX:
            return -1
        value = value * 10 + digit
        digits += 1
        at += 1
    return value if digits else -1


def _crc_likeness(buf: Buffer, at: int) -> int:
    """Return how many of the ten fixed bytes of a `__CRC32#` property stand at `at`: more than half are no chance."""
    alike = 1 if buf[at + _CRC_BYTES - 1] == 2 else 0
    if octets.starts_with(buf, at, _CRC_NAME):
        return alike + 9
    for k in range(9):
        if buf[at + k] == _CRC_NAME[k]:
            alike += 1
    return alike


def _read_digits(buf: Buffer, at: int) -> int:
    value = 0
    pos = at + 9
    while pos >= at:
        digit = buf[pos] - 48
        if digit < 0 or digit > 9:
            return -1
        value = value * 10 + digit
        pos -= 1
    return value


def _fetch_ahead(buf: Buffer, positions: array[int], first: int, end: int, left: int) -> None:
    """Have the memory of both ends of the records at `positions` [first, end) fetched at once, not one by one.

    Of those that lie beyond `left` bytes nothing is read: they are not wanted, and may have to come from the disk.
    """
    for k in range(first, end):
        octets.fetch_ahead(buf, positions[k])
        octets.fetch_ahead(buf, positions[k] + 64)
    for k in range(first, end):
        if left < 0:
            break
        if 0 <= positions[k] <= len(buf) - 4:
            size = octets.read_u32(buf, positions[k])
            left -= size
            after = positions[k] + size
            octets.fetch_ahead(buf, after - 1)
            octets.fetch_ahead(buf, after - 65)
            octets.fetch_ahead(buf, after - 129)


def fill_batch(
    into: StoredBatch,
    buf: Buffer,
    base: int,
    positions: array[int],
    count: int,
    queue_offset: int,
    bytes_max: int,
    trusted_from: int,
) -> int:
    """Fill `into` with consecutive entries of one queue; return how many records it holds then.

    Args:
        into: Cleared by the caller but for `buf`; what lies in `count` already stays.
        buf: The segment.
        base: Its first physical offset.
        positions: Positions of the entries' records, -1 where a record was lost.
        count: How many of `positions` mean something.
        queue_offset: The first entry's number.
        bytes_max: Stop before the records together pass this, except for the first.
        trusted_from: Records from this position on were written by this process and need no check.

    A record that fails its checks is left out; `into.next_offset` is where to go on.
    """
    filled = into.count
    left = bytes_max
    fetched = 0  # entries before this one have their memory asked for
    k = 0
    while k < count and filled < into.capacity:
        pos = positions[k]
        is_there = pos >= trusted_from and has_row(into, filled, buf, base + pos)
        if pos >= 0 and not is_there:
            if k >= fetched and k + 1 < count:  # a single record comes no sooner for being asked for
                fetched = min(k + _AHEAD, count)
                _fetch_ahead(buf, positions, k, fetched, left)
            is_there = fill_columns(into, filled, buf, pos, base)
        if is_there:
            size = into.record_end[filled] - pos
            if size > left and filled > 0:
                break
            if pos >= trusted_from or is_intact(into, filled, buf):
                into.queue_offset[filled] = queue_offset + k
                left -= size
                filled += 1
        k += 1
    into.count = filled
    into.sound_rows = filled
    into.next_offset = queue_offset + k
    return filled


def has_row(into: StoredBatch, i: int, buf: Buffer, physical_offset: int) -> bool:
    """Return whether place `i` still holds the record at `physical_offset`, from a read of another queue."""
    if i >= into.sound_rows or into.physical_offset[i] != physical_offset:
        return False
    into.attempt[i] = octets.read_i32(buf, into.body_start[i] - 16) + 1  # a consumer may have counted there
    return True


def find_sound(into: StoredBatch, buf: Buffer, base: int, pos: int, end: int) -> int:
    """Return where the next sound record starts in [pos, end) of a damaged segment, or -1; `into` is scratch.

    Where the record at `pos` has lengths that add up to its size, and that leads to a sound one, that is it. Else every
    place is tried that holds a record's magic number; a record names its own place and is checked whole, so a body is
    hardly taken for one.
    """
    if fill_columns(into, 0, buf, pos, base):
        after = into.record_end[0]
        if after < end and fill_columns(into, 0, buf, after, base) and is_intact(into, 0, buf):
            return after
    pos += 1
    while pos + 8 <= end:
        pos = octets.find_byte(buf, 0xDA, pos + 4, end) - 4
        if pos < 0:
            return -1
        if fill_columns(into, 0, buf, pos, base) and is_intact(into, 0, buf):
            return pos
        pos += 1
    return -1


def has_prefix(buf: Buffer, pos: int, end: int, prefix: bytes) -> bool:
    """Return whether [pos, end) of `buf` starts with `prefix`."""
    return pos + len(prefix) <= end and octets.starts_with(buf, pos, prefix)


def find_property(buf: Buffer, start: int, end: int, name: bytes) -> int:
    """Return the position of the value of the property `name` in the encoded properties [start, end), or -1.

    The value ends at the next 0x02, or at `end`. Of equal names the first is found.
    """
    size = len(name)
    pos = start
    while pos < end:
        if pos + size < end and buf[pos + size] == 1 and octets.starts_with(buf, pos, name):
            return pos + size + 1
        pos = octets.find_byte(buf, 2, pos, end)
        if pos < 0:
            return -1
        pos += 1
    return -1
