"""How messages ended that sessions and groups were done with and did not acknowledge, over restarts and kills.

As `core/pop/endings.py`, for readers that are no pop queues: runs of messages are kept in memory, and each that is
noted is a record of a journal, before the reader's place is moved. So of a message that was stored since the journal
goes without a break, nothing noted means acknowledged. A break is a restart of the machine that the gateway did not
stop before: places may have reached the disk that the journal has not.

Source: docs/storage-format.md, "Journal of endings".
"""

from __future__ import annotations

import hashlib
import logging
import struct
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from core.errors import DataFolderUnusableError, DiskFullError
from core.pop.ending_codes import GIVEN_AGAIN, code_of, told_by
from core.pop.endings import ALL, Ending, Reader, runs_of
from core.record_journal import RecordJournal

LOGGER = logging.getLogger(__name__)

READERS_MAX = 8_192  # the readers with the latest endings, some 350 bytes each
RUNS_MAX = 128  # of one reader, the latest
ALL_RUNS_MAX = 65_536  # of all readers, 40 bytes each
COMPACT_BYTES_MIN = 1 << 20  # chosen: a smaller journal takes no room or time at a start that is worth the work
COMPACT_RATIO = 4  # a compaction is due when the journal is so many times what the last one left
STEP_READERS = 1  # copied by a compaction each time something is noted, of at most RUNS_MAX runs: half a millisecond
NEVER_MS = 1 << 62  # no message is stored later
AT_0 = 1 << 63  # in a code: it counts for messages at QoS 0 alone
BOOT, STOP, CLEAR, NAME, RUN, TRIM, LOSE, FORGET = range(1, 9)
_FIELDS = 5  # first offset, end, first moment, last moment, reason
_BOOT = struct.Struct(">BQqq")  # kind, number of the machine's start, since when, what was forgotten until when
_KIND = struct.Struct(">B")
_NAME = struct.Struct(">BI16sq")  # kind, number, digest, what was forgotten until when
_RUN = struct.Struct(">BIqqQ")  # kind, number, first offset, end, code
_AT = struct.Struct(">BIq")  # kind, number, offset or moment
_SIZES = {BOOT: _BOOT, STOP: _KIND, CLEAR: _KIND, NAME: _NAME, RUN: _RUN, TRIM: _AT, LOSE: _AT, FORGET: _AT}


class _Runs:
    __slots__ = ("columns", "forgotten_ms", "is_named", "lost_until", "number")

    def __init__(self, number: int, forgotten_ms: int) -> None:
        self.number = number
        self.forgotten_ms = forgotten_ms  # when readers were last forgotten before this one came, as it may have been
        self.lost_until = 0
        self.is_named = False  # in the journal: there may have been no room for its name
        self.columns = array("q")


