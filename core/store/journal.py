"""An append-only file of small records: state that changes with every message, and outlives a killed process.

Records are stores into a mapped file that has its blocks already. Each is its size (one byte), its payload, and a CRC
over these and the four bytes before them, so that records are good only in their order. What follows the last good one
at open is cut off: a torn tail, or damage, after which nothing may be believed, because records change each other's
meaning. A compaction is a new file, which takes the journal's name when it is on disk: whatever a power cut leaves of
the folder's names, the one of the journal is there.

Source: docs/storage-format.md, "Journals".
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from core import octets
from core.errors import DiskFullError
from core.store.disk import sync_folder
from core.store.growing_file import STEP_BYTES, GrowingFile
from core.store.journal_head import (
    HEAD_BYTES,
    SEED,
    SEED_BYTES,
    JournalHead,
    convert_old,
    journal_name,
    pack_head,
    read_head,
)
from core.store.sync_plan import SyncPlan, sync_now

LOGGER = logging.getLogger(__name__)

RECORD_BYTES_MAX = 64  # docs/storage-format.md, "Journals"
_RECORD_BYTES_MAX = RECORD_BYTES_MAX
_OVERHEAD = 5  # size 1, CRC 4
_HEAD_BYTES = HEAD_BYTES
_SEED_BYTES = SEED_BYTES


def write_records(buf: bytearray | memoryview, pos: int, records: bytes | bytearray | memoryview, size: int) -> int:
    """Write `records`, payloads of `size` bytes each, as records from `pos` on; return the position after them."""
    start = 0
    end = len(records)
    while start < end:
        octets.write_u8(buf, pos, size)
        octets.copy_bytes(buf, pos + 1, records, start, size)
        pos += size + 1
        octets.write_u32(buf, pos, octets.crc32(buf, pos - size - 5, pos))
        pos += 4
        start += size
    return pos


def check_record(buf: bytes | bytearray | memoryview, pos: int, end: int) -> int:
    """Return the payload's size of the record at `pos`, or 0 where [pos, end) begins with none that is good."""
    if pos < _SEED_BYTES or pos >= end:
        return 0
    size = buf[pos]
    if size == 0 or size > _RECORD_BYTES_MAX or pos + size + _OVERHEAD > end:
        return 0
    crc = octets.crc32(buf, pos - 4, pos + 1 + size)
    return size if octets.read_u32(buf, pos + 1 + size) == crc else 0


def find_records_end(buf: bytes | bytearray | memoryview, pos: int, end: int) -> int:
    """Return the position after the last good record in the unbroken run that starts at `pos`."""
    size = check_record(buf, pos, end)
    while size > 0:
        pos += size + _OVERHEAD
        size = check_record(buf, pos, end)
    return pos


class _Generation:
    """One file of the journal: the first, or what a compaction made; records are appended here."""

    def __init__(self, file: GrowingFile, number: int, end: int) -> None:
        self.file = file
        self.number = number
        self.buf = memoryview(file.map)
        self.end = end
        self.is_planned = False  # a plan may give it the journal's name at any moment
        self.is_named = False  # the folder that names the file was synced

    @classmethod
    def begin(cls, path: Path, number: int) -> _Generation:
        """Begin a file that no other is to be found at.

        Raises:
            DiskFullError: No room; there is no file.
        """
        path.unlink(missing_ok=True)
        try:
            file = GrowingFile(path)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        made = cls(file, number, _HEAD_BYTES)
        made.buf[_HEAD_BYTES - _SEED_BYTES : _HEAD_BYTES] = SEED
        return made

    def append_many(self, records: bytes | bytearray | memoryview, size: int) -> None:
        """Append records of `size` bytes each that lie end to end, all of them or none."""
        self.make_room(records, size)
        self.end = write_records(self.buf, self.end, records, size)

    def make_room(self, records: bytes | bytearray | memoryview, size: int) -> None:
        """Let the file have room for these records."""
        if not 1 <= size <= RECORD_BYTES_MAX or len(records) % size:
            raise ValueError("a record has 1 to 64 bytes")
        end = self.end + len(records) // size * (size + _OVERHEAD)
        if end > len(self.buf):
            self.file.grow(end)
            self.buf = memoryview(self.file.map)

    def discard(self) -> None:
        """Let there be no such file; it has not the journal's name."""
        self.file.path.unlink(missing_ok=True)
        self.file.close()


