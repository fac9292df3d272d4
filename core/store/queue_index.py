"""The index of every queue: the head, the full segments whose files are not written yet, and the sealed files, as one.

Looks an offset of a queue up in whichever part holds it. Parts stand in log order, and so do the offsets of a queue.
"""

from __future__ import annotations

import logging
from array import array
from bisect import bisect_left
from collections.abc import Callable
from pathlib import Path

from core.errors import CorruptRecordError
from core.store.head_index import HeadIndex
from core.store.layout import NEXT_OFFSETS_FILE, segment_name
from core.store.next_offsets import write_next_offsets
from core.store.queue_names import QueueNames
from core.store.sealed_index import SealedIndex, write_sealed_index

LOGGER = logging.getLogger(__name__)
MIN_OFFSETS_CACHED = 100_000  # two numbers and a place in a dict each, 136 bytes: 14 MB


class IndexPart:
    """The entries of one full segment: in memory until its file is written, then in the file.

    The first `names_count` names were in use when it was full; their fingerprint ties the file to them.
    `log_position` is where the log went on then, if `source` knows where every queue stood; else 0.
    """

    def __init__(
        self, base: int, source: HeadIndex | SealedIndex, names_count: int, fingerprint: int, log_position: int = 0
    ) -> None:
        self.base = base
        self.source = source
        self.names_count = names_count
        self.fingerprint = fingerprint
        self.log_position = log_position

    def find(self, queue_ref: int) -> tuple[int, int] | None:
        """Return the first offset and the number of entries that a queue has here."""
        source = self.source
        if isinstance(source, SealedIndex):
            return source.find(queue_ref)
        if queue_ref >= source.queue_count:
            return None
        first = source.first_offset(queue_ref)
        count = source.next_offset(queue_ref) - first
        return (first, count) if count else None


