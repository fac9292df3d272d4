"""Gaps: records that lead over what is no longer kept in a segment, so that it can be gone through from its start.

A gap is a record of RocketMQ's format on a topic of its own, in no queue. Its body holds a little at its start and is
zeros otherwise, whose pages are punched out of the file. What a gap swallowed cannot be counted any more, so it says of
each dispatch set that is used between it and the next gap where the set's queues go on.

Source: docs/storage-format.md, "Gaps".
"""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Sequence

from core.errors import CorruptRecordError
from core.reserved import GAP_TOPIC
from core.store.dispatch_set import encode_varint, read_varint, varint_size
from core.store.layout import (
    BLANK_BYTES,
    GAP_BODY_AT,
    GAP_MARK,
    HOST_V4_BYTES,
    MAGIC_BLANK,
    MAGIC_V1,
    SYS_NOT_DISPATCHED,
)
from core.store.record_write import write_fixed

GAP_BYTES_MAX = 4 << 20  # of one record: RocketMQ's limit, by default; a longer gap is several
NEVER = 0x7FFFFFFF  # a position after every record
_TAIL = bytes([len(GAP_TOPIC)]) + GAP_TOPIC + bytes(2)  # after the body: the topic, and no properties
_HEAD_BYTES = GAP_BODY_AT + 8  # with the data's size and checksum
_CRC_FROM = 12  # after the body's checksum
_CRC_MASK = 0x7FFFFFFF  # as RocketMQ stores them
_ZEROS = bytes(1 << 20)
GAP_BYTES_MIN = _HEAD_BYTES + len(_TAIL)


Groups = list[tuple[int, int, int]]  # how many queues in a row; their position; by how much they pass the set's offset


class SetUse:
    """Of one dispatch set, where its queues go on after a gap: `starts` and `offsets` by the place in the set.

    A queue's first entry after the gap is at the position `starts` and has that offset; NEVER: it has none that counts.
    """

    def __init__(self, groups: Groups) -> None:
        self.groups = groups
        self.is_bound = False
        self.starts = array("i")
        self.offsets = array("q")

    def bind(self, set_offsets: array[int]) -> None:
        """Fill `starts` and `offsets`: `set_offsets` are those in the set's record."""
        self.is_bound = True
        for count, start, step in self.groups:
            first = len(self.starts)
            self.starts.extend([start] * min(count, len(set_offsets) - first))
            self.offsets.extend([set_offsets[k] + step for k in range(first, len(self.starts))])
        missing = len(set_offsets) - len(self.starts)
        self.starts.extend([NEVER] * missing)
        self.offsets.extend([0] * missing)


def group_queues(starts: Sequence[int], offsets: Sequence[int], set_offsets: Sequence[int]) -> Groups:
    """Return the groups of a `SetUse`: queues in a row that go on at one place, by the same step."""
    groups: Groups = []
    count = 0
    last = (NEVER, 0)
    for start, offset, set_offset in zip(starts, offsets, set_offsets, strict=True):
        now = (start, offset - set_offset if start != NEVER else 0)
        if now != last and count:
            groups.append((count, *last))
            count = 0
        last = now
        count += 1
    if count:
        groups.append((count, *last))
    return groups


def encode_uses(uses: dict[int, Groups], base: int, end: int) -> bytes:
    """Return the data of a gap that ends at the position `end`: the groups of each set, by its physical offset."""
    parts = [encode_varint(len(uses))]
    for place, groups in sorted(uses.items()):
        parts += [encode_varint(place - base), encode_varint(len(groups))]
        for count, start, step in groups:
            parts.append(encode_varint(count))
            parts.append(encode_varint(0 if start == NEVER else start - end + 1))
            if start != NEVER:
                parts.append(encode_varint(step << 1 if step >= 0 else -step << 1 | 1))
    return b"".join(parts)


def read_uses(data: bytes, base: int, end: int) -> dict[int, SetUse]:
    """Return what a gap that ends at the position `end` says of dispatch sets, by their physical offsets.

    Raises:
        CorruptRecordError: It is no such data; the offset of the error is the position in it.
    """
    numbers = _Numbers(data)
    uses: dict[int, SetUse] = {}
    for _ in range(numbers.take() if data else 0):
        place = base + numbers.take()
        groups: Groups = []
        for _ in range(numbers.take()):
            count = numbers.take()
            start = numbers.take()
            if start:
                step = numbers.take()
                groups.append((count, end + start - 1, -(step >> 1) if step & 1 else step >> 1))
            else:
                groups.append((count, NEVER, 0))
        uses[place] = SetUse(groups)
    return uses


class _Numbers:
    def __init__(self, data: bytes) -> None:
        self._data = memoryview(data)
        self._at = 0

    def take(self) -> int:
        value = read_varint(self._data, self._at, len(self._data))
        if value < 0:
            raise CorruptRecordError(self._at, "a gap ends within its dispatch sets")
        self._at += varint_size(value)
        return value


def make_gap(base: int, start: int, end: int, store_ms: int, data: bytes) -> list[tuple[int, bytes]]:
    """Return what to write, as (position, bytes), so that [start, end) of the segment `base` is one gap.

    All between the first and the last of these bytes must be zeros. `store_ms` is the time that the gap bears.
    """
    body_size = end - start - GAP_BODY_AT - len(_TAIL)
    head = bytearray(GAP_BODY_AT)
    write_fixed(
        head,
        0,
        MAGIC_V1,
        0,
        0,
        0,
        0,
        base + start,
        SYS_NOT_DISPATCHED,
        store_ms,
        bytes(HOST_V4_BYTES),
        store_ms,
        bytes(HOST_V4_BYTES),
        0,
        GAP_MARK,
    )
    head[:4] = (end - start).to_bytes(4, "big")
    head[GAP_BODY_AT - 4 :] = body_size.to_bytes(4, "big")
    checked = bytes(head[_CRC_FROM:]) + len(data).to_bytes(4, "big") + data
    front = checked[GAP_BODY_AT - _CRC_FROM :] + (zlib.crc32(checked) & _CRC_MASK).to_bytes(4, "big")
    head[8:12] = (_crc_with_zeros(front, body_size - len(front)) & _CRC_MASK).to_bytes(4, "big")
    return [(start, bytes(head) + front), (end - len(_TAIL), _TAIL)]


def _crc_with_zeros(front: bytes, zeros: int) -> int:
    crc = zlib.crc32(front)
    while zeros > 0:
        crc = zlib.crc32(memoryview(_ZEROS)[: min(zeros, len(_ZEROS))], crc)
        zeros -= len(_ZEROS)
    return crc


def make_gaps(base: int, start: int, end: int, store_ms: int, data: bytes) -> list[tuple[int, bytes]]:
    """Return what to write so that [start, end) is a gap, of as many records as it takes; the last one has `data`."""
    count = max(-(-(end - start) // GAP_BYTES_MAX), 1)
    size = (end - start) // count
    writes: list[tuple[int, bytes]] = []
    for k in range(count - 1):
        writes += make_gap(base, start + k * size, start + (k + 1) * size, store_ms, b"")
    return writes + make_gap(base, start + (count - 1) * size, end, store_ms, data)


def make_blank(start: int, size: int) -> tuple[int, bytes]:
    """Return what to write so that nothing is kept from the position `start` on in a segment of `size` bytes."""
    return start, (size - start).to_bytes(4, "big") + MAGIC_BLANK.to_bytes(BLANK_BYTES - 4, "big")
