"""The keys of one full segment, as an immutable file: where the records are that may have a word of KEYS or a UNIQ_KEY.

A file has one entry for each word: its CRC and the position of its record, in buckets by the CRC's first bits, in each
in the order of the log. Written in slices; searched where it is mapped. Other words may have the same CRC: what is
found is a record that is worth reading.

Source: docs/storage-format.md, "Keys".
"""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Iterator
from pathlib import Path

from core import octets
from core.message import KEYED_MAX, StoredBatch
from core.properties import KEYS, UNIQ_KEY
from core.store.checked_file import BLOCK_BYTES, EMPTY, CheckedFile, FileFormat
from core.store.disk import new_file, write_all
from core.store.record import Buffer, find_property

# bits of the bucket number, segment base, entry count, CRC of the block CRCs, whether it is whole
_FORMAT = FileFormat("key file", b"LMQ-KEYS", 1, "IQQII")
_HEADER_BYTES = 44  # magic 8, version 4, the fields of _FORMAT 28, their CRC 4
_BLOCK_BYTES = BLOCK_BYTES
_BUCKET_SHIFT = 2  # four entries a bucket
_SLICE_ENTRIES = 16_384  # about 0.2 ms
_SLICE_BLOCKS = 256  # 1 MiB: so much is checked in one step
_HASH_BITS = 31
_EMPTY = EMPTY
_KEYS = KEYS
_UNIQ_KEY = UNIQ_KEY
_SPACE = 0x20
_END = 0x02
BYTES_AN_ENTRY_MIN = 64  # of the segment: a segment with more words has no index of them
TAKEN_MAX = 32_768  # of one `KeyColumns.take`; a record has fewer words, for its properties end at 32,767 bytes
_LOOKED_MAX = KEYED_MAX  # entries of a bucket that one `find` looks at, besides the rest of the last record's


class KeyColumns:
    """Words of some records: the CRC of each, and where its record stands."""

    def __init__(self) -> None:
        self.taken_hashes = array("I", bytes(4 * TAKEN_MAX))
        self.taken_positions = array("i", bytes(4 * TAKEN_MAX))
        self.hashes = self.taken_hashes
        self.positions = self.taken_positions
        self.count = 0

    def take(self, batch: StoredBatch, first: int) -> int:
        """Put the words of messages of `batch` from number `first` on in place of what is here.

        Returns:
            The number of the first message that did not fit; `batch.count` where all did.
        """
        self.count = 0
        buf = batch.buf
        for i in range(first, batch.count):
            start, end = batch.properties_start[i], batch.properties_end[i]
            if self.count + (end - start) // 2 + 2 > len(self.hashes):
                return i
            at = find_property(buf, start, end, _UNIQ_KEY)
            if at >= 0:
                self.add(buf, at, _value_end(buf, at, end), batch.record_start[i])
            at = find_property(buf, start, end, _KEYS)
            if at >= 0:
                self.add_words(buf, at, _value_end(buf, at, end), batch.record_start[i])
        return int(batch.count)

    def add_words(self, buf: Buffer, at: int, end: int, position: int) -> None:
        """Add the words between spaces in [at, end)."""
        while at < end:
            space = octets.find_byte(buf, _SPACE, at, end)
            word_end = end if space < 0 else space
            self.add(buf, at, word_end, position)
            at = word_end + 1

    def add(self, buf: Buffer, at: int, end: int, position: int) -> None:
        """Add one word, unless it is empty."""
        if at < end:
            self.hashes[self.count] = octets.crc32(buf, at, end)
            self.positions[self.count] = position
            self.count += 1


def _value_end(buf: Buffer, start: int, end: int) -> int:
    at = octets.find_byte(buf, _END, start, end)
    return end if at < 0 else at


def hash_key(key: bytes) -> int:
    """Return what a word is known by: its CRC without the top bit."""
    return zlib.crc32(key) & 0x7FFFFFFF


def count_buckets(hashes: array[int], start: int, end: int, shift: int, counts: array[int]) -> None:
    """Count the entries [start, end) in their buckets."""
    for k in range(start, end):
        counts[hashes[k] >> shift] += 1