class QueueIndex:
    """All entries of all queues.

    `found_base` and `found_offset` tell where the last `locate` found its entries. `rebuild` gives the entries of a
    segment anew, from the log, where its file turns out to be damaged.
    """

    def __init__(self, folder: Path, names: QueueNames, head: HeadIndex, rebuild: Callable[[int], HeadIndex]) -> None:
        self.folder = folder
        self.names = names
        self.head = head
        self.rebuild = rebuild
        self.head_base = 0
        self.parts: list[IndexPart] = []  # full segments, oldest first
        self.found_base = 0
        self.found_offset = 0
        self._hint = 0
        self._min_offsets: dict[int, int] = {}

    def locate(self, queue_ref: int, offset: int, count_max: int, out_positions: array[int]) -> int:
        """Write the positions of up to `count_max` consecutive entries of one segment; return how many.

        They start at `offset`, or where nothing is kept there at the next offset that is: at `found_offset`, in the
        segment `found_base`. 0 means that nothing is kept from `offset` on.
        """
        head = self.head
        first = head.first_offset(queue_ref)
        if offset >= first:
            self.found_base = self.head_base
            self.found_offset = offset
            return head.lookup(queue_ref, offset, count_max, out_positions)
        parts = self.parts
        at = self._find_part(parts, queue_ref, offset)
        if at < len(parts):
            self._hint = at
            part = parts[at]
            found = part.find(queue_ref)
            assert found is not None
            self.found_base = part.base
            self.found_offset = max(offset, found[0])
            return self._look_up(part, queue_ref, count_max, out_positions)
        self.found_base = self.head_base
        self.found_offset = first
        return head.lookup(queue_ref, first, count_max, out_positions)

    def _look_up(self, part: IndexPart, queue_ref: int, count_max: int, out_positions: array[int]) -> int:
        try:
            return part.source.lookup(queue_ref, self.found_offset, count_max, out_positions)
        except CorruptRecordError as error:
            LOGGER.warning("rebuilding a damaged index base=%d reason=%s", part.base, error.reason)
            part.source = self.rebuild(part.base)
            self._min_offsets.clear()
            return self.locate(queue_ref, self.found_offset, count_max, out_positions)  # the log may have lost some

    def _find_part(self, parts: list[IndexPart], queue_ref: int, offset: int) -> int:
        """Return the number of the first part with an entry of the queue at `offset` or after it."""
        at = self._hint
        if at < len(parts):
            found = parts[at].find(queue_ref)
            if found is not None and found[0] <= offset < found[0] + found[1]:
                return at
        best = len(parts)
        for at in range(len(parts) - 1, -1, -1):
            found = parts[at].find(queue_ref)
            if found is None:
                continue
            if found[0] + found[1] <= offset:
                break
            best = at
            if found[0] <= offset:
                break
        return best

    def min_offset(self, queue_ref: int) -> int:
        """Return the first offset of a queue that is kept; its next offset where none is."""
        known = self._min_offsets.get(queue_ref)
        if known is not None:
            return known
        found = self._first_kept(queue_ref)
        if len(self._min_offsets) >= MIN_OFFSETS_CACHED:
            self._min_offsets.clear()
        self._min_offsets[queue_ref] = found
        return found

    def first_offsets(self, start: int, out: array[int]) -> int:
        """Fill `out` with what `min_offset` says of the queues from `start` on; return how many there were."""
        size = self.head.export_first_offsets(start, out)
        for part in reversed(self.parts):  # the oldest one has the last word
            part.source.put_first_offsets(start, size, out)
        return size

    def _first_kept(self, queue_ref: int) -> int:
        for part in self.parts:
            found = part.find(queue_ref)
            if found is not None:
                return found[0]
        return self.head.first_offset(queue_ref)

    def seal_head(self, base: int, next_base: int) -> None:
        """Set the entries of the full segment `base` apart; the head goes on empty, for the segment `next_base`."""
        self.names.write_out()
        self.parts = [*self.parts, self.make_part(base, self.head.detach(), next_base)]
        self.head_base = next_base

    def make_part(self, base: int, entries: HeadIndex, log_position: int = 0) -> IndexPart:
        """Return the part of a full segment, with all names that there are now; they must have been written out."""
        count = self.names.count
        return IndexPart(base, entries, count, self.names.fingerprint(count), log_position)

    def write_full(self, flushed_until: int) -> None:
        """Write the files of full segments that have none yet; may run on another thread.

        Args:
            flushed_until: So far the log is on disk. No file may say more than the log will after a power cut.

        Raises:
            DiskFullError: No room; the entries stay in memory.
            FlushFailedError: The disk refused.
        """
        for part in self.parts:
            source = part.source
            if isinstance(source, HeadIndex) and part.log_position <= flushed_until:
                self.names.sync()
                if part.log_position:
                    self.write_next_offsets(source, part.names_count, part.fingerprint, part.log_position)
                path = self.folder / segment_name(part.base)
                write_sealed_index(path, source, part.base, part.names_count, part.fingerprint)
                part.source = SealedIndex.open(path)

    def write_next_offsets(self, head: HeadIndex, names_count: int, fingerprint: int, log_position: int) -> None:
        """Write where every queue stands when the log ends at `log_position`: it outlives the records before that."""
        write_next_offsets(self.folder / NEXT_OFFSETS_FILE, head, names_count, fingerprint, log_position)

    def sealed_part(self, base: int) -> IndexPart | None:
        """Return the part of the segment `base` where its entries are in a file."""
        at = bisect_left(self.parts, base, key=lambda part: part.base)
        if at < len(self.parts) and self.parts[at].base == base and isinstance(self.parts[at].source, SealedIndex):
            return self.parts[at]
        return None

    def replace(self, part: IndexPart, source: SealedIndex, reduced: SealedIndex) -> bool:
        """Let a part have the entries of `reduced` from now on; False where it has others than `source` by now.

        Readers move past what is gone as past a segment that is.
        """
        if part.source is not source or part not in self.parts:
            return False
        part.source = reduced
        self._min_offsets.clear()
        return True

    def drop_oldest(self) -> bool:
        """Forget the oldest part and delete its file; False where the file is not written yet."""
        if not self.parts or not isinstance(self.parts[0].source, SealedIndex):
            return False
        part = self.parts[0]
        self.parts = self.parts[1:]
        self._hint = 0
        self._min_offsets.clear()
        (self.folder / segment_name(part.base)).unlink(missing_ok=True)
        return True

    def close(self) -> None:
        """Let go of the files."""
        for part in self.parts:
            if isinstance(part.source, SealedIndex):
                part.source.close()
        self.parts = []
