"""The key files of full segments: made beside the writer, in small steps, when a segment's own index is written.

They follow from the log: one that is missing or damaged is made again, and until then the segment has to be read. One
whose segment is gone is deleted. `work` and what it calls run on the thread that makes room ahead of the writer; the
rest is the owner's.
"""

from __future__ import annotations

import logging
from array import array
from collections.abc import Iterator
from pathlib import Path

from core.errors import CorruptRecordError, DataFolderUnusableError, DiskFullError
from core.message import KEYED_MAX, KeySearch, StoredBatch
from core.store.key_index import (
    BYTES_AN_ENTRY_MIN,
    KeyColumns,
    KeyIndex,
    hash_key,
    write_key_index,
    write_unknown_keys,
)
from core.store.layout import COMMIT_LOG_FOLDER, KEYS_FOLDER, SEGMENT_NAME_DIGITS, segment_name, segment_paths
from core.store.log_scan import LogScan
from core.store.mapped_file import MappedFile
from core.store.queue_index import IndexPart, QueueIndex
from core.store.sealed_index import SealedIndex
from core.store.steps import advance

LOGGER = logging.getLogger(__name__)

STEP_RECORDS = 1_024  # about 0.2 ms
STEPS_MAX = 4  # of one `work` while little is written: 1 ms together
_POPULATED_BYTES = 1 << 20  # read in by one call, during which others have the interpreter
_BUSY_BYTES = 256 << 10  # more than that from one `work` to the next: the writer needs the processor
_POSITION_MAX = 1 << 31  # positions in a segment are below
_REST = 1_000  # calls of `work` after a full disk


