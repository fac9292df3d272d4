"""Which parts of a full segment stay, and how the gaps between them are to be written.

What stays are the records that a reader needs, those between them where too little lies to be worth a gap, and the
records of the dispatch sets that any of these name. Only what stays is read.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Generator, Iterator
from contextlib import suppress

from core import octets
from core.errors import CorruptRecordError
from core.message import StoredBatch
from core.store.dispatch_set import decode_set
from core.store.gap import GAP_BYTES_MIN, NEVER, Groups, encode_uses, group_queues, make_blank, make_gaps
from core.store.gap_file import Holes, Writes
from core.store.head_index import HeadIndex
from core.store.layout import BLANK_BYTES, PHYSICAL_OFFSET_AT, RECORD_BYTES_MIN, STORE_MS_AT, SYS_BORN_V6
from core.store.position_marks import PositionMarks
from core.store.queue_names import QueueNames
from core.store.record_codec import decode_record
from core.store.record_walk import find_sets
from core.store.sealed_index import SealedIndex

GAP_WORTH = 64 << 10  # smaller gaps are left as they are: a call and two pages for each would be too much
USES_MAX = 1 << 20  # bytes that a gap may hold of dispatch sets
# What one step does at most, so that each takes a few milliseconds.
_ENTRIES_A_STEP = 65_536  # of 4 bytes: 256 KiB of an index
_QUEUES_A_STEP = 4_096  # rows of the directory, a look-up each
_CELLS_A_STEP = 1 << 18  # of 64 bytes: the marks of 16 MiB of a segment
_BYTES_A_READ = 1 << 20  # of records; a larger record is read whole
_READS_A_STEP = 4  # so 4 MiB of records
_GAPS_A_STEP = 64  # looked at; a gap is of 64 KiB at least
_LOOKUPS = 16  # of one name, each in another step
_HEADER_BYTES = STORE_MS_AT + 12 + 8  # up to the end of the store time, where the born host is of IPv6
_SYS_FLAG_AT = 36


class NamesBusyError(Exception):
    """A queue's name was not found while the names grow: the plan is worth another try."""