class LastingEndings:
    """Endings by light queue and reader: a session's client, a group, or empty for all that read a queue together.

    Args:
        journal: Where they are written, and read from here.

    Raises:
        DataFolderUnusableError: The journal has a record that no journal of endings has.
    """

    def __init__(self, journal: RecordJournal) -> None:
        self.since_ms = NEVER_MS  # of what was stored later, all endings were noted
        self._journal = journal
        self._kept: dict[bytes, _Runs] = {}  # by digest
        self._reasons: list[str] = []
        self._numbers = 0
        self._run_count = 0
        self._forgotten_ms = -1
        self._boot = 0  # 0 until `begin`: nothing is written before
        self._read_boot = 0
        self._was_stopped = False
        self._compact_at = COMPACT_BYTES_MIN
        self._parts: Iterator[None] = iter(())
        self._is_full = False
        self._now_ms = 0
        self._replay()

    @property
    def readers(self) -> int:
        """How many readers something is kept of."""
        return len(self._kept)

    # The life of a process

    def begin(self, boot: int, now_ms: int) -> None:
        """Go on with what was read, or anew after a break.

        Args:
            boot: A number of the machine's start, of 64 bits; 0 where it is not known.
            now_ms: The time.
        """
        self._now_ms = now_ms
        is_whole = not self._journal.is_damaged and (self._was_stopped or (0 < boot == self._read_boot))
        if not is_whole or self.since_ms == NEVER_MS:
            self.since_ms = now_ms
            self._forget_all()
        self._boot = boot or 1
        if not is_whole:
            self._write(_KIND.pack(CLEAR))
        self._write(_BOOT.pack(BOOT, boot, self.since_ms, self._forgotten_ms))
        if self._was_stopped:  # else a power cut could leave the stop before as the last that is known, and new places
            self._journal.sync()

    def end(self) -> None:
        """Note that the gateway stops: what is written before this is whole if this is."""
        self._write(_KIND.pack(STOP))

    def _forget_all(self) -> None:
        self._kept.clear()
        self._run_count, self._forgotten_ms = 0, -1

    # What ended

    def note(self, reader: Reader, offsets: Sequence[int], count: int, reason: str, now_ms: int) -> None:
        """Note that the first `count` of these messages, ascending or nearly so, ended for a reason."""
        for first, end in runs_of(offsets, count):
            self._note_run(reader, first, end, reason, now_ms)
        self._compact()

    def note_run(self, reader: Reader, first: int, end: int, reason: str, now_ms: int) -> None:
        """Note that the messages from an offset to before another ended for a reason; a moment of 0 is not known."""
        if first < end:
            self._note_run(reader, first, end, reason, now_ms)
            self._compact()

    def pass_time(self, now_ms: int) -> None:
        """Say that it may be as late as that until the next call: where moments of runs are not known."""
        self._now_ms = max(self._now_ms, now_ms)

    def _note_run(self, reader: Reader, first: int, end: int, reason: str, now_ms: int) -> None:
        self._now_ms = max(self._now_ms, now_ms)
        runs = self._take(_digest(reader))
        self._add(runs, first, end, self._number(reason), now_ms)
        self._write(_RUN.pack(RUN, runs.number, first, end, code_of(reason, now_ms)))

    def trim(self, reader: Reader, offset: int, kept: Sequence[int] = ()) -> None:
        """Let what was noted of messages from an offset on no longer count: the reader is given them again.

        It still counts for messages at QoS 0, which a start does not send again.

        Args:
            reader: Who is given them.
            offset: The first.
            kept: Those from there on that the reader is not given again, ascending.
        """
        given = []
        for first, end in runs_of(kept, len(kept)):
            if offset < first:
                given.append((offset, first))
            offset = end
        self._take_back(reader, [*given, (offset, ALL)])

    def take_back(self, reader: Reader, offsets: Sequence[int]) -> None:
        """Let what was noted of these messages, ascending, no longer count, as `trim` does."""
        self._take_back(reader, list(runs_of(offsets, len(offsets))))

    def _take_back(self, reader: Reader, given: Sequence[tuple[int, int]]) -> None:
        runs = self._kept.get(_digest(reader)) if self._kept else None
        if runs is None:
            return
        for first, end in self._counted(runs, given):
            self._cut(runs, first, end)
            if end == ALL:
                self._write(_AT.pack(TRIM, runs.number, first))
            else:
                self._write(_RUN.pack(RUN, runs.number, first, end, GIVEN_AGAIN))
            self._compact()

    def find(self, queue: bytes, reader: bytes, offset: int, *, is_at_0: bool = False) -> Ending | None:
        """Return how a message ended, as far as that is kept; None: it was acknowledged, if `is_kept`.

        Args:
            queue: The light queue.
            reader: Who reads it.
            offset: The message's.
            is_at_0: It was published at QoS 0.
        """
        runs = self._kept.get(_digest((queue, reader)))
        columns = array("q") if runs is None else runs.columns
        for at in range(len(columns) - _FIELDS, -1, -_FIELDS):
            reason = columns[at + 4]
            if columns[at] <= offset < columns[at + 1] and (reason >= 0 or is_at_0):
                return Ending(self._reasons[max(reason, ~reason)], columns[at + 2], columns[at + 3])
        return None

    def is_kept(self, queue: bytes, reader: bytes, offset: int, store_ms: int) -> bool:
        """Return whether the ending of a message that was stored at a moment would be found.

        It would, if the message ended since this process began or was stored after `since_ms`.
        """
        runs = self._kept.get(_digest((queue, reader)))
        if runs is None:
            return store_ms > self._forgotten_ms
        return offset >= runs.lost_until and store_ms > runs.forgotten_ms

    # In memory

    def _take(self, digest: bytes) -> _Runs:
        """Return the runs of a reader, which are the newest now."""
        runs = self._kept.pop(digest, None)
        readers_max = READERS_MAX if runs is not None else READERS_MAX - 1
        while self._kept and (len(self._kept) > readers_max or self._run_count >= ALL_RUNS_MAX):
            self._forget(next(iter(self._kept)))
        if runs is None:
            self._numbers += 1
            runs = _Runs(self._numbers, self._forgotten_ms)
        if not runs.is_named:
            runs.is_named = self._write(_NAME.pack(NAME, runs.number, digest, runs.forgotten_ms))
        self._kept[digest] = runs
        return runs

    def _forget(self, digest: bytes) -> None:
        """Forget a reader: of no other that comes is anything known of messages that were stored before."""
        runs = self._kept.pop(digest)
        self._run_count -= len(runs.columns) // _FIELDS
        self._forgotten_ms = max(self._forgotten_ms, self._now_ms)
        self._write(_AT.pack(FORGET, runs.number, self._now_ms))

    def _number(self, reason: str) -> int:
        if reason not in self._reasons:
            self._reasons.append(reason)
        return self._reasons.index(reason)

    def _add(self, runs: _Runs, first: int, end: int, number: int, now_ms: int) -> None:
        """Note a run; `number` is its reason, inverted where it counts for messages at QoS 0 alone."""
        columns = runs.columns
        if columns and columns[-4] == first and columns[-1] == number:
            columns[-4], columns[-2] = end, now_ms
            return
        if len(columns) >= RUNS_MAX * _FIELDS:
            runs.lost_until = max(runs.lost_until, columns[1])
            del columns[:_FIELDS]
            self._run_count -= 1
        columns.extend((first, end, now_ms, now_ms, number))
        self._run_count += 1

    def _counted(self, runs: _Runs, given: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """Return those of some runs, ascending, in which something that was noted counts."""
        columns, ends, found = runs.columns, [end for _, end in given], set()
        for at in range(0, len(columns), _FIELDS):
            number = bisect_right(ends, columns[at]) if columns[at + 4] >= 0 else len(ends)
            while number < len(ends) and given[number][0] < columns[at + 1]:
                found.add(given[number])
                number += 1
        return sorted(found)

    def _cut(self, runs: _Runs, offset: int, end: int) -> None:
        """Split the runs at two offsets, and invert the reasons between: those count for messages at QoS 0 alone."""
        columns, runs.columns = runs.columns, array("q")
        self._run_count -= len(columns) // _FIELDS
        for at in range(0, len(columns), _FIELDS):
            first, until, from_ms, until_ms, number = columns[at : at + _FIELDS]
            for begin, stop, told in (
                (first, min(until, offset), number),
                (max(first, offset), min(until, end), min(number, ~number)),
                (max(first, end), until, number),
            ):
                if begin < stop:
                    self._add(runs, begin, stop, told, from_ms)
                    runs.columns[-2] = until_ms

    # On disk

    def _write(self, record: bytes) -> bool:
        """Append a record; return whether it is written.

        Where there is no room, nothing is known of what was stored before there is some.
        """
        if not self._boot:
            return False
        try:
            if self._is_full:
                self.since_ms = self._now_ms
                boot = _BOOT.pack(BOOT, self._boot, self.since_ms, self._forgotten_ms)
                self._journal.append_many(boot, _BOOT.size)
                self._compact_at = 0  # what is in memory is right, what was written lacks something
            self._journal.append_many(record, len(record))
            self._is_full = False
        except DiskFullError as error:
            if not self._is_full:
                LOGGER.warning("cannot write how messages of sessions and groups ended: %s", error)
            self._is_full = True
        return not self._is_full

    def _compact(self) -> None:
        """Begin a compaction where one is due, or go on with one: once all that is known is in memory."""
        if self._boot and not self._is_full:
            try:
                self._copy_some()
            except DiskFullError as error:  # the journal is as it was
                LOGGER.warning("cannot make the journal smaller of how messages ended: %s", error)

    def _copy_some(self) -> None:
        journal = self._journal
        if not journal.is_compacting:
            if journal.bytes_used <= self._compact_at:
                return
            self._compact_at = journal.bytes_used + COMPACT_BYTES_MIN  # where it does not come to its end
            journal.begin_compaction()
            self._parts = self._copy_all()
        for _ in range(STEP_READERS):
            if next(self._parts, self) is self:
                journal.finish_compaction()
                self._compact_at = max(COMPACT_BYTES_MIN, COMPACT_RATIO * journal.bytes_used)
                return

    def _copy_all(self) -> Iterator[None]:
        self._journal.append_compacted(_BOOT.pack(BOOT, self._boot, self.since_ms, self._forgotten_ms), _BOOT.size)
        for digest, runs in list(self._kept.items()):
            if self._kept.get(digest) is runs:
                self._copy(digest, runs)
            yield

    def _copy(self, digest: bytes, runs: _Runs) -> None:
        """Write a reader anew: LOSE voids what was appended of it to the compaction so far."""
        journal, columns = self._journal, runs.columns
        journal.append_compacted(_NAME.pack(NAME, runs.number, digest, runs.forgotten_ms), _NAME.size)
        journal.append_compacted(_AT.pack(LOSE, runs.number, runs.lost_until), _AT.size)
        records = bytearray()
        for at in range(0, len(columns), _FIELDS):
            first, end, from_ms, until_ms, number = columns[at : at + _FIELDS]
            reason, at_0 = self._reasons[max(number, ~number)], AT_0 if number < 0 else 0
            if from_ms < until_ms:  # of no message: joined with the next when they are read
                records += _RUN.pack(RUN, runs.number, first, first, at_0 | code_of(reason, from_ms))
            records += _RUN.pack(RUN, runs.number, first, end, at_0 | code_of(reason, until_ms))
        journal.append_compacted(records, _RUN.size)

    def _replay(self) -> None:
        names: dict[int, bytes] = {}
        for record in self._journal.replay():
            form = _SIZES.get(record[0])
            if form is None or form.size != len(record):
                reason = f"no journal of endings: it has a record of {len(record)} bytes and kind {record[0]}"
                raise DataFolderUnusableError(str(self._journal.path), reason)
            kind, *fields = form.unpack(record)
            self._was_stopped = kind == STOP
            if kind == BOOT:
                self._read_boot, self.since_ms, self._forgotten_ms = fields
            elif kind == CLEAR:
                self._forget_all()
                names.clear()
            elif kind == NAME:
                number, names[number], forgotten_ms = fields[0], fields[1], fields[2]
                self._numbers = max(self._numbers, number)
                if names[number] not in self._kept:
                    self._kept[names[number]] = _Runs(number, forgotten_ms)
                self._kept[names[number]].is_named = True
            elif kind != STOP:
                self._apply(kind, fields, names.get(fields[0], b""))

    def _apply(self, kind: int, fields: Sequence[int], digest: bytes) -> None:
        runs = self._kept.pop(digest, None)
        if kind == FORGET:
            self._forgotten_ms = max(self._forgotten_ms, fields[1])
            self._run_count -= 0 if runs is None else len(runs.columns) // _FIELDS
            return
        if runs is None:  # its name was cut off, or comes later in a compaction, with all that is known
            return
        self._kept[digest] = runs
        if kind == RUN and fields[3] == GIVEN_AGAIN:
            self._cut(runs, fields[1], fields[2])
        elif kind == RUN:
            reason, at_ms = told_by(fields[3] & ~AT_0)
            number = self._number(reason)
            self._add(runs, fields[1], fields[2], ~number if fields[3] & AT_0 else number, at_ms)
        elif kind == TRIM:
            self._cut(runs, fields[1], ALL)
        else:
            self._run_count -= len(runs.columns) // _FIELDS
            runs.columns, runs.lost_until = array("q"), fields[1]


def _digest(reader: Reader) -> bytes:
    return hashlib.blake2b(b"%b\0%b" % reader, digest_size=16).digest()
