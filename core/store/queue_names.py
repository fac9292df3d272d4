"""Every queue's name, and the small number that stands for it: its ref, given in order of first appearance.

The file `index/queues` is only ever appended to, and memory holds the very bytes of it: for each name its length, the
name, and a CRC over these and the CRC before it. So the CRC after name n covers the first n names in their order, and
tells whether an index file belongs to them. `index/queues.copy` has the same bytes: the log can bring back the names of
queues that have records, but only names can bring back the next offsets of those whose records are all gone.

Source: docs/storage-format.md, "Queue names".
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from core import octets
from core.errors import CorruptRecordError, DiskFullError, FlushFailedError, InvalidNameError, QueueLimitError
from core.store.arena import Arena
from core.store.disk import sync_file, sync_folder, write_all
from core.store.sync_plan import SyncPlan

NAME_BYTES_MAX = 1_024  # chosen: the longest are of RocketMQ's retries, 255 bytes and a queue's number
_NAME_BYTES_MAX = NAME_BYTES_MAX
HEADER = b"LMQNAMES\x00\x00\x00\x01"  # magic and version
_HEADER_BYTES = 12  # of HEADER
_OVERHEAD = 6  # length before a name, CRC after it
_AROUND = 5  # so much more than a line break
_LINE_BREAK = 10
_RESYNC_BYTES = 65_536  # how far after a bad entry a good one is looked for: 63 of the longest names
_TEXT_MAX = 0x7FFFFFFF  # places in it are signed numbers of 32 bits
_HASH_MASK = 0x7FFFFFFF
_REF_MASK = 0xFFFFFFFF


class NamesFile:
    """One of the two files of names; `written` bytes of it are known to be right."""

    def __init__(self, path: Path, *, writable: bool) -> None:
        self.path = path
        self.written = 0
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT if writable else os.O_RDONLY, 0o644)

    def read(self) -> bytes:
        """Return all of it."""
        with open(self.fd, "rb", closefd=False) as file:
            return file.read()

    def append(self, data: memoryview) -> None:
        """Write `data` after what is known to be right, and cut off what is there now."""
        if os.fstat(self.fd).st_size > self.written:
            os.ftruncate(self.fd, self.written)
        if data:
            write_all(self.fd, self.path, data, self.written)
            self.written += len(data)

    def close(self) -> None:
        """Let go of the file; a second call does nothing."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def _read_files(files: list[NamesFile]) -> QueueNames:
    """Return the names of the file that has more good ones, and note what is right in each file."""
    data = [file.read() for file in files]
    names = QueueNames(files)
    damaged_at = names.read_text(data[0])
    if len(data) > 1 and data[1] != data[0]:
        other = QueueNames(files)
        other_damaged_at = other.read_text(data[1])
        if other_damaged_at >= 0:
            names.restored_path = files[1].path
        elif other.top > names.top:
            other.restored_path = files[0].path if damaged_at >= 0 else None
            names = other
            damaged_at = -1
    if damaged_at >= 0:
        raise CorruptRecordError(damaged_at, "damaged queue names")
    for file, found in zip(files, data, strict=True):
        size = min(len(found), names.top)
        file.written = size if names.starts_with(found, size) else 0
    return names


