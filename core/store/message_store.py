"""The store's front door: open a data folder, append, read queues, wait for durability, retire, close.

One thread owns it. What `begin_flush` returns and `prepare` alone may run on others, one of each at a time.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from pathlib import Path

from core.errors import InvalidNameError, LmqError, StoreClosedError
from core.message import DispatchSet, PublishBatch, Route, StoredBatch
from core.reserved import RESERVED_TOPICS
from core.row_format import FIRST, RowFormat
from core.settings import StoreSettings
from core.store.commit_log import NEVER, CommitLog
from core.store.confirmed import Confirmed
from core.store.data_lock import DataLock
from core.store.disk import free_bytes, sync_folder
from core.store.dispatch_set import DispatchSets
from core.store.flush import Flush, Flusher
from core.store.journal import Journal
from core.store.key_indexes import KeyIndexes
from core.store.layout import INDEX_FOLDER
from core.store.log_scan import LogScan
from core.store.opening import find_definitions, open_log
from core.store.pages_ahead import PagesAhead
from core.store.places import Places
from core.store.puncher import Puncher
from core.store.queue_index import QueueIndex
from core.store.queue_reader import QueueReader
from core.store.recovery import Recovered
from core.store.retention import Retention
from core.store.segments import Segments
from core.store.side_files import Closable, SideFiles, unusable
from core.store.sync_plan import FDS_MAX, Syncable, sync_now
from core.store.table import Definitions, Table


class MessageStore:
    """An open data folder. Made by `open`."""

    def __init__(  # noqa: PLR0917 - called by `open` only
        self,
        data_dir: Path,
        settings: StoreSettings,
        lock: DataLock,
        segments: Segments,
        recovered: Recovered,
        definitions: Definitions,
    ) -> None:
        self.data_dir, self.settings = data_dir, settings
        self.report = recovered.report
        self._lock, self._segments = lock, segments
        self._names = recovered.names
        self._names.limit(settings.queues_max, spared=b"%b/0" % settings.parent_topic.encode())
        self._index: QueueIndex = recovered.index
        self.keys = KeyIndexes(data_dir, self._index)
        self._head = recovered.index.head
        self.definitions = definitions
        self._sets = DispatchSets(recovered.names, settings.inline_dispatch_bytes)
        self._side_files = SideFiles(data_dir)
        self._is_open = True
        self._puncher = Puncher(recovered.names, data_dir / INDEX_FOLDER)
        self.retention = Retention(segments, self._index, self._puncher, settings.retention)
        self._log = CommitLog(segments, self._head, body_bytes_max=settings.message_bytes_max, on_roll=self._on_roll)
        if segments.newest is not None:
            self._log.go_on_at(recovered.position, recovered.store_ms)
        self.pages_ahead = PagesAhead(segments, self._log)
        self._reader = QueueReader(segments, self._index, trusted_from=self._log.written_until())
        self._scan = LogScan()
        self._confirmed = Confirmed.create(data_dir)
        self._flusher = Flusher(self._log, segments, definitions, self._confirmed)

    @classmethod
    def open(cls, data_dir: Path, settings: StoreSettings, *, now_ms: int) -> MessageStore:
        """Lock the folder, made where it is missing, and bring it to a sound state.

        Raises:
            DataFolderInUseError: Another process has it.
            DataFolderUnusableError: It cannot be made, read or written.
            DiskFullError: No room for what recovery must write.
        """
        lock = DataLock.acquire(data_dir)
        try:
            store = cls._open_locked(data_dir, settings, lock)
        except OSError as error:
            lock.release()
            raise unusable(data_dir, error) from error
        except LmqError:
            lock.release()
            raise
        store.note_time(now_ms)
        return store

    @classmethod
    def _open_locked(cls, data_dir: Path, settings: StoreSettings, lock: DataLock) -> MessageStore:
        definitions = Definitions.open(find_definitions(data_dir, settings))
        try:
            segments, recovered = open_log(data_dir, settings, definitions.covered_until)
            store = cls(data_dir, settings, lock, segments, recovered, definitions)
            sync_folder(data_dir)
            store.flush()
            store.confirm()
        except BaseException:
            definitions.let_go()
            raise
        return store

    def confirm(self) -> None:
        """Force to disk how far the log was flushed last.

        Raises:
            FlushFailedError: The disk refused.
        """
        sync_now(self._confirmed)

    def note_time(self, now_ms: int) -> None:
        """Let records from now on be stored no earlier than `now_ms`."""
        self._log.note_time(now_ms)

    # Queues

    def intern_queue(self, key: bytes) -> int:
        """Return the number of a queue, made on first use: a light queue by its name, a topic's as `topic/0`."""
        queue_ref = self._names.intern(key)
        self._head.ensure(self._names.count)
        return queue_ref

    def find_queue(self, key: bytes) -> int:
        """Return the number of a queue, or -1."""
        return self._names.find(key)

    def queue_key(self, queue_ref: int) -> bytes:
        """Return the key that `queue_ref` stands for."""
        return self._names.key(queue_ref)

    def queue_lines(self, first: int, end: int, prefix: bytes) -> bytes:
        """Return keys of numbers, one a line; see `QueueNames.lines`."""
        return self._names.lines(first, end, prefix)

    def queue_count(self) -> int:
        """Return how many queues the folder has seen."""
        return self._names.count

    def min_offset(self, queue_ref: int) -> int:
        """Return the first offset that is kept; `max_offset` where none is."""
        return self._index.min_offset(queue_ref)

    def first_offsets(self, start: int, out: array[int]) -> int:
        """Fill `out` with the first offsets that are kept of the queues from `start` on; return how many there were."""
        return self._index.first_offsets(start, out)

    def max_offset(self, queue_ref: int) -> int:
        """Return the next offset to be given."""
        return self._head.next_offset(queue_ref)

    def make_dispatch(self, names: Sequence[bytes]) -> DispatchSet:
        """Return the set of light queues `names`; equal lists give the same object while a caller holds it.

        Raises:
            InvalidNameError: A name is no light queue's.
        """
        try:
            return self._sets.make(names)
        finally:
            self._head.ensure(self._names.count)

    def make_route(self, topic: bytes, queue_id: int, prefix: bytes, names: Sequence[bytes]) -> Route:
        """Return the route of messages to queue `queue_id` of `topic` and to the light queues `names`.

        Raises:
            InvalidNameError: A name is no light queue's, or the topic is the log's own.
        """
        if topic in RESERVED_TOPICS:
            raise InvalidNameError(topic.decode(), "this topic is the log's own")
        topic_ref = self.intern_queue(b"%b/%d" % (topic, queue_id))
        return Route(topic, queue_id, topic_ref, prefix, self.make_dispatch(names))

    # Write

    @property
    def store_host(self) -> bytes:
        """Address and port that records are stamped with: 4 or 16 bytes, then 4."""
        return bytes(self._log.store_host)

    def set_store_host(self, store_host: bytes) -> None:
        """Stamp records from now on with this address and port."""
        self._log.store_host = store_host

    def append_batch(self, batch: PublishBatch, now_ms: int) -> int:
        """Append every message of `batch` that has a route, in order, and index it; return the new end of the log.

        Raises:
            DiskFullError, MessageTooLargeError: `batch.appended` messages got through, the rest did not.
            StoreClosedError: The store was closed.
        """
        self._check_open()
        return self._log.append_batch(batch, now_ms)

    def keep_together(self, on: bool) -> None:  # noqa: FBT001  # a switch
        """Begin or end a unit of appended messages: see `Engine.keep_together`."""
        self._log.keep_together(on)

    def _check_open(self) -> None:
        if not self._is_open:
            raise StoreClosedError("the store is closed")

    def touch_ahead(self) -> bool:
        """Have what the next message is written to ready; return whether `touch_pages` is wanted."""
        return self._is_open and self._log.touch_ahead()

    def touch_pages(self) -> bool:
        """Have pages of the log ready that lone messages will come to.

        Returns:
            Whether `prepare` is not to wait for its time: the writer comes to the end of what it made ready.
        """
        if not self._is_open:
            return False
        self._log.touch_pages()
        return self.pages_ahead.is_wanted()

    def _on_roll(self, base: int) -> None:
        """A segment is full: its entries are set apart, and `prepare` writes their file."""
        self._index.seal_head(base, self._segments.newest_base)

    @property
    def written_until(self) -> int:
        """The end of the log."""
        return self._log.written_until()

    @property
    def message_count(self) -> int:
        """Messages appended since the store was opened."""
        return self._log.message_count

    @property
    def dispatch_count(self) -> int:
        """Entries that these messages made in light queues; their topics' own queues are not counted."""
        return self._log.dispatch_count

    @property
    def damaged_count(self) -> int:
        """How often a damaged record was met, by recovery and by readers since; none is served."""
        return len(self.report.damaged_at) + self._reader.damaged_count

    def damage_beside(self) -> dict[str, int]:
        """Return how much was damaged beside the log, by kind; each was told in a warning when it was met."""
        return {"queue_names": self.report.names_damaged, **self._side_files.damage()}

    # Read

    def read(self, queue_ref: int, offset: int, into: StoredBatch, count_max: int, bytes_max: int) -> int:
        """Fill `into` with messages of one queue from `offset` on; see `QueueReader.read`."""
        return self._reader.read(queue_ref, offset, into, count_max, bytes_max)

    def read_offsets(self, queue_ref: int, offsets: array[int], count: int, into: StoredBatch) -> int:
        """Fill `into` with chosen messages of one queue; see `QueueReader.read_offsets`."""
        return self._reader.read_offsets(queue_ref, offsets, count, into)

    def read_at(self, physical_offset: int, into: StoredBatch) -> bool:
        """Fill `into` with the one record at `physical_offset`; False where none is served."""
        return self._reader.read_at(physical_offset, into)

    def scan(self, start: int, into: StoredBatch) -> int:
        """Fill `into` with messages in the order of the log, all of one segment; return where to go on.

        They start at the physical offset `start`, where a record starts, or where the log does. None may be given
        before `written_until` is reached.
        """
        segment = self._segments.find(max(start, self._segments.first_offset))
        view = self._segments.view(segment.base) if segment is not None else None
        if segment is None or view is None:
            return self.written_until
        end = min(segment.end, self.written_until)
        return self._scan.fill(into, view, segment.base, max(start, segment.base), end)

    def offset_at_time(self, queue_ref: int, at_ms: int, *, upper: bool = False) -> int:
        """Return the first offset stored at `at_ms` or later; with `upper` the last one stored until then."""
        return self._reader.offset_at_time(queue_ref, at_ms, upper=upper)

    # Wake

    def watch(self, queue_ref: int, on: bool) -> None:  # noqa: FBT001  # a switch
        """Report the growth of a queue in `take_grown`, or no longer."""
        self._head.watch(queue_ref, on)

    def take_grown(self, into: list[int]) -> int:
        """Append the watched queues that grew since the last call to `into`, each once; return how many."""
        return self._head.take_grown(into)

    # Durability

    @property
    def covered_until(self) -> int:
        """The end of that part of the log whose records have made their changes to the tables."""
        return min(self.definitions.covered_until, self.written_until)

    def note_covered(self) -> None:
        """Say that all records so far have made their changes to the tables."""
        self.definitions.note_covered(self.written_until)

    def needs_commit(self) -> bool:
        """Return whether a change of a table waits for a flush: a killed process would lose it."""
        return self.definitions.dirty

    @property
    def flushed_until(self) -> int:
        """The end of what is on disk for certain."""
        return self._flusher.flushed_until

    def is_flushed(self, until: int) -> bool:
        """Return whether a flush has covered the log until `until`."""
        flushed_until = self._flusher.flushed_until
        return flushed_until >= until

    def needs_flush(self) -> bool:
        """Return whether anything was written that no flush has covered yet."""
        is_safe = self.is_flushed(self._log.written_until())
        return not is_safe or self.definitions.dirty or self._side_files.dirty or self._names.dirty

    def begin_flush(self, *, is_all: bool = True, fds_max: int = FDS_MAX) -> Flush:
        """Return what forces all that was written so far to disk; any thread may, one flush at a time; see `end_flush`.

        Args:
            is_all: Not the log alone.
            fds_max: How many files the flush may name; those after them are synced by its steps.
        """
        return self._flusher.begin(self._all() if is_all else None, fds_max)

    def end_flush(self) -> None:
        """Say that what `begin_flush` returned was done; else `fail_flush` is called."""
        self._flusher.end()

    def fail_flush(self, *, is_refused: bool) -> None:
        """Say that it was not done, or not all of it; `is_refused` where the disk refused a sync."""
        self._flusher.fail(is_refused=is_refused)

    def flush(self) -> int:
        """Force all that was written so far to disk, here and now; return the end of the log that is safe.

        Raises:
            FlushFailedError: The disk refused; nothing after `flushed_until` may be promised.
            DiskFullError: No room for definitions.
        """
        return self._flusher.flush(self._all())

    def _all(self) -> list[Syncable]:
        return [*self._side_files.all(), self._names]

    def prepare(self, again_bytes: int = NEVER) -> None:
        """Make room and pages ready ahead of the writer, write the indexes of full segments, give room back.

        Blocks; may run on another thread, beside a flush, not beside itself; wanted again after `again_bytes` of log.

        Raises:
            DiskFullError: No room for the next segment; the writer is told when it needs it.
            FlushFailedError: The disk refused.
        """
        self._segments.delete_dropped()  # first: all that follows may need the room
        self._index.write_full(self._flusher.flushed_until)
        self._segments.trim()
        self.pages_ahead.prepare(again_bytes)
        self._puncher.work()
        self.keys.work(self._log.written_until())

    # Parts for others

    def places(self, name: str) -> Places:
        """Return the file of places `name`, made on first use.

        Raises:
            DataFolderUnusableError: It cannot be opened, or is no such file.
            DiskFullError: No room for a new one.
        """
        return self._side_files.places(name)

    def journal(self, name: str) -> Journal:
        """Return the journal `name`, made on first use.

        Raises:
            DataFolderUnusableError, DiskFullError: It cannot be opened, or there is no room for a new one.
        """
        return self._side_files.journal(name)

    def table(self, name: str, rows: RowFormat = FIRST) -> Table:
        """Return the durable table `name`."""
        return self.definitions.table(name, rows)

    def free_bytes(self) -> int:
        """Return the room that the data folder's disk has for us; may run on any thread."""
        return free_bytes(self.data_dir)

    def log_bytes(self) -> int:
        """Return the room that the log takes on disk."""
        return self._segments.total_bytes

    def close(self) -> None:
        """Force everything to disk and let go of the folder; a second call does nothing."""
        if not self._is_open:
            return
        self._is_open = False
        try:
            self.keys.finish()
            self._puncher.finish()
            if not self._flusher.is_refused:
                self.flush()
                self._segments.delete_dropped()
                self._index.write_full(self.flushed_until)
                self.confirm()  # after the flush: it says how far the log is on disk
        finally:
            self._let_go()

    def _let_go(self) -> None:
        closers: list[Closable] = [*self._side_files.all(), self.definitions, self._names, self._index, self._segments]
        for part in closers:
            part.close()
        self._lock.release()  # last: from here on another process may open the files
