"""The state of all pop queues, durable: one journal of changes, replayed at start and compacted when it has grown."""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable, Iterator

from core.errors import DataFolderUnusableError, DiskFullError
from core.parted import PartedMap
from core.pop.changes import CHANGE_BYTES, DROP, NAME, STATE, ChangeLog
from core.record_journal import RecordJournal

LOGGER = logging.getLogger(__name__)

COMPACT_BYTES_MIN = 16 << 20  # a second or two of the busiest consumers, which acknowledge message by message
COMPACT_RATIO = 4  # a compaction is due when the journal is so many times what the last one left
# A compaction takes a step with each write, the larger the more was written, so that it ends before the journal has
# grown much. Work is counted in messages that are looked at; a queue costs as much as so many.
QUEUE_WORK = 128
WORK_PER_RECORD = 4 * QUEUE_WORK  # of a compaction, for each record that was written meanwhile
STEP_WORK_MAX = 64 * QUEUE_WORK  # about 0.5 ms compiled
NAME_PIECE_BYTES = 48  # with the 8 bytes of _NAME_HEAD it fits into a journal's record, which has 64 at most
DROPPED_MAX = 16_384  # of those that were dropped last: so many may be restored

_CHANGE = struct.Struct(">IIqq")
_NAME_HEAD = struct.Struct(">II")


