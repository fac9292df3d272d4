"""The segment files of one log, in order: found by offset, mapped when read, made ahead of the writer, dropped."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections import OrderedDict, deque
from pathlib import Path

from core import octets
from core.errors import DiskFullError, StoreError
from core.store.disk import free_bytes, sync_file, sync_folder
from core.store.layout import NEXT_SEGMENT_FILE, RECORD_BYTES_MIN, STORE_MS_AT, segment_name, segment_paths
from core.store.mapped_file import MappedFile, disk_bytes
from core.store.record import record_size

TRIMMED_BYTES_MIN = 1 << 20  # less room than that at a segment's end is not worth a system call
_SYS_FLAG_AT = 36
_BORN_V6 = 0x10


class Segment:
    """One file of the log: physical offsets [base, base + size). `disk_bytes` is less where its end was given back."""

    def __init__(self, base: int, size: int, path: Path, disk_bytes: int) -> None:
        self.disk_bytes = disk_bytes
        self.first_store_ms = -1  # once it is known
        self.base = base
        self.size = size
        self.path = path

    @property
    def end(self) -> int:
        """The physical offset after the last byte of the file."""
        return self.base + self.size


def first_store_ms(view: memoryview) -> int:
    """Return the store timestamp of the first record of a segment, or -1 where there is none."""
    if len(view) < RECORD_BYTES_MIN or record_size(view, 0) <= 0:
        return -1
    return octets.read_i64(view, STORE_MS_AT + (12 if octets.read_u32(view, _SYS_FLAG_AT) & _BORN_V6 else 0))


def _make_segment(base: int, path: Path) -> Segment:
    status = path.stat()
    return Segment(base, status.st_size, path, disk_bytes(status))


class Segments:
    """The segments in `folder`, oldest first.

    Args:
        folder: The commit log's folder.
        spare: Folder of the same file system, where the next segment is prepared.
        segment_bytes: Size of new segments; older ones may differ.
        mapped_max: How many segments stay mapped for readers.
    """

    def __init__(self, folder: Path, spare: Path, segment_bytes: int, mapped_max: int) -> None:
        self.folder = folder
        self.segment_bytes = segment_bytes
        self._spare = spare
        self._spare_numbers = itertools.count(1)
        self._next: MappedFile | None = None
        self._is_making = False  # the next one, in room that was there
        self._mapped_max = mapped_max
        self._mapped: OrderedDict[int, MappedFile] = OrderedDict()
        self.newest: MappedFile | None = None  # mapped for writing
        self.unsynced: list[MappedFile] = []  # full ones, until the next flush takes them
        self._dropped: deque[Path] = deque()  # files that are to be deleted
        self._untrimmed: list[tuple[Segment, MappedFile, int]] = []  # full ones, and where their records end
        self.first_base = 0  # where an empty log begins
        self.load()
        for path in spare.glob(f"{NEXT_SEGMENT_FILE}*"):  # left by a killed process
            path.unlink()

    def load(self) -> None:
        """Take the files that are there for the log; an empty one was made, but its room was never taken."""
        found = [_make_segment(base, path) for base, path in segment_paths(self.folder)]
        self.segments = [segment for segment in found if segment.size]
        for segment in found:
            if not segment.size:
                segment.path.unlink()

    @property
    def first_offset(self) -> int:
        """The first physical offset that is kept."""
        return self.segments[0].base if self.segments else 0

    @property
    def newest_base(self) -> int:
        """The physical offset at which the newest segment starts."""
        return self._last().base

    def _last(self) -> Segment:
        return self.segments[len(self.segments) - 1]  # compiled code takes no negative index

    @property
    def total_bytes(self) -> int:
        """Room on disk of all segments."""
        sizes = [segment.disk_bytes for segment in self.segments]
        return sum(sizes)

    def find(self, physical_offset: int) -> Segment | None:
        """Return the segment that holds `physical_offset`."""
        at = bisect_right(self.segments, physical_offset, key=lambda segment: segment.base) - 1
        if at < 0 or physical_offset >= self.segments[at].end:
            return None
        return self.segments[at]

    def view(self, base: int) -> memoryview | None:
        """Return the bytes of the segment that starts at `base`, kept mapped; None where dropped."""
        if self.newest is not None and base == self._last().base:
            return self.newest.view
        file = self._mapped.get(base)
        if file is not None:
            self._mapped.move_to_end(base)
            return file.view
        segment = self.find(base)
        if segment is None or segment.base != base:
            return None
        file = self._map(base, MappedFile.open(segment.path, is_writable=False))
        file.close()  # the mapping alone is read
        return file.view

    def first_store_ms(self, segment: Segment) -> int:
        """Return the store timestamp of a segment's first record, or -1 where there is none yet."""
        if segment.first_store_ms < 0:
            view = self.view(segment.base)
            segment.first_store_ms = first_store_ms(view) if view is not None else -1
        return int(segment.first_store_ms)

    def _map(self, base: int, file: MappedFile) -> MappedFile:
        self._mapped[base] = file
        while len(self._mapped) > self._mapped_max:
            self._mapped.popitem(last=False)
        return file

    def open_newest(self) -> MappedFile | None:
        """Map the newest segment for writing; None in an empty log."""
        if self.segments:
            self.newest = MappedFile.open(self._last().path, is_writable=True)
        return self.newest

    def prepare(self) -> None:
        """Take the room of the next segment on disk, ahead of its use.

        Raises:
            DiskFullError: There is no room; `roll` will try again.
        """
        if self._next is not None:
            return
        if self.lacks_room():
            raise DiskFullError(str(self._spare))
        self._is_making = True
        try:
            self._next = self._make_spare()
        finally:
            self._is_making = False

    def lacks_room(self) -> bool:
        """Return whether the next segment is neither ready nor being made, and finds no room; any thread may ask."""
        return self._next is None and not self._is_making and free_bytes(self._spare) < self.segment_bytes

    def _make_spare(self) -> MappedFile:
        """Make a file with a name of its own: two threads may each be making one, or using the one before."""
        path = self._spare / f"{NEXT_SEGMENT_FILE}{next(self._spare_numbers)}"
        return MappedFile.create(path, self.segment_bytes)

    @property
    def is_prepared(self) -> bool:
        """Whether `roll` will find a segment ready."""
        return self._next is not None

    def populate_next(self, start: int, end: int) -> bool:
        """Have the pages of [start, end) of the prepared segment ready; False where none is prepared."""
        file = self._next
        if file is None:
            return False
        if start < min(end, file.size):
            file.populate(start, min(end, file.size))
        return True

    def roll(self, used_bytes: int) -> Segment:
        """Start another segment after the newest, of which `used_bytes` are used; it stays mapped for its readers.

        Raises:
            DiskFullError: There is no room; nothing has changed.
        """
        file, self._next = self._next, None
        if file is None:
            file = self._make_spare()
        base = self._last().end if self.segments else self.first_base
        segment = Segment(base, file.size, self.folder / segment_name(base), file.size)
        file.path.rename(segment.path)
        file.path = segment.path
        if self.newest is not None:
            self._map(self._last().base, self.newest)
            self._untrimmed.append((self._last(), self.newest, used_bytes))
            self.unsynced.append(self.newest)
        self.segments.append(segment)
        self.newest = file
        return segment

    def trim(self) -> None:
        """Let go of full segments' pages, and of the room after their records; may run on another thread."""
        while self._untrimmed:
            segment, file, used_bytes = self._untrimmed.pop()
            file.let_go(0, file.size)
            if file.size - used_bytes >= TRIMMED_BYTES_MIN:
                file.punch(used_bytes)
                segment.disk_bytes = file.disk_bytes

    def drop_oldest(self) -> Segment:
        """Take the oldest segment off the log; never the newest. Views that others hold stay good.

        `delete_dropped` deletes its file.
        """
        if len(self.segments) <= 1:
            raise StoreError("the newest segment is never dropped")
        segment = self.segments.pop(0)
        self._mapped.pop(segment.base, None)
        self._dropped.append(segment.path)
        return segment

    def delete_dropped(self) -> None:
        """Delete the files of dropped segments, the oldest first; may run on another thread.

        Each is gone for good before the next one goes: a power cut that brought back one without those after it would
        leave a hole in the log.

        Raises:
            FlushFailedError: The disk refused.
        """
        while self._dropped:
            self._dropped[0].unlink(missing_ok=True)
            sync_folder(self.folder)
            self._dropped.popleft()

    def sync_from(self, position: int) -> None:
        """Force what a process before this one wrote at or after `position` to disk, and the names of all segments.

        Raises:
            DataFolderUnusableError: A segment cannot be opened.
            FlushFailedError: The disk refused.
        """
        for segment in self.segments:
            if segment.end > position:
                file = MappedFile.open(segment.path, is_writable=True)
                sync_file(file.fd)
        sync_folder(self.folder)

    def close(self) -> None:
        """Let go of all mappings, and of the prepared segment."""
        self._mapped.clear()
        self.newest = None
        if self._next is not None:
            self._next.path.unlink(missing_ok=True)
            self._next = None