class KeyIndexes:
    """Says which messages of a queue may have a key, as far as full segments' files tell it.

    Args:
        data_dir: The data folder.
        index: The queues' entries.
    """

    def __init__(self, data_dir: Path, index: QueueIndex) -> None:
        self._folder = data_dir / KEYS_FOLDER
        self._log_folder = data_dir / COMMIT_LOG_FOLDER
        self._index = index
        self._open: dict[int, KeyIndex] = {}  # by base
        self._made: set[int] = set()
        self._given_up: set[int] = set()
        self._first_base = -1  # of the segments when files were looked through last
        self._steps: Iterator[None] | None = None
        self._rest = 0
        self._seen_until = 0
        self._positions = array("i", bytes(4 * KEYED_MAX))
        self._remove_strays()

    def _remove_strays(self) -> None:
        """Learn which files there are; those of no full segment, and those not ended, go."""
        full = {part.base for part in self._index.parts}
        self._made = {base for base, _ in segment_paths(self._folder) if base in full}
        kept = {segment_name(base) for base in self._made}
        for path in list(self._folder.iterdir()):
            if path.name not in kept and path.name[:SEGMENT_NAME_DIGITS].isdecimal():
                path.unlink()

    # Find

    def find(self, search: KeySearch) -> bool:
        """Answer a search, where the part of the queue at its side is told; see `Engine.find_keyed`."""
        part = self._find_part(search.queue_ref, search.end - 1 if search.is_back else search.first)
        found = part.find(search.queue_ref) if part is not None else None
        keys = self._get(part.base) if part is not None else None
        if part is None or found is None or keys is None or not keys.is_whole:
            return False
        source = part.source
        assert isinstance(source, SealedIndex)
        try:
            return self._look(source, keys, search, (max(search.first, found[0]), min(search.end, sum(found))))
        except CorruptRecordError as error:
            LOGGER.warning("keys of a segment are not looked up base=%d reason=%s", part.base, error.reason)
            self._forget(part.base)
            return False

    def _find_part(self, queue_ref: int, offset: int) -> IndexPart | None:
        """Return the part that has an offset of a queue, where its entries are in a file."""
        for part in reversed(self._index.parts):
            found = part.find(queue_ref)
            if found is not None and found[0] <= offset:
                is_in = offset < found[0] + found[1] and isinstance(part.source, SealedIndex)
                return part if is_in else None
        return None

    def _look(self, source: SealedIndex, keys: KeyIndex, search: KeySearch, stretch: tuple[int, int]) -> bool:
        """Look through entries of one file; what of the queue's stretch lies at the positions found is the answer."""
        queue_ref, positions, (first, end) = search.queue_ref, self._positions, stretch
        start = source.find_from(queue_ref, first, 0)
        last = source.find_from(queue_ref, end - 1, 0)
        begin = start[0] if start is not None else 0
        stop = last[0] + 1 if last is not None and last[1] < end else _POSITION_MAX
        for k in range(keys.find(hash_key(search.key), begin, stop, search.is_back, positions)):
            at = source.find_from(queue_ref, first, positions[k])
            if at is not None and at[0] == positions[k] and at[1] < end:
                search.found(at[1])
        search.bound = first if search.is_back else end
        if search.is_back and keys.seen_from > begin:
            at = source.find_from(queue_ref, first, keys.seen_from)
            if at is None or at[1] >= end:  # its last records are lost
                search.count = 0
                return False
            search.bound = at[1]
        elif not search.is_back and keys.seen_until < stop:
            at = source.find_from(queue_ref, first, keys.seen_until)
            search.bound = at[1] if at is not None else end
        return True

    def _get(self, base: int) -> KeyIndex | None:
        keys = self._open.get(base)
        if keys is None and base in self._made:
            try:
                keys = self._open[base] = KeyIndex.open(self._folder / segment_name(base))
                keys.check(keys.segment_base == base, "of another segment")
            except (CorruptRecordError, OSError) as error:
                LOGGER.warning("making the keys of a segment again base=%d reason=%s", base, error)
                self._forget(base)
                return None
        return keys

    def _forget(self, base: int) -> None:
        """Let go of a file, which is made again if its segment is still there."""
        self._open.pop(base, None)
        (self._folder / segment_name(base)).unlink(missing_ok=True)
        self._made.discard(base)

    # Make

    @property
    def is_making(self) -> bool:
        """Whether `work` has something to do before long; any thread may ask."""
        return self._steps is not None

    def work(self, written_until: int) -> None:
        """Do a few steps, about 0.25 ms of the interpreter's time each, and one only while much is written.

        Args:
            written_until: The end of the log.

        Raises:
            FlushFailedError: The disk refused what must be written.
        """
        if self._rest:
            self._rest -= 1
            return
        is_busy = written_until - self._seen_until > _BUSY_BYTES
        self._seen_until = written_until
        if self._steps is None:
            self._delete_dropped()
            self._steps = self._next_steps()
        try:
            for _ in range(1 if is_busy else STEPS_MAX):
                self._steps = advance(self._steps)
        except DiskFullError:
            self._steps = None
            self._rest = _REST

    def finish(self) -> None:
        """Let go of what was begun, and of all files."""
        self._steps = None
        for keys in self._open.values():
            keys.close()
        self._open = {}

    def _delete_dropped(self) -> None:
        parts = self._index.parts
        first_base = parts[0].base if parts else self._index.head_base
        if first_base != self._first_base:
            self._first_base = first_base
            for base in [base for base in list(self._made) if base < first_base]:  # the owner may forget one
                self._forget(base)

    def _next_steps(self) -> Iterator[None] | None:
        for part in reversed(self._index.parts):
            base = part.base
            if base not in self._made and base not in self._given_up and isinstance(part.source, SealedIndex):
                return self._make(base)
        return None

    def _make(self, base: int) -> Iterator[None]:
        try:
            file = MappedFile.open(self._log_folder / segment_name(base), is_writable=True)  # as `populate` wants it
        except DataFolderUnusableError:  # dropped meanwhile, or it can be read no more: then readers tell
            self._given_up.add(base)
            return
        hashes, positions = array("I"), array("i")
        yield from _collect(file, base, hashes, positions)
        path = self._folder / segment_name(base)
        if len(hashes) * BYTES_AN_ENTRY_MIN > file.size:
            yield from write_unknown_keys(path, base)
        else:
            yield from write_key_index(path, base, hashes, positions)
        self._made.add(base)
        self._first_base = -1  # its segment may have been dropped meanwhile


def _collect(file: MappedFile, base: int, hashes: array[int], positions: array[int]) -> Iterator[None]:
    """Add the words of all messages of a segment, until there are too many for a file."""
    scan, batch, columns = LogScan(), StoredBatch(STEP_RECORDS), KeyColumns()
    end = base + file.size
    at = base
    populated = 0
    while at < end and len(hashes) * BYTES_AN_ENTRY_MIN <= file.size:
        if at - base >= populated:
            file.let_go(0, populated)
            start, populated = populated, min(max(populated, at - base) + _POPULATED_BYTES, file.size)
            file.populate(start, populated)  # meanwhile others have the interpreter
        at = scan.fill(batch, file.view, base, at, end)
        done = 0
        while done < batch.count:
            done = columns.take(batch, done)
            hashes.extend(columns.taken_hashes[: columns.count])
            positions.extend(columns.taken_positions[: columns.count])
        yield
    batch.clear()
    file.let_go(0, file.size)