class PopJournal:
    """Names and changes of pop queues, written in the order in which they happened.

    On a full disk what could not be written is kept and written later: consumers go on, and only what a crash meanwhile
    forgets is delivered once more.

    Args:
        journal: Where the records go.
        snapshot: Puts the present state of one pop queue after the other into a log, in parts that may be asked for
            with work between them. Gives the number of the pop queue, its key, None where it is not to be named, and
            how many messages the part looked at.
    """

    def __init__(
        self, journal: RecordJournal, snapshot: Callable[[ChangeLog], Iterator[tuple[int, bytes | None, int]]]
    ) -> None:
        self.changes = ChangeLog()
        self.names: PartedMap[bytes, int] = PartedMap({})  # of the pop queues there are
        self.dropped: dict[bytes, int] = {}  # of those that were dropped before the start, until these are forgotten
        self.next_number = 0
        self._journal = journal
        self._snapshot = snapshot
        self._parts: Iterator[tuple[int, bytes | None, int]] = iter(())  # what a compaction has still to copy
        self._copy = ChangeLog()
        self._is_copying = False
        self._unwritten: dict[int, bytes] = {}  # names by number
        self._compact_at = COMPACT_BYTES_MIN
        self._is_full = False

    def replay(self, apply: Callable[[int, int, int, int, int], None]) -> None:
        """Read the journal; `apply` is called with number, kind, first offset, count and value of each change.

        The changes of pop queues without a name come too: dropped ones, and a new one that a crash left without. For
        those in `dropped`, `apply` is not called with DROP.

        Raises:
            DataFolderUnusableError: It holds a record that no journal of pop queues has.
        """
        pieces: dict[int, bytes] = {}
        keys: dict[int, bytes] = {}
        for record in self._journal.replay():
            self._check(record)
            number, word = _NAME_HEAD.unpack_from(record)
            kind, count = word >> 24, word & 0xFFFFFF
            self.next_number = max(self.next_number, number + 1)
            if kind == NAME:
                pieces[number] = pieces.get(number, b"") + record[_NAME_HEAD.size :]
                if not count:
                    key = keys[number] = pieces.pop(number)
                    self.names[key] = number
                    if key in self.dropped:
                        apply(self.dropped.pop(key), DROP, 0, 0, 0)
                continue
            if kind == DROP and self.names.get(keys.get(number, b"")) == number:
                key = keys.pop(number)
                self.names.pop(key)
                self.dropped[key] = number
                if len(self.dropped) <= DROPPED_MAX:
                    continue
                number = self.dropped.pop(next(iter(self.dropped)))
            _, _, first, value = _CHANGE.unpack(record)
            apply(number, kind, first, count, value)
        self._compact_at = max(COMPACT_BYTES_MIN, self._journal.bytes_used)

    def _check(self, record: bytes) -> None:
        """Refuse what was never written here: a journal without a name may have been put in the place of this one."""
        size = len(record)
        kind = record[4] if size > _NAME_HEAD.size else 0
        is_known = kind == NAME or (DROP <= kind <= STATE and size == CHANGE_BYTES)
        if not is_known:
            reason = f"no journal of pop queues: it has a record of {size} bytes and kind {kind}"
            raise DataFolderUnusableError(str(self._journal.path), reason)

    def add_name(self, key: bytes) -> int:
        """Give a pop queue a number, a new one or one that begins anew; the caller notes where.

        The number that it had before is no more once the name is written.
        """
        number = self.next_number
        self._unwritten.pop(self.names.get(key, -1), None)
        self.next_number += 1
        self.names[key] = number
        self._unwritten[number] = key
        return number

    def drop_name(self, key: bytes) -> None:
        """Forget a pop queue."""
        number = self.names.pop(key)
        assert number is not None  # only what is there is dropped
        self._unwritten.pop(number, None)
        self.changes.put(number, DROP, 0, 0, 0)

    @property
    def is_written(self) -> bool:
        """Whether all that has happened is in the journal."""
        return not self.changes.used and not self._unwritten

    def write(self) -> None:
        """Write what has happened since the last call."""
        changes = self.changes
        if not changes.used and not self._unwritten:
            return
        began_at = self._journal.bytes_used
        try:
            if changes.used:
                self._journal.append_many(changes.buf[: changes.used], CHANGE_BYTES)
                changes.clear()
            while self._unwritten:  # after where it begins: a name alone would begin at 0
                number = next(iter(self._unwritten))
                for record in _name_records(number, self._unwritten[number]):
                    self._journal.append_many(record, len(record))
                del self._unwritten[number]
            if self._is_copying and not self._journal.is_compacting:
                self._put_off()
            if self._is_copying or self._journal.bytes_used > self._compact_at:
                self._compact((self._journal.bytes_used - began_at) // CHANGE_BYTES * WORK_PER_RECORD)
        except DiskFullError as error:  # not for the consumer that happens to be served
            if not self._is_full:
                LOGGER.warning("cannot write the acknowledgements of consumers: %s", error)
            self._is_full = True
            self._put_off()
            return
        self._is_full = False

    def _compact(self, work: int) -> None:
        """Begin a compaction, or go on with it."""
        if not self._is_copying:
            self._journal.begin_compaction()
            self._is_copying = True
            self._parts = self._snapshot(self._copy)
        work = min(work, STEP_WORK_MAX)
        while work > 0:
            number, key, looked_at = next(self._parts, (-1, None, 0))
            if number < 0:
                self._journal.finish_compaction()
                self._is_copying = False
                self._compact_at = max(COMPACT_BYTES_MIN, COMPACT_RATIO * self._journal.bytes_used)
                break
            self._copy_part(number, key)
            work -= QUEUE_WORK + looked_at

    def _put_off(self) -> None:
        """Compact later: the disk is full."""
        self._compact_at = max(self._compact_at, self._journal.bytes_used + COMPACT_BYTES_MIN)
        self._is_copying = self._journal.is_compacting

    def _copy_part(self, number: int, key: bytes | None) -> None:
        copy = self._copy
        try:
            self._journal.append_compacted(copy.buf[: copy.used], CHANGE_BYTES)
            for record in _name_records(number, key) if key else ():
                self._journal.append_compacted(record, len(record))
        finally:
            copy.clear()


def _name_records(number: int, key: bytes) -> list[bytes]:
    pieces = [key[start : start + NAME_PIECE_BYTES] for start in range(0, len(key), NAME_PIECE_BYTES)]
    last = len(pieces) - 1
    return [_NAME_HEAD.pack(number, NAME << 24 | last - i) + piece for i, piece in enumerate(pieces)]
