"""Endings of shared messages that outlive the process: read from the journal at the start, and copied by compactions.

A journal's record of what is done says how, at no byte more. A mark says from which pop queue on that is so: those made
by an earlier version are silent about theirs. A second mark says so of pop queues that groups of subscribers share:
versions that know the first alone did not say how messages ended for these.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from core.pop.acknowledgers import ALL_RUNS_MAX, CODE_END, Acknowledgers
from core.pop.changes import ACK, CHANGE_BYTES, COUNT_MAX, ChangeLog
from core.pop.ending_codes import GROUPS_MARK, LOST, MARK, code_of, told_by
from core.pop.endings import ALL, Ending, Endings, Reader, runs_of
from core.pop.window import Window


class ToldEndings:
    """What the journal tells.

    Args:
        endings: Where endings are kept, of queues and groups.
        acknowledgers: Where it is kept which consumer acknowledged what.
        changes: The journal's, where a mark goes.
    """

    def __init__(self, endings: Endings, acknowledgers: Acknowledgers, changes: ChangeLog) -> None:
        self._endings = endings
        self._acknowledgers = acknowledgers
        self._read_by: deque[tuple[int, int, int, int]] = deque(maxlen=ALL_RUNS_MAX)
        self._changes = changes
        self._read = Endings()  # by number, until names are known
        self._had_lost = False
        self._copied: set[Reader] = set()  # of which it was read up to where nothing is kept
        self.mark = -1  # the first pop queue that tells how all its messages ended; those after it do, too
        self.groups_mark = -1  # likewise, where it is a group of subscribers

    def read(self, number: int, first: int, end: int, code: int) -> None:
        """Note what a record of the journal says of messages of a pop queue, or of none."""
        if code < CODE_END:
            self._read_by.append((number, first, end, code))
        elif code & ~1 == MARK:
            self.mark = number
            self._had_lost |= code & 1 > 0
        elif code == GROUPS_MARK:
            self.groups_mark = number
        elif code == LOST:
            self._copied.add(_numbered(number))
            self._read.lose(_numbered(number), first)
        else:
            self._read.note_run(_numbered(number), first, end, *told_by(code))

    def settle(self, names: Iterable[tuple[bytes, int]]) -> None:
        """Keep what was read, now that the names of pop queues are known; of those without it is forgotten.

        Where readers were forgotten, one that a compaction told nothing of may be among them, whatever ended since.
        """
        read, self._read = self._read, Endings()
        keys = {_numbered(number): key for key, number in names} if read.readers or self._read_by else {}
        for number, *run in self._read_by:
            if (key := keys.get(_numbered(number))) is not None:
                self._acknowledgers.note_run(_reader_of(key), *run)
        self._read_by.clear()
        for numbered in list(read.readers):
            key = keys.get(numbered)
            if key is not None:
                lost_until, runs = read.tell(numbered)
                is_sure = not self._had_lost or numbered in self._copied
                self._keep(_reader_of(key), lost_until if is_sure else ALL, runs)
        if read.has_lost or self._had_lost:  # not before: of those that are kept nothing is lost
            self._endings.lose_all()
        self._copied.clear()

    def _keep(self, reader: Reader, lost_until: int, runs: list[tuple[int, int, Ending]]) -> None:
        if lost_until:
            self._endings.lose(reader, lost_until)
        for first, end, (reason, from_ms, until_ms) in runs:
            self._endings.note_run(reader, first, first + 1, reason, from_ms)
            self._endings.note_run(reader, first + 1, end, reason, until_ms)

    def begin(self, number: int) -> None:
        """Write the marks that are missing: the pop queue that gets this number is the first that tells all."""
        if self.mark < 0 or self.groups_mark < 0:
            self.mark = number if self.mark < 0 else self.mark
            self.groups_mark = number if self.groups_mark < 0 else self.groups_mark
            self.put_mark(self._changes)

    def put_mark(self, log: ChangeLog) -> bool:
        """Write the marks once more; return whether there are any."""
        if self.groups_mark >= 0:
            log.put(self.groups_mark, ACK, 0, 0, GROUPS_MARK)
        if self.mark >= 0:
            log.put(self.mark, ACK, 0, 0, MARK | self._endings.has_lost)
        return self.mark >= 0

    def put(self, key: bytes, number: int, log: ChangeLog) -> int:
        """Write what is kept of a pop queue, to stand before its FLOOR: that voids what these records say is done.

        Return how many records that took.
        """
        lost_until, runs = self._endings.tell(_reader_of(key)) if self._endings.readers else (0, [])
        before = log.used
        for first, end, code in self._acknowledgers.tell(_reader_of(key)):
            _put_long(log, number, first, end, code)
        if lost_until or runs:  # also where nothing is lost: what a copy has of it so far is void, and told again
            log.put(number, ACK, lost_until, 0, LOST)
        for first, end, ending in runs:
            if ending.from_ms < ending.until_ms and end > first + 1:  # joined again when they are read
                log.put(number, ACK, first, 1, code_of(ending.reason, ending.from_ms))
                _put_long(log, number, first + 1, end, code_of(ending.reason, ending.until_ms))
            else:
                _put_long(log, number, first, end, code_of(ending.reason, ending.until_ms))
        return (log.used - before) // CHANGE_BYTES

    def tell(self, reader: Reader, number: int, offsets: Sequence[int], reason: str, now_ms: int) -> None:
        """Say of messages of a pop queue, ascending, that are done why they ended after all."""
        code = code_of(reason, now_ms)
        for first, end in runs_of(offsets, len(offsets)):
            self._endings.note_run(reader, first, end, reason, now_ms)
            _put_long(self._changes, number, first, end, code)

    def renumber(self, key: bytes, number: int, until: int) -> None:
        """Note that a pop queue has another number from now on; of messages before an offset nothing is kept."""
        self._endings.lose(_reader_of(key), until)
        self._acknowledgers.forget(_reader_of(key), until)
        self._changes.put(number, ACK, until, 0, LOST)

    def is_told(self, number: int, *, is_of_subscribers: bool = False) -> bool:
        """Return whether a pop queue tells of all its messages how they ended; groups do since a later version."""
        return 0 <= (self.groups_mark if is_of_subscribers else self.mark) <= number


def _numbered(number: int) -> Reader:
    return number.to_bytes(4), b""


def _reader_of(key: bytes) -> tuple[bytes, bytes]:
    queue, _, group = key.partition(b"\0")
    return queue, group


def _put_long(log: ChangeLog, number: int, first: int, end: int, code: int) -> None:
    while first < end:
        count = min(end - first, COUNT_MAX)
        log.put(number, ACK, first, count, code)
        first += count


def is_all_done(window: Window, end: int) -> bool:
    """Return whether all before an offset is done; to find the floor is dear where there are stragglers."""
    return end <= window.base and end <= window.floor()