class GapPlan:
    """The plan for one segment; `steps` makes it, in steps of a few ms.

    Args:
        fd: The segment's file, open.
        base: Its first physical offset.
        size: Its size.
        source: Its index.
        names: The names of the queues.
        floors: For each queue of which something is needed, from which offset on.
    """

    def __init__(
        self, fd: int, base: int, size: int, *, source: SealedIndex, names: QueueNames, floors: dict[int, int]
    ) -> None:
        self._fd = fd
        self._base = base
        self._size = size
        self._source = source
        self._names = names
        self._floors = floors
        self._marks = PositionMarks(size)
        self._scratch = StoredBatch(1)
        self._sets: dict[int, tuple[int, int]] = {}  # physical offset of a set's record that stays -> its positions
        self._walked: list[tuple[int, int, set[int]]] = []  # what was read: start, end, sets used
        self.entries = HeadIndex(source.names_count)
        self.kept: list[tuple[int, int]] = []  # positions [start, end) of what stays, in order
        self.writes: Writes = []
        self.holes: Holes = []

    def steps(self) -> Iterator[None]:
        """Find what is needed; nothing is planned yet, and `needed_bytes` tells how much it would leave.

        Raises:
            CorruptRecordError: Something that is needed is damaged.
        """
        for number, (ref, floor) in enumerate(self._floors.items()):
            found = self._source.find(ref)
            if found is not None:
                yield from self._take(ref, max(found[0], floor), found[0] + found[1])
            if number % _QUEUES_A_STEP == 0:
                yield
        runs: list[tuple[int, int]] = []
        while self._marks.find_runs(GAP_WORTH, _CELLS_A_STEP, runs):
            yield
        for number, (first, last) in enumerate(runs):
            self.kept.append((first, last + self._record_size(last)))
            if number % _GAPS_A_STEP == 0:
                yield

    def _take(self, ref: int, offset: int, end: int) -> Iterator[None]:
        while offset < end:
            offset += self._source.take(ref, offset, _ENTRIES_A_STEP, self._marks, self.entries)
            if offset < end:
                yield

    @property
    def needed_bytes(self) -> int:
        """How much of the segment stays, with the pages at the borders."""
        return sum(end - start + 2 * 4096 for start, end in self.kept)

    def finish(self) -> Iterator[None]:
        """Fill `writes` and `holes`.

        Raises:
            CorruptRecordError: Something that stays is damaged.
            NamesBusyError: Queues of a set were not found.
        """
        if not self.kept:
            self._empty()
            return
        todo = list(self.kept)
        while todo:
            for start, end in todo:
                yield from self._walk(start, end)
            todo = self._join(self._missing_sets())
            if not todo:
                uses = yield from self._all_uses()
                todo = self._join_narrow(uses)
                if not todo:
                    yield from self._write(uses)

    def _read(self, position: int, size: int) -> bytes:
        return os.pread(self._fd, size, position)

    def _record_size(self, position: int) -> int:
        """Return the size of the record at `position` by its header, which must be of this place."""
        header = self._read(position, PHYSICAL_OFFSET_AT + 8)
        if len(header) < PHYSICAL_OFFSET_AT + 8 or octets.read_i64(header, PHYSICAL_OFFSET_AT) != self._base + position:
            raise CorruptRecordError(self._base + position, "no record where one is needed")
        size = octets.read_u32(header, 0)
        if size < RECORD_BYTES_MIN or position + size > self._size:
            raise CorruptRecordError(self._base + position, "an impossible size")
        return size

    def _walk(self, start: int, end: int) -> Iterator[None]:
        """Read the records in [start, end), all sound, and note the sets that they use."""
        found: list[int] = []
        position = start
        want = _BYTES_A_READ
        reads = 0
        while position < end:
            data = self._read(position, min(want, end - position))
            at = find_sets(self._scratch, data, self._base + position, 0, len(data), found)
            if at == 0:
                want = self._record_size(position)
                if want <= len(data) or want > end - position:
                    raise CorruptRecordError(self._base + position, "damaged")
                continue
            want = _BYTES_A_READ
            position += at
            reads += 1
            if reads % _READS_A_STEP == 0:
                yield
        self._walked.append((start, end, set(found)))

    def _missing_sets(self) -> list[tuple[int, int]]:
        """Return where the records of sets are that something uses and that do not stay yet."""
        missing: list[tuple[int, int]] = []
        for place in set().union(*(used for _, _, used in self._walked)) - self._sets.keys():
            position = place - self._base
            if not 0 <= position < self._size:
                raise CorruptRecordError(place, "a dispatch set of another segment")
            self._sets[place] = (position, position + self._record_size(position))
            at = bisect_right(self.kept, (position, self._size)) - 1
            if at < 0 or self.kept[at][1] <= position:
                missing.append(self._sets[place])
        return missing

    def _join(self, more: list[tuple[int, int]], *, narrow: frozenset[int] = frozenset()) -> list[tuple[int, int]]:
        """Let `more` stay too, and what lies between two parts where it is no gap; return what has not been read.

        Gaps that start at a position in `narrow` are none either.
        """
        unread = list(more)
        joined: list[tuple[int, int]] = []
        before = 0
        for start, end in sorted([*self.kept, *more]):
            if start < before:
                raise CorruptRecordError(self._base + start, "records overlap")
            if before < start and (start - before < GAP_WORTH or before in narrow):
                unread.append((before, start))
                start = before  # noqa: PLW2901
            if joined and joined[-1][1] == start:
                start = joined.pop()[0]  # noqa: PLW2901
            joined.append((start, end))
            before = end
        self.kept = joined
        return unread

    def _gaps(self) -> list[tuple[int, int]]:
        """Return the gaps before parts that stay."""
        ends = [0, *(end for _, end in self.kept)]
        return [(end, start) for end, (start, _) in zip(ends, self.kept, strict=False) if end < start]

    def _all_uses(self) -> Generator[None, None, dict[int, bytes]]:
        """Return, for each gap by its start, what it says of dispatch sets."""
        uses: dict[int, bytes] = {}
        kept_from = dict(self.kept)
        walked = sorted((first, last, sets) for first, last, sets in self._walked if sets)
        at = 0
        if self.kept[0][0] == 0:  # before the first gap
            while at < len(walked) and walked[at][0] < self.kept[0][1]:
                at += 1
        for number, (gap_start, start) in enumerate(self._gaps()):
            end = kept_from[start]
            used: set[int] = set()
            while at < len(walked) and walked[at][0] < end:
                used |= walked[at][2]
                at += 1
            groups: dict[int, Groups] = {}
            for place in used:
                groups[place] = yield from self._groups(place, start, end)
            uses[gap_start] = encode_uses(groups, self._base, start)
            if number % _GAPS_A_STEP == 0:
                yield
        return uses

    def _groups(self, place: int, start: int, end: int) -> Generator[None, None, Groups]:
        """Return where the queues of a set go on in [start, end)."""
        position, record_end = self._sets[place]
        record = decode_record(self._read(position, record_end - position), 0, place)
        names, set_offsets = decode_set(record.body)
        starts: list[int] = []
        offsets: list[int] = []
        for number, name in enumerate(names):
            ref = yield from self._find_queue(name)
            floor = self._floors.get(ref, -1)
            found = self._source.find_from(ref, floor, start) if floor >= 0 else None
            if found is None or found[0] >= end:
                found = (NEVER, 0)
            starts.append(found[0])
            offsets.append(found[1])
            if number % _QUEUES_A_STEP == 0:
                yield
        return group_queues(starts, offsets, set_offsets)

    def _find_queue(self, name: bytes) -> Generator[None, None, int]:
        """Return the ref of a queue of a set, which always has one.

        The names are another thread's: where it is just making room for more of them, nothing is found, and it is tried
        again in the next step. What is found is right in any case: the name there is compared.
        """
        for _ in range(_LOOKUPS):
            with suppress(IndexError):
                ref = self._names.find(name)
                if ref >= 0:
                    return ref
            yield
        raise NamesBusyError(name)

    def _join_narrow(self, uses: dict[int, bytes]) -> list[tuple[int, int]]:
        """Give the gaps up that have no room for what they must say; return what is to be read then."""
        narrow = frozenset(
            start
            for start, end in self._gaps()
            if len(uses[start]) > USES_MAX or end - start < GAP_WORTH + len(uses[start])
        )
        return self._join([], narrow=narrow) if narrow else []

    def _write(self, uses: dict[int, bytes]) -> Iterator[None]:
        for number, (start, end) in enumerate(self._gaps()):
            self._add(make_gaps(self._base, start, end, self._store_ms(start), uses[start]))
            if number % _GAPS_A_STEP == 0:
                yield
        self._add_blank(self.kept[-1][1])

    def _empty(self) -> None:
        self._add(make_gaps(self._base, 0, GAP_BYTES_MIN, self._store_ms(0), b""))
        self._add_blank(GAP_BYTES_MIN)

    def _add(self, gaps: Writes) -> None:
        """Add gaps, each by its head and its tail; all between them goes."""
        for (head, front), (tail, _) in zip(gaps[::2], gaps[1::2], strict=True):
            self.holes.append((head + len(front), tail))
        self.writes += gaps

    def _add_blank(self, position: int) -> None:
        self.writes.append(make_blank(position, self._size))
        self.holes.append((position + BLANK_BYTES, self._size))

    def _store_ms(self, position: int) -> int:
        """Return the store time of what stands at `position`: a gap there bears it."""
        self._record_size(position)
        header = self._read(position, _HEADER_BYTES)
        return octets.read_i64(header, STORE_MS_AT + (12 if octets.read_u32(header, _SYS_FLAG_AT) & SYS_BORN_V6 else 0))
