"""What may go: segments past their age or over the size, whole ones from the old end, the rest by what is needed of it.

The owner of the store goes through them in steps. A segment at the old end that holds nothing needed is
deleted; of the others past their time the puncher is asked to give back the room of what is not needed.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path

from core.log_file import LogFile
from core.settings import RetentionSettings
from core.store.puncher import Puncher, Wish
from core.store.queue_index import IndexPart, QueueIndex
from core.store.sealed_index import SealedIndex
from core.store.segments import Segment, Segments
from core.store.steps import advance

Holder = Callable[[], Iterable[tuple[int, int]]]  # pairs of a queue and the first offset that is still needed

WISHES_MAX = 64  # segments that are on their way; each has its plan in memory
POSITIONS_A_STEP = 256  # positions asked of holders: 2.5 us each for loaded MQTT sessions, twice that for others
LOOKUPS_A_STEP = 4_096  # about 0.1 us each
LOOKUPS_A_ROUND = 400_000  # for segments that were looked at before: a round is run every few seconds
HOLDERS_A_LOOK = 256  # of which `holders_of` asks at once; chosen, as POSITIONS_A_STEP
_FELL_BY = 8  # a segment is gone through again when this part of what was needed of it is not any more
_HOUR_MS = 3_600_000
_DAMAGED = -1


class Retention:
    """Goes through the old segments. `begin` starts a round where there is one to do, `step` does part of it."""

    def __init__(self, segments: Segments, index: QueueIndex, puncher: Puncher, settings: RetentionSettings) -> None:
        self._segments = segments
        self._index = index
        self._puncher = puncher
        self._due_needed: dict[int, int] = {}  # by base: what was needed of those that were due in the last round
        self._found_needed = self._due_needed  # in the round that is under way
        self._holders = array("i"), array("q")  # queues, and from where on each is needed, of the last round
        self.reload(settings)
        self._steps: Iterator[None] | None = None
        self._dropped = 0
        self._wishes: dict[int, Wish] = {}  # by base
        self._taken: list[Wish] = []  # their reduced index is in use since the last `begin`
        self._needed: dict[int, int] = {}  # by base: entries that were needed when it was gone through
        self._floors: dict[int, int] = {}  # of the last round
        self._counted: dict[int, int] = {}  # by base: what is needed by these floors, where that was counted
        self.is_by_age = True  # else only what is over the size goes: it is not the hour for what is old
        self._total_bytes = 0  # of the log, less what segments that were gone through may give back
        self._lookups = 0  # of this step
        self._looked_until = -1  # where the last round ran out of lookups

    def reload(self, settings: RetentionSettings) -> None:
        """Keep what nobody needs for as long, and for as much, as these settings say."""
        self._age_ms = settings.age_hours * _HOUR_MS
        self._bytes_max = settings.bytes_max

    @property
    def bytes_punched(self) -> int:
        """Room that was given back in the middle of the log, since the store was opened."""
        return self._puncher.bytes_punched

    @property
    def is_giving_back(self) -> bool:
        """Whether room in the middle of the log is being given back: `prepare` has work to do; any thread may ask."""
        return bool(self._wishes)

    def begin(self, now_ms: int, holders: Sequence[Holder]) -> None:
        """Start a round where a segment is past its time, unless one is under way.

        The first call after a turn in which readers read agrees to what they can no longer be at. Holders are asked
        only where a round starts: each names a place for every queue that it holds.
        """
        self._collect()
        self._note_newest()
        if self._steps is None:
            self._found_needed = {}
            if next(self._due(now_ms), None) is not None:
                self._steps = self._round(now_ms, holders)

    def step(self) -> bool:
        """Go on with the round, for about 1 ms; return whether there is more to do."""
        self._steps = advance(self._steps)
        if self._steps is None:
            self._due_needed = self._found_needed
        return self._steps is not None

    def take_dropped(self) -> int:
        """Return how many segments were deleted since the last call."""
        dropped, self._dropped = self._dropped, 0
        return dropped

    # What operators are told

    def _note_newest(self) -> None:
        """Have it known when the newest segment began, also when it is full: now it is mapped."""
        segments = self._segments.segments
        if segments:
            self._segments.first_store_ms(segments[-1])

    def tell(self) -> Iterator[LogFile]:
        """Give what is known of the segments, the oldest first, by the last round; nothing of the log is read.

        When the last message of one was stored is told by the first one after it; where that is not known, about, by
        the file's own time.
        """
        self._note_newest()
        segments: list[Segment] = list(self._segments.segments)
        due = self._due_needed
        for segment, after in zip_longest(segments, segments[1:]):
            first_ms = _known(segment.first_store_ms)
            last_ms = None if after is None else _known(after.first_store_ms)
            if last_ms is None and (after is not None or first_ms is not None):
                last_ms = _changed_ms(segment.path, first_ms)
            needed = due.get(segment.base)
            yield LogFile(
                base=segment.base,
                size=segment.size,
                disk_bytes=segment.disk_bytes,
                first_ms=first_ms,
                last_ms=last_ms,
                is_newest=after is None,
                is_due=needed is not None,
                needed=needed if needed != _DAMAGED else None,
            )

    def holders_of(self, base: int) -> Iterator[int | None]:
        """Give the queues of which something in a segment was needed in the last round, each once.

        None stands for a look at `HOLDERS_A_LOOK` queues that found none.
        """
        part = self._index.sealed_part(base)
        if part is None:
            return
        source = part.source
        assert isinstance(source, SealedIndex)
        refs, offsets = self._holders
        for start in range(0, len(refs), HOLDERS_A_LOOK):
            end = min(start + HOLDERS_A_LOOK, len(refs))
            if not source.count_needed(refs, offsets, start, end):
                yield None
                continue
            for k in range(start, end):
                if source.count_needed(refs, offsets, k, k + 1):
                    yield refs[k]

    def _due(self, now_ms: int) -> Iterator[Segment]:
        """Give the segments past their age, and from the oldest on those over the size; never the newest.

        The caller takes from `_total_bytes` what the log may get smaller by, and goes on.
        """
        segments = self._segments
        self._total_bytes = segments.total_bytes
        full = segments.segments[:-1]
        for number, segment in enumerate(full):
            after = full[number + 1] if number + 1 < len(full) else segments.segments[len(segments.segments) - 1]
            store_ms = segments.first_store_ms(after)  # what follows began when this one ended
            is_old = self.is_by_age and 0 <= store_ms < now_ms - self._age_ms
            if not is_old and (self._bytes_max is None or self._total_bytes <= self._bytes_max):
                return
            yield segment

    # What the puncher did

    def _collect(self) -> None:
        """Take in what the other thread has done, and agree to what no reader can be at any more."""
        puncher = self._puncher
        while self._taken:
            puncher.agreed.append(self._taken.pop(0))
        while puncher.planned:
            wish = puncher.planned.popleft()
            if wish.reduced is not None and self._index.replace(wish.part, wish.source, wish.reduced):
                self._taken.append(wish)
            else:
                self._end(wish)
        while puncher.done:
            self._end(puncher.done.popleft())

    def _end(self, wish: Wish) -> None:
        base = wish.segment.base
        del self._wishes[base]
        if not wish.is_failed:
            self._needed[base] = _DAMAGED if wish.is_damaged else wish.needed

    def _is_let_go(self, base: int) -> bool:
        """Return whether the other thread has nothing to do with a segment; what it did not begin is called off."""
        wish = self._wishes.get(base)
        if wish is None:
            return True
        puncher = self._puncher
        for waiting in (self._taken, puncher.wishes, puncher.planned, puncher.agreed, puncher.done):
            with suppress(ValueError):
                waiting.remove(wish)
                del self._wishes[base]
                return True
        return False

    # A round

    def _round(self, now_ms: int, holders: Sequence[Holder]) -> Iterator[None]:
        floors: dict[int, int] = {}
        yield from self._gather(holders, floors)
        refs = array("i")
        offsets = array("q")
        is_same = yield from self._copy_floors(floors, refs, offsets)
        self._floors = floors
        if not is_same:
            self._counted = {}
        self._holders = refs, offsets
        lookups = 0
        is_oldest = True
        for segment in self._due(now_ms):
            part = self._index.sealed_part(segment.base)
            if part is None:
                return  # its index is not written yet
            known = self._find_needed(segment, lookups)
            if known is not None:
                needed = known
            else:
                needed = yield from self._count_needed(part, refs, offsets)
                self._counted[segment.base] = needed
                lookups += len(refs)
                self._looked_until = segment.base
            if needed == 0 and is_oldest and self._is_let_go(segment.base):
                if not self._drop(segment):
                    return
                continue
            is_oldest = False
            self._found_needed[segment.base] = needed
            if segment.base in self._wishes or self._wish(segment, part, needed, floors):
                self._total_bytes -= segment.disk_bytes  # the most that it may give back
        if lookups < LOOKUPS_A_ROUND:
            self._looked_until = -1

    def _gather(self, holders: Sequence[Holder], floors: dict[int, int]) -> Iterator[None]:
        """Ask the holders; what only the newest segment has is left out."""
        first_offset = self._index.head.first_offset
        count = 0
        for holder in holders:
            for ref, offset in holder():
                if offset < first_offset(ref) and offset < floors.get(ref, first_offset(ref)):
                    floors[ref] = offset
                count += 1
                if count % POSITIONS_A_STEP == 0:
                    yield

    def _copy_floors(
        self, floors: dict[int, int], refs: array[int], offsets: array[int]
    ) -> Generator[None, None, bool]:
        """Copy what holders need to columns; return whether it is the same as in the last round."""
        known = self._floors
        is_same = len(floors) == len(known)
        for ref, offset in floors.items():
            refs.append(ref)
            offsets.append(offset)
            if is_same:
                is_same = known.get(ref) == offset
            if len(refs) % POSITIONS_A_STEP == 0:
                yield
        return is_same

    def _find_needed(self, segment: Segment, lookups: int) -> int | None:
        """Return what is needed of a segment where that is not to be counted now, else None."""
        known = self._needed.get(segment.base)
        counted = self._counted.get(segment.base)
        if counted is not None:
            return known if known == _DAMAGED else counted
        return known if known is not None and self._is_put_off(segment, lookups) else None

    def _is_put_off(self, segment: Segment, lookups: int) -> bool:
        """Return whether a segment that was looked at before has its turn in another round."""
        return segment.base <= self._looked_until or lookups >= LOOKUPS_A_ROUND

    def _count_needed(self, part: IndexPart, refs: array[int], offsets: array[int]) -> Generator[None, None, int]:
        source = part.source
        assert isinstance(source, SealedIndex)
        needed = 0
        for start in range(0, len(refs), LOOKUPS_A_STEP):
            needed += source.count_needed(refs, offsets, start, start + LOOKUPS_A_STEP)
            self._lookups += min(len(refs) - start, LOOKUPS_A_STEP)
            if self._lookups >= LOOKUPS_A_STEP:
                self._lookups = 0
                yield
        return needed

    def _drop(self, segment: Segment) -> bool:
        if not self._index.drop_oldest():  # before the segment: the index alone can say that it is not ready to go
            return False
        dropped = self._segments.drop_oldest()
        assert dropped is segment
        self._total_bytes -= segment.disk_bytes
        self._needed.pop(segment.base, None)
        self._counted.pop(segment.base, None)
        self._dropped += 1
        return True

    def _wish(self, segment: Segment, part: IndexPart, needed: int, floors: dict[int, int]) -> bool:
        """Have the room of a segment given back where that can be worth it; return whether."""
        known = self._needed.get(segment.base)
        is_less = known is None or (needed == 0 and known != 0) or needed * _FELL_BY <= known * (_FELL_BY - 1) < known
        if not is_less or not self._puncher.is_able or len(self._wishes) >= WISHES_MAX:
            return False
        source = part.source
        assert isinstance(source, SealedIndex)
        wish = self._wishes[segment.base] = Wish(segment, part, source, needed, floors)
        self._puncher.wishes.append(wish)
        return True


def _known(moment_ms: int) -> int | None:
    return moment_ms if moment_ms >= 0 else None


def _changed_ms(path: Path, first_ms: int | None) -> int | None:
    """Return when a file was written to, as the file system says; not before its first message."""
    try:
        changed_ms = path.stat().st_mtime_ns // 1_000_000
    except OSError:  # it went meanwhile
        return first_ms
    return max(changed_ms, first_ms or 0)