class Journal:
    """The journal at one path, made by `open`. What it adds to a plan may run on another thread beside all but `close`.

    A compaction goes on beside the work: what it wants to keep is written into the next file, which also gets whatever
    is appended meanwhile. Once finished it is what the journal holds, and both files go on until the next sync, which
    forces both to disk and then gives the new one the journal's name. Until then the one before says the same.
    """

    def __init__(self, path: Path, generation: _Generation, lost_bytes: int, *, is_damaged: bool) -> None:
        self.path = path
        self.lost_bytes = lost_bytes  # what was cut off at open
        self.is_damaged = is_damaged  # whether it was not as it was written, its end or its head
        self._generation = generation
        self._next: _Generation | None = None  # what a compaction has so far
        self._finished: list[_Generation] = []  # by compactions, since the last plan that was done; the last one counts
        self._retired: list[GrowingFile] = []
        self._is_dirty = True

    @classmethod
    def open(cls, path: Path) -> Journal:
        """Open the journal, or begin a new one; what is after its last good record is cut off.

        A journal of the version before becomes one of this version. What is no journal at all is set aside.

        Raises:
            DataFolderUnusableError: It is another journal, or of a later version.
            DiskFullError: No room for a new one.
        """
        for unfinished in [path.with_name(path.name + ".new"), *path.parent.glob(f"{path.name}.new-*")]:
            unfinished.unlink(missing_ok=True)
        fallbacks = _choose(path)
        file = GrowingFile(path)
        buf = memoryview(file.map)
        head = read_head(buf, path)
        seed = bytes(buf[_HEAD_BYTES - _SEED_BYTES : _HEAD_BYTES])
        buf[_HEAD_BYTES - _SEED_BYTES : _HEAD_BYTES] = SEED
        end = find_records_end(buf, _HEAD_BYTES, file.size)
        is_damaged = head is None and (end > _HEAD_BYTES or any(buf[: _HEAD_BYTES - _SEED_BYTES]))
        lost_bytes = 0
        if is_damaged and end == _HEAD_BYTES:
            buf[_HEAD_BYTES - _SEED_BYTES : _HEAD_BYTES] = seed
            file, lost_bytes = _set_aside(path, file)
            buf = memoryview(file.map)
        elif is_damaged:
            LOGGER.warning("damaged head of a journal is made good, its records are kept path=%s", path)
        cut_bytes = _clear(buf, end)
        if cut_bytes:
            LOGGER.warning("cut a journal off after its last good record path=%s at=%d bytes=%d", path, end, cut_bytes)
        if fallbacks:  # what is whole in memory may still be missing on disk
            file.sync()
            sync_folder(path.parent)
            for name in fallbacks:
                name.unlink(missing_ok=True)
        number = head.number if head is not None else 0
        _write_head(buf, path, number, _HEAD_BYTES)
        lost_bytes += cut_bytes
        return cls(path, _Generation(file, number, end), lost_bytes, is_damaged=is_damaged or lost_bytes > 0)

    @property
    def bytes_used(self) -> int:
        """How much of the file records take; what a compaction would start again from."""
        return self._newest.end

    @property
    def _newest(self) -> _Generation:
        return next(reversed(self._finished), self._generation)

    @property
    def is_compacting(self) -> bool:
        """Whether a compaction is under way; a full disk ends one."""
        return self._next is not None

    def append(self, record: bytes | bytearray | memoryview) -> None:
        """Append one record of 1 to 64 bytes.

        Raises:
            DiskFullError: No room; nothing was appended.
        """
        self.append_many(record, len(record))

    def append_many(self, records: bytes | bytearray | memoryview, size: int) -> None:
        """Append records of `size` bytes each that lie end to end, all of them or none.

        Raises:
            DiskFullError: No room; nothing was appended.
        """
        for generation in self._finished:  # in all of them or none: any may be the journal after a kill
            generation.make_room(records, size)
        self._generation.append_many(records, size)
        for generation in self._finished:
            generation.append_many(records, size)
        self._is_dirty = True
        if self._next is not None:
            try:
                self._next.append_many(records, size)
            except DiskFullError:
                self.drop_compaction()

    def replay(self) -> Iterator[bytes]:
        """Give every record there is now, oldest first."""
        buf = self._newest.buf
        end = self._newest.end
        pos = _HEAD_BYTES
        while pos < end:
            size = buf[pos]
            yield bytes(buf[pos + 1 : pos + 1 + size])
            pos += size + _OVERHEAD

    def begin_compaction(self) -> None:
        """Begin to write what is to take the place of all that the journal holds; one that was under way is dropped.

        Raises:
            DiskFullError: No room.
        """
        self.drop_compaction()
        number = self._newest.number + 1
        if self._finished and not self._newest.is_planned:
            self._finished.pop().discard()
        self._next = _Generation.begin(self.path.with_name(f"{self.path.name}.new-{number:020d}"), number)

    def append_compacted(self, records: bytes | bytearray | memoryview, size: int) -> None:
        """Append to the compaction under way what the journal is to hold instead, as `append_many` does.

        Raises:
            DiskFullError: No room; the compaction is dropped, the journal is as it was.
        """
        assert self._next is not None, "no compaction"
        try:
            self._next.append_many(records, size)
        except BaseException:
            self.drop_compaction()
            raise

    def finish_compaction(self) -> None:
        """Put what the compaction wrote, and what was appended meanwhile, in place of what the journal holds.

        On disk the next sync does so.
        """
        made = self._next
        assert made is not None, "no compaction"
        _write_head(made.buf, self.path, made.number, made.end)
        self._next = None
        self._finished.append(made)
        self._is_dirty = True

    def drop_compaction(self) -> None:
        """Give up the compaction under way; harmless where there is none."""
        dropped, self._next = self._next, None
        if dropped is not None:
            dropped.discard()

    @property
    def dirty(self) -> bool:
        """Whether anything was stored that no sync has covered yet."""
        return self._is_dirty

    def begin_sync(self, plan: SyncPlan) -> None:
        """Add to `plan` what forces everything appended so far to disk."""
        if not self._is_dirty:
            return
        self._is_dirty = False
        plan.add_file(self._generation.file.fd, self)
        for generation in self._finished:
            generation.is_planned = True
            plan.add_file(generation.file.fd)
        newest = self._newest
        if not newest.is_named or self._retired:
            plan.add_step(partial(self._settle, newest, self._retired[:]))
        if self._finished:
            plan.add_files_beside([], partial(self._go_on_with, newest))

    def _settle(self, generation: _Generation, retired: list[GrowingFile]) -> None:
        """Let a generation that is on disk have the journal's name; on the thread that syncs."""
        if not generation.is_named:
            if generation.file.path.exists():  # else a plan named it already, and failed afterwards
                generation.file.path.replace(self.path)
            sync_folder(self.path.parent)
        generation.is_named = True
        for file in retired:  # only here: an older sync may have been using them
            self._retired.remove(file)
            file.close()

    def _go_on_with(self, generation: _Generation) -> None:
        """Append to this generation, which is the journal on disk, and no more to those before it."""
        count = self._finished.index(generation)
        for before in self._finished[:count]:
            before.file.path.unlink(missing_ok=True)
        self._retired += [each.file for each in (self._generation, *self._finished[:count])]
        del self._finished[: count + 1]
        generation.file.path = self.path
        self._generation = generation
        self._is_dirty = True  # the next sync lets go of those before

    def sync(self) -> None:
        """Force everything appended so far to disk, here and now."""
        sync_now(self)

    def sync_failed(self) -> None:
        """Let the next plan cover everything again."""
        self._is_dirty = True

    def close(self) -> None:
        """Sync and let go of the files."""
        self.drop_compaction()
        sync_now(self)
        for file in (*self._retired, self._generation.file):
            file.close()