def add_up(counts: array[int]) -> None:
    """Put in place of each count the sum of those before it."""
    total = 0
    for k in range(len(counts)):
        count = counts[k]
        counts[k] = total
        total += count


def sort_in(  # noqa: PLR0917 - as C has it
    hashes: array[int],
    positions: array[int],
    start: int,
    end: int,
    shift: int,
    ends: array[int],
    out_hashes: array[int],
    out_positions: array[int],
) -> None:
    """Put the entries [start, end) where `ends` says that their buckets go on, and move that on."""
    for k in range(start, end):
        bucket = hashes[k] >> shift
        at = ends[bucket]
        ends[bucket] = at + 1
        out_hashes[at] = hashes[k]
        out_positions[at] = positions[k]


def write_key_index(path: Path, base: int, hashes: array[int], positions: array[int]) -> Iterator[None]:
    """Write the entries of a segment as one file, in slices; it is there, whole and synced, after the last of them.

    Raises:
        DiskFullError: No room; nothing has changed.
        FlushFailedError: The disk refused; nothing has changed.
    """
    count = len(hashes)
    bits = max((count >> _BUCKET_SHIFT).bit_length(), 1)
    ends = array("I", bytes(4 << bits))
    for at in range(0, count, _SLICE_ENTRIES):
        count_buckets(hashes, at, min(at + _SLICE_ENTRIES, count), _HASH_BITS - bits, ends)
        yield
    add_up(ends)
    yield
    sorted_hashes, sorted_positions = array("I", bytes(4 * count)), array("i", bytes(4 * count))
    for at in range(0, count, _SLICE_ENTRIES):
        end = min(at + _SLICE_ENTRIES, count)
        sort_in(hashes, positions, at, end, _HASH_BITS - bits, ends, sorted_hashes, sorted_positions)
        yield
    parts = [memoryview(part).cast("B") for part in (ends, sorted_hashes, sorted_positions)]
    crcs = array("I")
    for part in parts:
        for at in range(0, len(part), _BLOCK_BYTES):
            crcs.append(octets.crc32(part, at, min(at + _BLOCK_BYTES, len(part))))
            if len(crcs) % _SLICE_BLOCKS == 0:
                yield
    yield from _write(path, _header(base, bits, count, crcs, is_whole=True) + crcs.tobytes(), parts)


def write_unknown_keys(path: Path, base: int) -> Iterator[None]:
    """Write the file of a segment that has too many words: it says so."""
    yield from _write(path, _header(base, 0, 0, array("I"), is_whole=False), [])


def _header(base: int, bits: int, count: int, crcs: array[int], *, is_whole: bool) -> bytes:
    return _FORMAT.pack(bits, base, count, zlib.crc32(crcs), is_whole)


def _write(path: Path, front: bytes, parts: list[memoryview]) -> Iterator[None]:
    with new_file(path) as fd:
        at = _up(len(front))
        write_all(fd, path, front.ljust(at, b"\0"), 0)
        for part in parts:
            write_all(fd, path, part, at)
            at += len(part)
            yield


