"""The index of a full segment: one immutable file, mapped read only.

A header, a directory of the queues sorted by ref, a CRC for each 1,024 entries, and the entries: 4 bytes each, one
queue's after another's. Header, directory and CRCs are checked at open, entries when they are first read. All numbers
are little-endian, so that they are used where they lie.

Source: docs/storage-format.md, "Sealed index".
"""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Iterator
from pathlib import Path

from core import octets
from core.store.checked_file import BLOCK_BYTES, EMPTY, CheckedFile, FileFormat
from core.store.disk import new_file, write_all
from core.store.head_index import HeadIndex
from core.store.position_marks import PositionMarks

# fingerprint of the names, segment base, log position that it reaches to, entry count, names covered, queue count,
# CRC of directory and entry CRCs
_FORMAT = FileFormat("index file", b"LMQINDEX", 1, "IQQQIII")
_HEADER_BYTES = 56  # magic 8, version 4, the fields of _FORMAT 40, their CRC 4
_ROW_BYTES = 24  # of the directory: three numbers of 64 bits
_ROW_LONGS = 3
_BLOCK_BYTES = BLOCK_BYTES
_BLOCK_ENTRIES = 1_024  # of four bytes
_SLICE_QUEUES = 65_536  # 1.5 MiB of the directory
_SLICE_ENTRIES = 262_144  # 1 MiB in one write: whole blocks, as each has a CRC
_REF_MASK = 0xFFFFFFFF
_EMPTY = EMPTY


