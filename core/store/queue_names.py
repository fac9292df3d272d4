"""Every queue's name, and the small number that stands for it: its ref, given in order of first appearance.

The file `index/queues` is only ever appended to, and memory holds the very bytes of it: for each name its length, the
name, and a CRC over these and the CRC before it. So the CRC after name n covers the first n names in their order, and
tells whether an index file belongs to them.
"""

from __future__ import annotations

import os
from pathlib import Path

from core import octets
from core.errors import CorruptRecordError, InvalidNameError
from core.store.arena import Arena
from core.store.disk import sync_file, sync_folder, write_all

NAME_BYTES_MAX = 1_024
_NAME_BYTES_MAX = NAME_BYTES_MAX
HEADER = b"LMQNAMES\x00\x00\x00\x01"  # magic and version
_HEADER_BYTES = 12
_OVERHEAD = 6  # length before a name, CRC after it
_RESYNC_BYTES = 65_536  # how far after a bad entry a good one is looked for
_TEXT_MAX = 0x7FFFFFFF


class QueueNames:
    """The names of all queues. Made by `open`."""

    def __init__(self, path: Path, fd: int) -> None:
        self.path = path
        self.fd = fd
        self.count = 0
        self.written = 0  # bytes of `text` that the file holds
        self.is_dirty = True
        self.is_named = False  # the folder that names the file was synced
        self.text_memory = Arena(4_096)
        self.start_memory = Arena(4_096)
        self.slot_memory = Arena(4_096)
        self.mask = 1_023
        self.map_all()
        self.top = _HEADER_BYTES
        for index in range(_HEADER_BYTES):
            self.text[index] = HEADER[index]

    def map_all(self) -> None:
        """Take fresh views of the three arenas."""
        self.text = self.text_memory.octets()  # the file's bytes
        self.starts = self.start_memory.ints()  # by ref: where its entry starts in `text`
        self.slots = self.slot_memory.ints()  # hash table of ref + 1; 0 is empty

    @classmethod
    def open(cls, path: Path, *, writable: bool = True) -> QueueNames:
        """Read the file, or begin a new one; a torn tail is cut off.

        Args:
            path: The file.
            writable: False leaves the file as it is, also its torn tail; it must be there.

        Raises:
            CorruptRecordError: Damage that is not at the end; its place is the byte in the file.
        """
        fd = os.open(path, os.O_RDWR | os.O_CREAT if writable else os.O_RDONLY, 0o644)
        names = cls(path, fd)
        try:
            names.load(writable=writable)
        except BaseException:
            names.close()
            raise
        return names

    def load(self, *, writable: bool) -> None:
        """Take over the file's names; called once, by `open`."""
        size = os.fstat(self.fd).st_size
        self.grow_text(size)
        self.read_text(size)
        self.written = self.top if size >= _HEADER_BYTES else 0
        if writable and size > self.written:
            os.ftruncate(self.fd, self.written)

    def read_text(self, size: int) -> None:
        """Take over the names of the file, up to a torn tail."""
        if size < _HEADER_BYTES:
            return
        at = 0
        rest = memoryview(self.text)[:size]
        while at < size:
            count = os.preadv(self.fd, [rest[at:]], at)
            if count == 0:
                raise CorruptRecordError(at, "the file of queue names shrank while it was read")
            at += count
        if bytes(rest[:_HEADER_BYTES]) != HEADER:
            raise CorruptRecordError(0, "not a file of queue names of this version")
        self.parse(size)
        if self.find_entry(self.top + 1, size) >= 0:
            raise CorruptRecordError(self.top, "damaged queue name")

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
            self.number(bytes(self.text[self.top + 2 : self.top + size - 4]))
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
        if 3 * (self.count + 1) > 2 * (self.mask + 1):
            self.widen()
        slot = hash(key) & self.mask
        while self.slots[slot]:
            slot = (slot + 1) & self.mask
        self.slots[slot] = self.count + 1
        self.starts[self.count] = self.top
        self.count += 1

    def widen(self) -> None:
        """Double the hash table."""
        self.slot_memory = Arena(8 * (self.mask + 1))
        self.slots = self.slot_memory.ints()
        self.mask = 2 * self.mask + 1
        for ref in range(self.count):
            slot = hash(self.key(ref)) & self.mask
            while self.slots[slot]:
                slot = (slot + 1) & self.mask
            self.slots[slot] = ref + 1

    def find(self, key: bytes) -> int:
        """Return the ref of a name, or -1."""
        view = key
        size = len(key)
        slot = hash(key) & self.mask
        found = self.slots[slot]
        while found:
            start = self.starts[found - 1]
            if octets.read_u16(self.text, start) == size and octets.equal_bytes(self.text, start + 2, view, 0, size):
                return found - 1
            slot = (slot + 1) & self.mask
            found = self.slots[slot]
        return -1

    def intern(self, key: bytes) -> int:
        """Return the ref of a name, a new one where it has none yet.

        Raises:
            InvalidNameError: It is empty or longer than 1,024 bytes.
        """
        ref = self.find(key)
        if ref >= 0:
            return ref
        size = len(key)
        if size == 0 or size > _NAME_BYTES_MAX:
            raise InvalidNameError(key[:64].decode("utf-8", "replace"), "1 to 1,024 bytes")
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
        return bytes(self.text[start : start + octets.read_u16(self.text, start - 2)])

    def fingerprint(self, count: int) -> int:
        """Return a CRC over the first `count` names in their order."""
        if count < 0 or count > self.count:
            raise IndexError("not that many names")
        end = self.top if count == self.count else self.starts[count]
        return octets.read_u32(self.text, end - 4)

    def write_out(self) -> None:
        """Append the names that the file does not hold yet to it.

        Raises:
            DiskFullError: No room; the file is as before.
        """
        if self.written < self.top:
            write_all(self.fd, self.path, memoryview(self.text)[self.written : self.top], self.written)
            self.written = self.top
            self.is_dirty = True

    def sync(self) -> None:
        """Force what was written out before the call to disk; may run on another thread.

        Raises:
            FlushFailedError: The disk refused.
        """
        if not self.is_dirty:
            return
        self.is_dirty = False
        try:
            sync_file(self.fd)
            if not self.is_named:
                sync_folder(self.path.parent)
                self.is_named = True
        except BaseException:
            self.is_dirty = True
            raise

    def close(self) -> None:
        """Let go of the file, without writing; a second call does nothing."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
