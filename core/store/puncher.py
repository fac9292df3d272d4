"""Gives the room of what nobody needs back, in the middle of the log: on another thread, by small steps.

The owner of the store wishes for a segment; `work` plans the gaps and writes a reduced index; the owner takes that into
use; then, when no reader can still be where a gap will be, `work` writes the gaps and punches them out.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from core.errors import CorruptRecordError, DiskFullError, FlushFailedError
from core.store.gap_file import Holes, Writes, forget_gap_file, write_gap_file, write_gaps
from core.store.gap_plan import GAP_WORTH, GapPlan, NamesBusyError
from core.store.layout import GAPS_SUFFIX, segment_name
from core.store.mapped_file import can_punch, disk_bytes, punch_hole
from core.store.queue_index import IndexPart
from core.store.queue_names import QueueNames
from core.store.sealed_index import SealedIndex, write_sealed_index
from core.store.segments import Segment
from core.store.steps import advance

LOGGER = logging.getLogger(__name__)
_GAIN_SHARE = 16  # a segment is left as it is where less than this part of its room would be given back
_HOLES_A_STEP = 64  # calls into the file system, between which other work of the thread has its turn
_ENTRIES_A_STEP = 1 << 20  # 4 MiB: so much is checked in one step


class Wish:
    """One segment that is to be reduced to what is needed of it, and how far that is.

    Args:
        segment: The segment, a full one.
        part: Its entries in the index.
        source: Where these are.
        needed: How many of them are needed.
        floors: For each queue of which something may be needed, from which offset on.
    """

    def __init__(
        self, segment: Segment, part: IndexPart, source: SealedIndex, needed: int, floors: dict[int, int]
    ) -> None:
        self.segment = segment
        self.part = part
        self.source = source
        self.needed = needed
        self.floors = floors
        self.reduced: SealedIndex | None = None  # None: it stays as it is
        self.is_failed = False  # for want of room, or while queue names grew: worth another try
        self.is_damaged = False
        self.writes: Writes = []
        self.holes: Holes = []


class Puncher:
    """What the two threads hand to each other. `work` runs on one; all else is the owner's.

    `wishes` and `agreed` are for `work`; `planned` and `done` are what came of them. Whatever is still in one of them
    may be taken out of it.
    """

    def __init__(self, names: QueueNames, index_folder: Path) -> None:
        self.wishes: deque[Wish] = deque()
        self.planned: deque[Wish] = deque()
        self.agreed: deque[Wish] = deque()
        self.done: deque[Wish] = deque()
        self.is_able = True  # until the file system turns out to know no holes
        self.bytes_punched = 0
        self._is_tried = False
        self._names = names
        self._folder = index_folder
        self._steps: Iterator[None] | None = None
        self._is_punching = False

    def work(self) -> None:
        """Do the next step, a few ms of the interpreter's time at most.

        Raises:
            FlushFailedError: The disk refused what must be written.
        """
        if self._steps is None:
            self._steps = self._next_steps()
        self._steps = advance(self._steps)

    def finish(self) -> None:
        """End what has been begun in a segment; all else is let go of."""
        while self._is_punching:
            self.work()
        self._steps = None

    def _next_steps(self) -> Iterator[None] | None:
        with suppress(IndexError):
            return self._punch(self.agreed.popleft())
        with suppress(IndexError):
            return self._plan(self.wishes.popleft())
        return None

    def _plan(self, wish: Wish) -> Iterator[None]:
        try:
            yield from self._reduce(wish)
        except (DiskFullError, NamesBusyError):
            wish.is_failed = True
        except (CorruptRecordError, OSError) as error:
            wish.is_damaged = True
            LOGGER.warning("a segment stays whole: it is damaged segment=%d reason=%s", wish.segment.base, error)
        self.planned.append(wish)

    def _reduce(self, wish: Wish) -> Iterator[None]:
        """Plan the gaps of a segment where they are worth it, and write its reduced index."""
        if not self._may_punch(wish.segment.path.parent):
            return
        segment = wish.segment
        fd = os.open(segment.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            plan = GapPlan(fd, segment.base, segment.size, source=wish.source, names=self._names, floors=wish.floors)
            yield from plan.steps()
            gain = disk_bytes(os.fstat(fd)) - plan.needed_bytes
            if gain < max(GAP_WORTH, segment.disk_bytes // _GAIN_SHARE):
                return
            yield from plan.finish()
        finally:
            os.close(fd)
        wish.writes = plan.writes
        wish.holes = plan.holes
        path = self._folder / segment_name(segment.base)
        write_sealed_index(path, plan.entries, segment.base, wish.part.names_count, wish.part.fingerprint)
        yield
        reduced = SealedIndex.open(path)
        for start in range(0, reduced.entry_count, _ENTRIES_A_STEP):
            reduced.check_all(start, start + _ENTRIES_A_STEP)  # so that nobody rebuilds it from a log that is changed
            yield
        wish.reduced = reduced

    def _may_punch(self, folder: Path) -> bool:
        if not self._is_tried:
            self._is_tried = True
            self.is_able = can_punch(folder.parent)
            if not self.is_able:
                LOGGER.warning("the file system knows no holes: segments stay whole as long as anything is needed")
        return self.is_able

    def _punch(self, wish: Wish) -> Iterator[None]:
        segment = wish.segment
        path = self._folder / (segment_name(segment.base) + GAPS_SUFFIX)
        self._is_punching = True
        try:
            fd = os.open(segment.path, os.O_RDWR | os.O_CLOEXEC)
            try:
                yield from self._write(wish, fd, path)
            finally:
                segment.disk_bytes = disk_bytes(os.fstat(fd))
                os.close(fd)
        except DiskFullError:
            wish.is_failed = True
        except OSError as error:
            raise FlushFailedError(error.strerror or str(error)) from error
        finally:
            self._is_punching = False
        self.done.append(wish)

    def _write(self, wish: Wish, fd: int, path: Path) -> Iterator[None]:
        """Write the gaps, and only when they are on disk, give the pages back."""
        before = disk_bytes(os.fstat(fd))
        write_gap_file(path, wish.writes, wish.holes)  # before the gaps: a start goes on by it after a kill
        write_gaps(fd, wish.segment.path, wish.writes)
        yield
        for number, (start, end) in enumerate(wish.holes):
            punch_hole(fd, start, end)
            if number % _HOLES_A_STEP == 0:
                yield
        os.fsync(fd)
        forget_gap_file(path)
        after = disk_bytes(os.fstat(fd))
        self.bytes_punched += max(before - after, 0)
        LOGGER.info(
            "gave room back segment=%d bytes=%d left=%d entries=%d",
            wish.segment.base,
            before - after,
            after,
            wish.needed,
        )