class QueueNames:
    """The names of all queues. Made by `open`."""

    def __init__(self, files: list[NamesFile]) -> None:
        self.files = files
        self.count = 0
        self.count_max = _TEXT_MAX
        self.spared = b""
        self.restored_path: Path | None = None  # which of the two files was damaged, and is made good by the other
        self.writes = 1  # to the files, with what was there at the start
        self.synced = 0  # so many of them are on disk
        self.is_named = False  # the folder that names the files was synced
        self.text_memory = Arena(4_096)
        self.start_memory = Arena(4_096)
        self.slot_memory = Arena(4_096)
        self.mask = 511
        self.text = self.text_memory.octets()  # the files' bytes
        self.starts = self.start_memory.ints()  # by ref: where its entry starts in `text`
        self.slots = self.slot_memory.longs()  # hash table: ref + 1 under 31 bits of the hash; 0 is empty
        self.top = _HEADER_BYTES
        for index in range(_HEADER_BYTES):
            self.text[index] = HEADER[index]

    @classmethod
    def open(cls, path: Path, *, writable: bool = True) -> QueueNames:
        """Read the two files, or begin new ones; a torn tail is cut off, and a damaged file made good by the other.

        Args:
            path: The first file.
            writable: False leaves the files as they are, also a torn tail; the first must be there.

        Raises:
            CorruptRecordError: Both are damaged, not only at the end; its place is the byte in the file.
            DiskFullError: No room for new ones.
        """
        copy = path.with_name(path.name + ".copy")
        files = [NamesFile(path, writable=writable)]
        try:
            if writable or copy.exists():
                files.append(NamesFile(copy, writable=writable))
            names = _read_files(files)
            if writable:
                names.restore_files()
        except BaseException:
            for file in files:
                file.close()
            raise
        return names

    def read_text(self, data: bytes) -> int:
        """Take over the names in a file's bytes; return where they are damaged, or -1."""
        size = len(data)
        if size < _HEADER_BYTES:
            return -1
        self.grow_text(size)
        octets.copy_bytes(self.text, 0, data, 0, size)
        if data[:_HEADER_BYTES] != HEADER:
            return 0
        self.parse(size)
        return self.top if self.find_entry(self.top + 1, size) >= 0 else -1

    def grow_text(self, size: int) -> None:
        """Make `text` at least `size` bytes."""
        if size > _TEXT_MAX:
            raise MemoryError("too many queue names")
        if size > self.text_memory.size:
            self.text = Arena(1).octets()
            try:
                self.text_memory.grow(size)
            finally:
                self.text = self.text_memory.octets()

    def check_entry(self, start: int, end: int) -> int:
        """Return the size of the entry at `start`, or 0 where [start, end) begins with none."""
        if start + _OVERHEAD > end:
            return 0
        size = octets.read_u16(self.text, start) + _OVERHEAD
        if size == _OVERHEAD or size > _NAME_BYTES_MAX + _OVERHEAD or start + size > end:
            return 0
        crc = octets.crc32(self.text, start - 4, start + size - 4)
        return size if octets.read_u32(self.text, start + size - 4) == crc else 0

    def find_entry(self, start: int, end: int) -> int:
        """Return where the first good entry at or soon after `start` is, or -1."""
        end = min(end, start + _RESYNC_BYTES)
        while start < end:
            if self.check_entry(start, end) > 0:
                return start
            start += 1
        return -1

    def parse(self, end: int) -> None:
        """Number the names from `top` on, as far as their CRCs hold."""
        size = self.check_entry(self.top, end)
        while size > 0:
            self.number(octets.read_bytes(self.text, self.top + 2, self.top + size - 4))
            self.top += size
            size = self.check_entry(self.top, end)

    def number(self, key: bytes) -> None:
        """Give the next ref to the entry at `top`, which holds `key`."""
        if 4 * (self.count + 1) > self.start_memory.size:
            self.starts = Arena(1).ints()
            try:
                self.start_memory.grow(4 * (self.count + 1))
            finally:
                self.starts = self.start_memory.ints()
        if 4 * (self.count + 1) > 3 * (self.mask + 1):
            self.widen()
        self.count += 1
        self.put_slot((hash(key) & _HASH_MASK) << 32 | self.count)
        self.starts[self.count - 1] = self.top

    def put_slot(self, value: int) -> None:
        """Put a value into the first free slot for its hash."""
        slot = value >> 32 & self.mask
        while self.slots[slot]:
            slot = (slot + 1) & self.mask
        self.slots[slot] = value

    def widen(self) -> None:
        """Double the hash table."""
        narrow = self.slots
        self.slot_memory = Arena(16 * (self.mask + 1))
        self.slots = self.slot_memory.longs()
        self.mask = 2 * self.mask + 1
        for slot in range((self.mask + 1) // 2):
            if narrow[slot]:
                self.put_slot(narrow[slot])

    def find(self, key: bytes) -> int:
        """Return the ref of a name, or -1."""
        view = key
        size = len(key)
        tag = hash(key) & _HASH_MASK
        slot = tag & self.mask
        found = self.slots[slot]
        while found:
            if found >> 32 == tag:
                ref = (found & _REF_MASK) - 1
                start = self.starts[ref]
                if octets.read_u16(self.text, start) == size and octets.equal_bytes(
                    self.text, start + 2, view, 0, size
                ):
                    return ref
            slot = (slot + 1) & self.mask
            found = self.slots[slot]
        return -1

    def limit(self, count_max: int, spared: bytes) -> None:
        """Take no new names from now on where there are `count_max`, but for `spared`."""
        self.count_max = count_max
        self.spared = spared

    def intern(self, key: bytes) -> int:
        """Return the ref of a name, a new one where it has none yet.

        Raises:
            InvalidNameError: It is empty or longer than 1,024 bytes.
            QueueLimitError: It is new, and there are too many.
        """
        ref = self.find(key)
        if ref >= 0:
            return ref
        size = len(key)
        if size == 0 or size > _NAME_BYTES_MAX:
            raise InvalidNameError(key[:64].decode("utf-8", "replace"), "1 to 1,024 bytes")
        if self.count >= self.count_max and key != self.spared:
            raise QueueLimitError(self.count_max)
        start = self.top
        end = start + size + _OVERHEAD
        self.grow_text(end)
        octets.write_u16(self.text, start, size)
        octets.copy_bytes(self.text, start + 2, key, 0, size)
        octets.write_u32(self.text, end - 4, octets.crc32(self.text, start - 4, end - 4))
        self.number(key)
        self.top = end
        return self.count - 1

    def key(self, ref: int) -> bytes:
        """Return the name of a ref."""
        if ref < 0 or ref >= self.count:
            raise IndexError("no such queue")
        start = self.starts[ref] + 2
        return octets.read_bytes(self.text, start, start + octets.read_u16(self.text, start - 2))

    def lines(self, first: int, end: int, prefix: bytes) -> bytes:
        """Return the names of the refs from `first` to before `end` without their prefix, a line break before each.

        Returns:
            Nothing where one of them is not there, has another prefix or a line break.
        """
        view = prefix
        skipped = len(prefix)
        if first < 0 or first >= end or end > self.count:
            return b""
        start = self.starts[first]
        until = self.top if end == self.count else self.starts[end]
        found = bytearray(until - start - (end - first) * _AROUND)
        lines = memoryview(found)
        pos = 0
        while start < until:
            size = octets.read_u16(self.text, start) - skipped
            start += 2
            if size < 0 or not octets.equal_bytes(self.text, start, view, 0, skipped):
                return b""
            lines[pos] = _LINE_BREAK
            octets.copy_bytes(lines, pos + 1, self.text, start + skipped, size)
            pos += 1 + size
            start += skipped + size + _AROUND - 1
        told = bytes(found[:pos])
        return told if told.count(b"\n") == end - first else b""

    def fingerprint(self, count: int) -> int:
        """Return a CRC over the first `count` names in their order."""
        if count < 0 or count > self.count:
            raise IndexError("not that many names")
        end = self.top if count == self.count else self.starts[count]
        return octets.read_u32(self.text, end - 4)

    def starts_with(self, data: bytes, size: int) -> bool:
        """Return whether the first `size` bytes are these."""
        return bool(octets.equal_bytes(self.text, 0, data, 0, size))

    def restore_files(self) -> None:
        """Make both files equal to what is held here."""
        for file in self.files:
            file.append(memoryview(self.text)[file.written : self.top])

    def write_out(self) -> None:
        """Append the names that the files do not hold yet to them, by one write each.

        Raises:
            DiskFullError: No room; a file is as before.
        """
        for file in self.files:
            if file.written < self.top:
                try:
                    file.append(memoryview(self.text)[file.written : self.top])
                finally:
                    self.writes += 1  # after the write: a sync that began before it does not cover it

    def sync(self) -> None:
        """Force what was written out before the call to disk; may run on several threads.

        Raises:
            FlushFailedError: The disk refused.
        """
        writes = self.writes
        if writes == self.synced:
            return
        for file in self.files:
            sync_file(file.fd)
        if not self.is_named:
            sync_folder(self.files[0].path.parent)
            self.is_named = True
        self.note_synced(writes)

    def note_synced(self, writes: int) -> None:
        """Say that so many writes to the files are on disk."""
        self.synced = max(self.synced, writes)

    @property
    def dirty(self) -> bool:
        """Whether there are names that no sync has covered yet."""
        return self.writes != self.synced or self.files[len(self.files) - 1].written < self.top  # it is written last

    def begin_sync(self, plan: SyncPlan) -> None:
        """Add to `plan` what forces all names to disk; where there is no room for them, those that were written out.

        What else a plan keeps tells queues by their names, so it may come before these files or after them.
        """
        try:
            self.write_out()
        except DiskFullError:
            pass
        except OSError as error:
            plan.add_step(partial(_refuse, error))
        if self.writes == self.synced:
            return
        if self.is_named:
            plan.add_files_beside([file.fd for file in self.files], partial(self.note_synced, self.writes))
        else:
            plan.add_step(self.sync)

    def sync_failed(self) -> None:
        """Do nothing: what was covered is counted when it was."""

    def close(self) -> None:
        """Let go of the files, without writing; a second call does nothing."""
        for file in self.files:
            file.close()


def _refuse(error: OSError) -> None:
    raise FlushFailedError(error.strerror or str(error)) from error