def _up(size: int) -> int:
    """Return the next multiple of the size of a block."""
    return -(-size // _BLOCK_BYTES) * _BLOCK_BYTES


class KeyIndex(CheckedFile):
    """One such file, open. `find` leaves in `seen_from` and `seen_until` what it has looked through."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, _FORMAT)
        self.seen_from = 0
        self.seen_until = 0
        self.read_header()

    @classmethod
    def open(cls, path: Path) -> KeyIndex:
        """Map the file and check all but its blocks, which are checked when they are read.

        Raises:
            CorruptRecordError: It is damaged, or no such file of this version.
        """
        return cls(path)

    def read_header(self) -> None:
        """Take the header's fields and views of the parts."""
        whole = self.map
        bits, self.segment_base, count, crc, is_whole = _FORMAT.unpack(self)
        self.is_whole = bool(is_whole)
        self.shift = _HASH_BITS - bits
        sizes = [4 << bits, 4 * count, 4 * count] if self.is_whole else []
        firsts = array("q", [0])
        for part in sizes:
            firsts.append(firsts[len(firsts) - 1] + -(-part // _BLOCK_BYTES))
        blocks = firsts[len(firsts) - 1]
        self.first_blocks = firsts
        start = _up(_HEADER_BYTES + 4 * blocks)
        self.check(self.size == start + sum(sizes), "wrong size")
        crcs = whole[_HEADER_BYTES : _HEADER_BYTES + 4 * blocks]
        self.check(zlib.crc32(crcs) == crc, "damaged checksums")
        self.block_crcs = (crcs if blocks else _EMPTY[:4]).cast("I")
        self.is_checked = bytearray(blocks + 1)
        views = []
        for part in sizes:
            views.append(whole[start : start + part] if part else _EMPTY)
            start += part
        ends, hashes, places = views or [_EMPTY, _EMPTY, _EMPTY]
        self.ends_bytes, self.hashes_bytes, self.positions_bytes = ends, hashes, places
        self.ends, self.hashes, self.positions = ends.cast("I"), hashes.cast("I"), places.cast("i")

    def check_range(self, part: int, view: memoryview, start: int, end: int) -> None:
        """Check the blocks of a part that hold its numbers [start, end), those that were not checked before."""
        for block in range(4 * start // _BLOCK_BYTES, (4 * end - 1) // _BLOCK_BYTES + 1):
            self.check_block(self.first_blocks[part] + block, view, block * _BLOCK_BYTES)

    def find(self, key_hash: int, start: int, end: int, is_back: bool, out: array[int]) -> int:  # noqa: FBT001
        """Write the positions in [start, end) of records that may have a word, given by its `hash_key`, in their order.

        Args:
            key_hash: Of the word.
            start: Position to begin at.
            end: Position to end at.
            is_back: Whether to begin at the end, where there is more than can be looked through at once.
            out: Has room for `KEYED_MAX`.

        Returns:
            How many; what was looked through is [`seen_from`, `seen_until`).

        Raises:
            CorruptRecordError: The file is damaged.
        """
        self.seen_from = start
        self.seen_until = end
        bucket = key_hash >> self.shift
        self.check_range(0, self.ends_bytes, max(bucket - 1, 0), bucket + 1)
        low = self.ends[bucket - 1] if bucket else 0
        high = self.ends[bucket]
        self.check(low <= high <= len(self.positions), "impossible bucket")
        if low == high:
            return 0
        self.check_range(1, self.hashes_bytes, low, high)
        self.check_range(2, self.positions_bytes, low, high)
        low, high = self.narrow(low, high, start), self.narrow(low, high, end)
        if high - low > _LOOKED_MAX:
            if is_back:
                low = self.first_of(low, high - _LOOKED_MAX + 1)
                self.seen_from = self.positions[low]
            else:
                high = self.end_of(low + _LOOKED_MAX - 1, high)
                self.seen_until = self.positions[high - 1] + 1
        return self.pick(key_hash, low, high, out)

    def narrow(self, low: int, high: int, position: int) -> int:
        """Return the first entry in [low, high) that is at `position` or after it."""
        while low < high:
            middle = (low + high) // 2
            if self.positions[middle] < position:
                low = middle + 1
            else:
                high = middle
        return low

    def first_of(self, low: int, at: int) -> int:
        """Return the first entry from `low` on that is of the same record as `at`."""
        while at > low and self.positions[at - 1] == self.positions[at]:
            at -= 1
        return at

    def end_of(self, at: int, high: int) -> int:
        """Return the end, at most `high`, of the entries of the same record as `at`."""
        while at + 1 < high and self.positions[at + 1] == self.positions[at]:
            at += 1
        return at + 1

    def pick(self, key_hash: int, low: int, high: int, out: array[int]) -> int:
        """Write the positions of the entries in [low, high) with this CRC, each once; return how many."""
        count = 0
        last = -1
        for k in range(low, high):
            if self.hashes[k] == key_hash and self.positions[k] != last:
                last = self.positions[k]
                out[count] = last
                count += 1
        return count

    def close(self) -> None:
        """Let go of the file; it is not searched any more."""
        super().close()
        self.ends_bytes = self.hashes_bytes = self.positions_bytes = _EMPTY
        self.ends = self.hashes = _EMPTY.cast("I")
        self.positions = _EMPTY.cast("i")