def _entries_start(queue_count: int, entry_count: int) -> int:
    """Return the file position of the first entry: a multiple of 4,096."""
    blocks = -(-entry_count // _BLOCK_ENTRIES)
    return -(-(_HEADER_BYTES + queue_count * _ROW_BYTES + 4 * blocks) // _BLOCK_BYTES) * _BLOCK_BYTES


def write_sealed_index(
    path: Path,
    head: HeadIndex,
    segment_base: int,
    names_count: int,
    names_fingerprint: int,
    *,
    log_position: int = 0,
) -> None:
    """Write the entries of a detached head index as one file, synced and in one step.

    May run on another thread than the one that goes on with the live index.

    Args:
        path: The file to make or replace.
        head: What `HeadIndex.detach` gave.
        segment_base: Physical offset of the segment's first byte.
        names_count: Names of queues that are durable already; each ref in `head` is below it.
        names_fingerprint: Their fingerprint.
        log_position: Where the log went on when the index was detached.

    Raises:
        DiskFullError: No room; nothing has changed.
        FlushFailedError: The disk refused; nothing has changed.
    """
    queue_count = head.count_queues()
    start = _entries_start(queue_count, head.entry_count)
    with new_file(path) as fd:
        block_crcs = _write_entries(fd, path, head, start)
        front = bytearray(start)
        rows = _copy_directory(head, front)
        assert rows == queue_count
        at = _HEADER_BYTES + rows * _ROW_BYTES
        front[at : at + 4 * len(block_crcs)] = block_crcs.tobytes()
        crc = zlib.crc32(memoryview(front)[_HEADER_BYTES:])
        front[:_HEADER_BYTES] = _FORMAT.pack(
            names_fingerprint, segment_base, log_position, head.entry_count, names_count, queue_count, crc
        )
        write_all(fd, path, front, 0)


def _write_entries(fd: int, path: Path, head: HeadIndex, start: int) -> array[int]:
    """Write all entries from file position `start` on; return the CRC of each block."""
    block_crcs = array("I")
    entries = array("i", bytes(4 * _SLICE_ENTRIES))
    data = memoryview(entries).cast("B")
    while count := head.export_entries(entries):
        for at in range(0, 4 * count, _BLOCK_BYTES):
            block_crcs.append(octets.crc32(data, at, min(at + _BLOCK_BYTES, 4 * count)))
        write_all(fd, path, data[: 4 * count], start)
        start += 4 * count
    return block_crcs


def _copy_directory(head: HeadIndex, front: bytearray) -> int:
    """Put the directory after the header; return how many queues it has."""
    rows = array("q", bytes(_ROW_BYTES * _SLICE_QUEUES))
    data = memoryview(rows).cast("B")
    done = 0
    place = 0
    for ref in range(0, head.queue_count, _SLICE_QUEUES):
        count = head.export_queues(ref, min(ref + _SLICE_QUEUES, head.queue_count), place, rows)
        if count:
            at = _HEADER_BYTES + done * _ROW_BYTES
            front[at : at + count * _ROW_BYTES] = data[: count * _ROW_BYTES]
            place = rows[_ROW_LONGS * (count - 1) + 2] + (rows[_ROW_LONGS * (count - 1)] >> 32)
            done += count
    return done


class SealedIndex(CheckedFile):
    """One sealed index, open. Made by `open`."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, _FORMAT)
        self.log_position = 0
        self.names_count = 0
        self.names_fingerprint = 0
        self.entry_count = 0
        self.row_count = 0
        self.ref_max = -1
        self.read_header()

    @classmethod
    def open(cls, path: Path) -> SealedIndex:
        """Map the file and check all but its entries.

        Raises:
            CorruptRecordError: It is damaged, or no such file of this version.
        """
        return cls(path)

    def read_header(self) -> None:
        """Take the header's fields and views of the parts."""
        whole = self.map
        header = _FORMAT.unpack(self)
        self.names_fingerprint, self.segment_base, self.log_position, self.entry_count = header[:4]
        self.names_count, self.row_count, crc = header[4:]
        start = _entries_start(self.row_count, self.entry_count)
        self.check(self.size == start + 4 * self.entry_count, "wrong size")
        self.check(zlib.crc32(whole[_HEADER_BYTES:start]) == crc, "damaged directory")
        end = _HEADER_BYTES + self.row_count * _ROW_BYTES
        blocks = -(-self.entry_count // _BLOCK_ENTRIES)
        empty = self.entry_count == 0
        self.rows = (_EMPTY if empty else whole[_HEADER_BYTES:end]).cast("q")
        self.block_crcs = (_EMPTY if empty else whole[end : end + 4 * blocks]).cast("I")
        data = _EMPTY if empty else whole[start:]
        self.data = data
        self.entries = data.cast("i")
        self.is_checked = bytearray(blocks + 1)  # by block
        if not empty:
            self.ref_max = self.rows[_ROW_LONGS * (self.row_count - 1)] & _REF_MASK

    def find_row(self, ref: int) -> int:
        """Return where the row of a queue starts in `rows`, or -1.

        Refs are distinct, sorted and start at 0, so few missing ones leave few rows to search.
        """
        if ref < 0 or ref > self.ref_max:
            return -1
        low = max(ref - (self.ref_max - (self.row_count - 1)), 0)
        high = min(ref, self.row_count - 1)
        while low <= high:
            middle = (low + high) // 2
            found = self.rows[_ROW_LONGS * middle] & _REF_MASK
            if found == ref:
                return _ROW_LONGS * middle
            if found < ref:
                low = middle + 1
            else:
                high = middle - 1
        return -1

    def put_first_offsets(self, start: int, count: int, out: array[int]) -> None:
        """Write the first offsets of those of `count` queues from `start` on that are here, of `start` to `out[0]`."""
        low = max(start - (self.ref_max - (self.row_count - 1)), 0)
        high = min(start, self.row_count)
        while low < high:
            middle = (low + high) // 2
            if (self.rows[_ROW_LONGS * middle] & _REF_MASK) < start:
                low = middle + 1
            else:
                high = middle
        while low < self.row_count:
            ref = self.rows[_ROW_LONGS * low] & _REF_MASK
            if ref >= start + count:
                break
            out[ref - start] = self.rows[_ROW_LONGS * low + 1]
            low += 1

    def find(self, ref: int) -> tuple[int, int] | None:
        """Return the first queue offset and the number of entries of a queue, or None where it has none here."""
        row = self.find_row(ref)
        return None if row < 0 else (self.rows[row + 1], self.rows[row] >> 32)

    def check_blocks(self, place: int, end: int) -> None:
        """Check the blocks that hold the entries [place, end), those that were not checked before.

        Raises:
            CorruptRecordError: One is damaged.
        """
        for block in range(place // _BLOCK_ENTRIES, (end - 1) // _BLOCK_ENTRIES + 1):
            self.check_block(block, self.data, block * _BLOCK_BYTES)

    def lookup(self, ref: int, offset: int, count_max: int, out_positions: array[int]) -> int:
        """Write the positions of up to `count_max` entries from `offset` on; return how many, 0 where none is here.

        Raises:
            CorruptRecordError: The entries are damaged.
        """
        row = self.find_row(ref)
        if row < 0:
            return 0
        index = offset - self.rows[row + 1]
        count = self.rows[row] >> 32
        if index < 0 or index >= count:
            return 0
        size = min(count - index, count_max, len(out_positions))
        if size <= 0:
            return 0
        place = self.rows[row + 2] + index
        self.check_blocks(place, place + size)
        for entry in range(size):
            out_positions[entry] = self.entries[place + entry]
        return size

    def count_needed(self, refs: array[int], offsets: array[int], start: int, end: int) -> int:
        """Return how many entries the queues in [start, end) of `refs` have here, each from its offset on."""
        needed = 0
        for k in range(start, min(end, len(refs))):
            row = self.find_row(refs[k])
            if row >= 0:
                count = self.rows[row] >> 32
                needed += min(max(self.rows[row + 1] + count - offsets[k], 0), count)
        return needed

    def take(self, ref: int, offset: int, count_max: int, marks: PositionMarks, into: HeadIndex) -> int:
        """Mark the records of up to `count_max` entries of a queue from `offset` on, and add them to `into`.

        Returns:
            How many, 0 where none is here.

        Raises:
            CorruptRecordError: The entries are damaged.
        """
        row = self.find_row(ref)
        if row < 0:
            return 0
        index = offset - self.rows[row + 1]
        size = min((self.rows[row] >> 32) - index, count_max)
        if index < 0 or size <= 0:
            return 0
        place = self.rows[row + 2] + index
        self.check_blocks(place, place + size)
        into.set_next_offset(ref, offset)
        for entry in range(size):
            marks.mark(self.entries[place + entry])
            into.add(ref, self.entries[place + entry])
        return size

    def find_from(self, ref: int, offset: int, position: int) -> tuple[int, int] | None:
        """Return position and queue offset of a queue's first entry from `offset` on that is at `position` or after it.

        Raises:
            CorruptRecordError: The entries are damaged.
        """
        row = self.find_row(ref)
        if row < 0:
            return None
        first = self.rows[row + 2]
        low = first + max(offset - self.rows[row + 1], 0)
        end = first + (self.rows[row] >> 32)
        if low >= end:
            return None
        self.check_blocks(low, end)
        high = end
        while low < high:
            middle = (low + high) // 2
            at = middle
            while at < high and self.entries[at] < 0:  # lost records stand nowhere
                at += 1
            if at < high and self.entries[at] < position:
                low = at + 1
            else:
                high = middle
        while low < end and self.entries[low] < position:
            low += 1
        return (self.entries[low], self.rows[row + 1] + low - first) if low < end else None

    def check_all(self, start: int, end: int) -> None:
        """Check the entries [start, end) of all, as reading them would.

        Raises:
            CorruptRecordError: They are damaged.
        """
        end = min(end, self.entry_count)
        if start < end:
            self.check_blocks(start, end)

    def queues(self) -> Iterator[tuple[int, int, int]]:
        """Give ref, first queue offset and number of entries of each queue, by ref."""
        for row in range(0, _ROW_LONGS * self.row_count, _ROW_LONGS):
            first = self.rows[row]
            yield first & _REF_MASK, self.rows[row + 1], first >> 32

    def close(self) -> None:
        """Let go of the file; a second call does nothing."""
        super().close()
        self.row_count = 0
        self.ref_max = -1
        self.rows = _EMPTY.cast("q")
        self.data = _EMPTY
        self.entries = _EMPTY.cast("i")
