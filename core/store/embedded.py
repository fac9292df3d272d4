"""The engine of one process: a data folder of its own, forced to disk in groups."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from pathlib import Path

from core.engine import Engine, EngineFigures, Found, FoundDispatch, FoundRecord, Holder, Outcome
from core.errors import LmqError, StoreClosedError
from core.message import KeySearch, PublishBatch, Route, StoredBatch
from core.room import Room
from core.row_format import FIRST, RowFormat
from core.settings import StoreSettings
from core.store.dispatched import read_dispatch
from core.store.durability import Durability
from core.store.journal import Journal
from core.store.message_store import MessageStore
from core.store.places import Places
from core.store.queue_reader import read_record, record_offset
from core.store.table import Table

UNCOVERED_COUNT = 1_024  # records looked at in one go at the start, of the end of the log that no table covers


def _nothing() -> None:
    return


class EmbeddedEngine(Engine):
    """An open store as the broker's engine.

    The runtime sets `wake_preparer`, upon which `store.prepare` is called on another thread, and
    `durability.request_flush`.

    Args:
        store: The open store; its opener closes it.
        is_sync: Whether a message is safe when it is on disk, and not when it is in a mapped file.
    """

    def __init__(self, store: MessageStore, *, is_sync: bool) -> None:
        super().__init__(Room(store.settings.disk_free_bytes_min), store.settings.message_bytes_max)
        self.store = store
        self.durability = Durability(store, is_sync=is_sync)
        self.wake_preparer: Callable[[], None] = _nothing
        self._holders: list[Holder] = []
        self._is_retiring = False
        self._one = StoredBatch(1)

    @classmethod
    def open(cls, data_dir: Path, settings: StoreSettings, *, now_ms: int) -> EmbeddedEngine:
        """Open the store in `data_dir`; see `MessageStore.open` for what may be wrong with it."""
        store = MessageStore.open(data_dir, settings, now_ms=now_ms)
        return cls(store, is_sync=settings.flush.mode == "sync")

    # Queues

    def intern_queue(self, key: bytes) -> int:
        """Return the number of a queue, made on first use."""
        return self.store.intern_queue(key)

    def find_queue(self, key: bytes) -> int:
        """Return the number of a queue, or -1."""
        return self.store.find_queue(key)

    def queue_key(self, queue_ref: int) -> bytes:
        """Return the key that `queue_ref` stands for."""
        return self.store.queue_key(queue_ref)

    def queue_lines(self, first: int, end: int, prefix: bytes) -> bytes:
        """Return the keys of the numbers from `first` to before `end` without their prefix, a line break before each.

        Nothing where one of them is not there, has another prefix or a line break.
        """
        return self.store.queue_lines(first, end, prefix)

    def queue_count(self) -> int:
        """Return how many queues the folder has seen."""
        return self.store.queue_count()

    def open_queue(self, queue_ref: int, then: Outcome) -> None:  # noqa: ARG002  # all are
        """Call back at once: the ends of all queues are known."""
        then(None)

    def min_offset(self, queue_ref: int) -> int:
        """Return the first offset that is kept."""
        return self.store.min_offset(queue_ref)

    def max_offset(self, queue_ref: int) -> int:
        """Return the next offset to be given."""
        return self.store.max_offset(queue_ref)

    def next_offsets(self, start: int, out: array[int]) -> int:
        """Fill `out` with the next offsets of the queues from `start` on; return how many there were."""
        size = max(min(len(out), self.queue_count() - start), 0)
        for i in range(size):
            out[i] = self.store.max_offset(start + i)
        return size

    def first_offsets(self, start: int, out: array[int]) -> int:
        """Fill `out` with the first offsets that are kept of the queues from `start` on; return how many there were."""
        return self.store.first_offsets(start, out)

    def make_route(self, topic: bytes, queue_id: int, prefix: bytes, names: Sequence[bytes]) -> Route:
        """Return a route; equal lists of names share their set while a caller holds it."""
        return self.store.make_route(topic, queue_id, prefix, names)

    # Write

    @property
    def store_host(self) -> bytes:
        """Address and port that records are stamped with."""
        return self.store.store_host

    @property
    def named_address(self) -> tuple[str | None, int | None]:
        """The host and port that the store's settings name."""
        return self.store.settings.store_host, self.store.settings.store_port

    def set_store_host(self, store_host: bytes) -> None:
        """Stamp records from now on with this address and port."""
        self.store.set_store_host(store_host)

    def append_batch(self, batch: PublishBatch, now_ms: int) -> None:
        """Append and index the messages of `batch` that have a route; its ticket is the end of the log."""
        if self.durability.is_failed:
            batch.appended = 0
            raise StoreClosedError("the disk refused a sync; no message is taken any more")
        try:
            batch.ticket = self.store.append_batch(batch, now_ms)
        except LmqError:
            batch.ticket = self.store.written_until
            raise

    def keep_together(self, on: bool) -> None:  # noqa: FBT001  # a switch
        """Begin or end a unit of the log."""
        self.store.keep_together(on)

    @property
    def places_late(self) -> bool:
        """Whether offsets are told later: no, the append gives them."""
        return False

    def tell_places(self, ticket: int, batch: PublishBatch) -> None:
        """Leave the batch as it is: the append has filled it."""

    # Read

    def read(self, queue_ref: int, offset: int, into: StoredBatch, count_max: int, bytes_max: int) -> int:
        """Read on in one queue, in one segment."""
        return self.store.read(queue_ref, offset, into, count_max, bytes_max)

    def read_offsets(self, queue_ref: int, offsets: array[int], count: int, into: StoredBatch) -> int:
        """Read chosen messages of one queue, up to a segment's border."""
        return self.store.read_offsets(queue_ref, offsets, count, into)

    def find_keyed(self, search: KeySearch) -> bool:
        """Look into the key file of the segment at that side of the stretch, where there is one."""
        return self.store.keys.find(search)

    def find_record(self, place: int, then: FoundRecord) -> None:
        """Tell, at once, the record at a physical offset, checked."""
        then(self._copy_at(place))

    def find_dispatch(self, record: bytes, then: FoundDispatch) -> None:
        """Tell, at once, the light queues of a record."""
        then(read_dispatch(record, self._copy_at))

    def copy_record(self, batch: PublishBatch, i: int) -> bytes | None:
        """Return a record of a batch."""
        return self._copy_at(batch.physical_offset[i])

    def _copy_at(self, physical_offset: int) -> bytes | None:
        one = self._one
        if physical_offset < 0 or not self.store.read_at(physical_offset, one):
            return None
        record = bytes(one.buf[one.record_start[0] : one.record_end[0]])
        one.clear()
        return record

    def read_record(self, record: bytes, into: StoredBatch) -> bool:
        """Fill `into` with a record that was copied out of the log."""
        return read_record(record, into)

    def record_version(self, record: bytes) -> int:
        """Return the physical offset that a record bears: versions go up with the log."""
        return record_offset(record)

    @property
    def next_version(self) -> int:
        """The end of the log."""
        return self.store.written_until

    def find_version(self, version: int, then: FoundRecord) -> None:
        """Tell, at once, the record of a version, as long as the log has it."""
        then(self._copy_at(version))

    def find_offset(self, queue_ref: int, at_ms: int, then: Found, *, upper: bool = False) -> None:
        """Tell, at once, the first offset stored at a moment or later, or the last one until then."""
        then(self.store.offset_at_time(queue_ref, at_ms, upper=upper))

    @property
    def end_place(self) -> int:
        """The end of the log."""
        return self.store.written_until

    @property
    def sure_place(self) -> int:
        """So far the log was on disk before the store was opened; all of it where nothing tells."""
        known_end: int = self.store.report.known_end
        return known_end if known_end >= 0 else self.store.written_until

    @property
    def waits_for_disk(self) -> bool:
        """Whether the settings ask for a sync before anybody is answered."""
        return self.durability.is_sync

    def bytes_since(self, place: int) -> int:
        """Return how long the log is from a physical offset on."""
        return self.store.written_until - place

    def replay_from(self, place: int, take_in: Callable[[StoredBatch], int]) -> int:
        """Give the messages that lie there and behind it."""
        batch = StoredBatch(UNCOVERED_COUNT)
        at = place
        taken = 0
        while at < self.store.written_until:
            at = self.store.scan(at, batch)
            taken += take_in(batch)
        batch.clear()
        return taken

    def replay_uncovered(self, take_in: Callable[[StoredBatch], int]) -> int:
        """Give what lies behind the last commit of the tables: a process was killed before the next one."""
        taken = self.replay_from(self.store.covered_until, take_in)
        self.store.note_covered()
        return taken

    # Wake

    def watch(self, queue_ref: int, on: bool) -> None:  # noqa: FBT001  # a switch
        """Report the growth of a queue in `take_grown`, or no longer."""
        self.store.watch(queue_ref, on=on)

    def take_grown(self, into: list[int]) -> int:
        """Append the watched queues that grew since the last call to `into`."""
        return self.store.take_grown(into)

    def step(self, now_ms: int) -> bool:  # noqa: ARG002  # others go by it
        """Go on with what `retire` began, and have what the next message is written to ready."""
        if self._is_retiring:
            self._is_retiring = self.store.retention.step()
        # Here, behind what the turn sent: a timer's moment would be between the next read and what that brings.
        if self.store.touch_ahead() and self.store.touch_pages():
            self.wake_preparer()
        return self._is_retiring

    # Durability

    @property
    def is_failed(self) -> bool:
        """Whether the disk has refused a sync."""
        return self.durability.is_failed

    def when_stored(self, ticket: int, then: Outcome) -> None:
        """Call back after the flush that covers the log until `ticket`; without `is_sync` at once."""
        self.durability.when_stored(ticket, then)

    def when_durable(self, then: Outcome) -> None:
        """Call back after the flush that covers messages and acknowledgements so far; without `is_sync` at once."""
        self.durability.when_durable(then)

    def when_kept(self, then: Outcome) -> None:
        """Call back after the commit that covers the changes of tables so far."""
        self.durability.when_kept(then)

    # What is remembered besides

    def claim(self, key: bytes, then: Outcome) -> None:  # noqa: ARG002  # nobody else could have it
        """Grant it at once: the data folder is this process's."""
        then(None)

    def release(self, key: bytes) -> None:
        """Do nothing: there is no other gateway."""

    def table(self, name: str, rows: RowFormat = FIRST) -> Table:
        """Return the durable table `name`."""
        return self.store.table(name, rows)

    def check_room(self, row_bytes: int = 0) -> None:
        """Check that what is changed in a table now is likely to be kept soon."""
        self.store.definitions.check_room(row_bytes)

    def check_commits(self) -> None:
        """Check that no commit of the tables waits for room."""
        self.store.definitions.check_commits()

    def places(self, name: str) -> Places:
        """Return the file of places `name`."""
        return self.store.places(name)

    def journal(self, name: str) -> Journal:
        """Return the journal `name`."""
        return self.store.journal(name)

    # Retention

    def hold(self, positions: Holder) -> None:
        """Keep what `positions` names from retention."""
        self._holders.append(positions)

    def retire(self, now_ms: int) -> int:
        """Begin to let go of segments that are due; return how many went since the last call."""
        retention = self.store.retention
        retention.begin(now_ms, self._holders)
        self._is_retiring = retention.step()
        return retention.take_dropped()

    def figures(self) -> EngineFigures:
        """Return what the store counts."""
        store = self.store
        return EngineFigures(
            messages_stored=store.message_count,
            dispatches=store.dispatch_count,
            queues=store.queue_count(),
            log_bytes=store.log_bytes(),
            log_bytes_punched=store.retention.bytes_punched,
            records_damaged=store.damaged_count,
            damage_beside=store.damage_beside(),
        )