def _write_head(buf: memoryview, path: Path, number: int, compacted_end: int) -> None:
    head = pack_head(JournalHead(journal_name(path), number, compacted_end))
    if buf[:_HEAD_BYTES] != head:
        buf[:_HEAD_BYTES] = head


def _choose(path: Path) -> list[Path]:
    """Let the newest whole file be the one at `path`, which there may not be; return what there is to fall back on."""
    fallbacks = sorted(path.parent.glob(f"{path.name}.old-*"), reverse=True)
    there = [name for name in (path, *fallbacks) if name.exists()]
    for name in there:
        convert_old(name)
    chosen = next((name for name in there if _is_whole(name)), there[0] if there else path)
    if chosen != path:
        LOGGER.warning("journal is not whole, the one before it comes back path=%s from=%s", path, chosen.name)
        chosen.replace(path)
    return fallbacks


def _is_whole(path: Path) -> bool:
    """Return whether all that the compaction wrote is in the file."""
    data = path.read_bytes()
    head = read_head(data, path)
    return head is not None and find_records_end(data, _HEAD_BYTES, len(data)) >= head.compacted_end


def _set_aside(path: Path, file: GrowingFile) -> tuple[GrowingFile, int]:
    """Let a file that is no journal have another name; return a new one, and how many bytes the other holds."""
    size = len(bytes(file.map).rstrip(b"\0"))
    file.close()
    kept = path.with_name(path.name + ".damaged")
    path.replace(kept)
    LOGGER.warning(
        "a file that is not a journal is set aside, an empty journal is begun path=%s kept=%s bytes=%d",
        path,
        kept,
        size,
    )
    made = GrowingFile(path)
    made.map[_HEAD_BYTES - _SEED_BYTES : _HEAD_BYTES] = SEED
    return made, size


def _clear(buf: memoryview, end: int) -> int:
    """Put zeros in place of what is after `end`; return how many bytes were there."""
    lost = 0
    for start in range(end, len(buf), STEP_BYTES):
        block = bytes(buf[start : start + STEP_BYTES]).rstrip(b"\0")
        if block:
            lost = start + len(block) - end
            buf[start : start + len(block)] = bytes(len(block))
    return lost
