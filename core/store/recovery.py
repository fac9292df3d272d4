"""From what a stopped, killed or damaged store left on disk to indexes that agree with the log.

The log is the truth. Full segments are taken by their index files where these belong to them; only the newest one is
read record by record, and its torn tail is cut. Whatever index is missing or foreign is built anew from the log.
"""

from __future__ import annotations

import logging
from pathlib import Path

from core.errors import CorruptRecordError
from core.message import StoredBatch
from core.store.disk import new_file, write_all
from core.store.dispatcher import Dispatcher
from core.store.gap_file import finish_gaps
from core.store.head_index import HeadIndex
from core.store.layout import (
    BLANK_BYTES,
    GAPS_SUFFIX,
    NAMES_FILE,
    NEXT_OFFSETS_FILE,
    RECORD_BYTES_MIN,
    segment_name,
    segment_paths,
)
from core.store.log_check import LogCheck
from core.store.log_survey import Stretch
from core.store.mapped_file import MappedFile, disk_bytes
from core.store.mend import fill_holes, next_base
from core.store.next_offsets import read_next_offsets
from core.store.queue_index import IndexPart, QueueIndex
from core.store.queue_names import QueueNames
from core.store.record import BLANK, find_sound, record_size
from core.store.sealed_index import SealedIndex
from core.store.segments import Segment, Segments
from core.store.set_lookup import SetLookup
from core.store.set_rescue import SetRescue

LOGGER = logging.getLogger(__name__)
_CHUNK_BYTES = 1 << 16  # copied to be looked at, so never a whole segment
WHOLE = LogCheck([], [], -1)


class RecoveryReport:
    """What was done, for logs and tests."""

    def __init__(self) -> None:
        self.known_end = -1  # so far the log was on disk for certain, -1: nothing told
        self.newest_ms = 0  # when the newest message that was looked at was stored
        self.records_scanned = 0
        self.damaged_at: list[int] = []  # physical offsets of records that are skipped
        self.entries_lost = 0
        self.sets_restored_at: list[int] = []  # physical offsets of damaged dispatch sets that nothing was lost with
        self.unplaced: dict[
            int, list[int]
        ] = {}  # damaged sets -> their messages: count, first and last physical offset
        self.tail_bytes_cut = 0
        self.indexes_rebuilt = 0
        self.losses: list[Stretch] = []  # what of the log was on disk before
        self.names_damaged = 0  # files of queue names that were made good, or set aside


class Recovered:
    """A log and its indexes, ready for use; `position` is where the next record goes in the newest segment."""

    def __init__(self, names: QueueNames, index: QueueIndex, report: RecoveryReport) -> None:
        self.names = names
        self.index = index
        self.position = 0
        self.store_ms = 0
        self.report = report


def recover(segments: Segments, index_folder: Path, check: LogCheck = WHOLE) -> Recovered:
    """Bring the indexes in `index_folder` to agree with the log, and cut what is torn off the log's end.

    Args:
        segments: The log.
        index_folder: Has what is known of it.
        check: What is missing of the log. Where that was on disk before, no offset of it is given again.

    Raises:
        DiskFullError: No room for an index file that has to be built.
        DataFolderUnusableError: A file cannot be opened.
    """
    report = RecoveryReport()
    report.known_end = check.known_end
    _finish_gaps(segments, index_folder)
    names = _open_names(index_folder, report)
    head = HeadIndex(names.count)
    index = QueueIndex(index_folder, names, head, lambda base: rebuild_index(segments, names, base))
    result = Recovered(names, index, report)
    covered_until = _apply_next_offsets(index)
    if check.losses:
        short = _learn_from_missing(result, segments, check)
        _take_all(result, segments, segments.segments, covered_until, short)
        _go_on_behind(result, segments, check, covered_until)
    elif segments.segments:
        fill_holes(segments, index_folder.parent)
        _remove_strays(segments.segments[:-1], index_folder)
        _take_all(result, segments, segments.segments[:-1], covered_until, set())
        _cover(index, covered_until, segments.newest_base)
        _scan_newest(result, segments)
    _log_report(result.report)
    return result


def _take_all(result: Recovered, segments: Segments, full: list[Segment], covered_until: int, short: set[int]) -> None:
    """Take full segments in; the index files of those in `short`, by their bases, say more than there is."""
    for segment in full:
        part = _take_full(result, segments, segment, is_short=segment.base in short)
        result.index.parts.append(part)
        if segment.base >= covered_until:
            _raise_next_offsets(result.index.head, part, result.names.count)


def _learn_from_missing(result: Recovered, segments: Segments, check: LogCheck) -> set[int]:
    """Let no queue go back behind what the indexes of missing and short segments say; return the bases of the short."""
    cut_at = {stretch.start for stretch in (*check.holes, *check.losses)}
    short = {segment.base for segment in segments.segments if segment.end in cut_at}
    if segments.segments:
        short.add(segments.newest_base)
    whole = {segment.base for segment in segments.segments} - short
    for base, _ in segment_paths(result.index.folder):
        source = _open_sealed(result, base) if base not in whole else None
        if source is not None:
            part = IndexPart(base, source, source.names_count, source.names_fingerprint)
            _raise_next_offsets(result.index.head, part, result.names.count)
            source.close()
    return short


def _go_on_behind(result: Recovered, segments: Segments, check: LogCheck, covered_until: int) -> None:
    """Begin a segment behind all that was ever on disk; no queue goes on with an offset that it may have given.

    Where a queue stood when the log was lost is not known: a stretch of so many bytes held so many records at most.
    """
    index, names = result.index, result.names
    head = index.head
    head.ensure(names.count)
    doubtful = sum(max(loss.end - max(loss.start, covered_until), 0) for loss in check.losses)
    for ref in range(names.count if doubtful else 0):
        head.set_next_offset(ref, head.next_offset(ref) + doubtful // RECORD_BYTES_MIN + 1)
    base = next_base(segments, check.known_end)
    names.write_out()
    names.sync()
    index.write_next_offsets(head, names.count, names.fingerprint(names.count), base)
    _remove_strays(segments.segments, index.folder)  # only now: they knew more
    fill_holes(segments, index.folder.parent, base)
    _take_in_filled(result, segments)
    segments.first_base = base
    segments.roll(0)
    index.head_base = base
    result.report.losses = check.losses


def _finish_gaps(segments: Segments, folder: Path) -> None:
    """End what a killed process was punching out."""
    for path in list(folder.glob(f"*{GAPS_SUFFIX}")):
        segment = next((segment for segment in segments.segments if path.stem == segment_name(segment.base)), None)
        if segment is None:
            path.unlink()
            continue
        is_done = finish_gaps(path, segment.path)
        segment.disk_bytes = disk_bytes(segment.path.stat())
        LOGGER.info("ended the gaps of a segment base=%d was_whole=%s", segment.base, is_done)


def _open_names(folder: Path, report: RecoveryReport) -> QueueNames:
    """Open the names; where both files are damaged, those before the damage: index files that rely on more do not fit.

    A power cut can leave them so, where many names were new: then those that queues without a record need come before.
    """
    path = folder / NAMES_FILE
    try:
        names = QueueNames.open(path)
    except CorruptRecordError as error:
        report.names_damaged += 2
        LOGGER.warning("queue names are damaged, those before are kept path=%s at=%d", path, error.physical_offset)
        kept = path.read_bytes()[: error.physical_offset]
        for damaged in (path.with_name(path.name + ".copy"), path):
            with new_file(damaged, keep=damaged.with_name(damaged.name + ".damaged")) as fd:
                write_all(fd, damaged, memoryview(kept), 0)
        return QueueNames.open(path)
    if names.restored_path is not None:
        report.names_damaged += 1
        LOGGER.warning("damaged queue names are made good by their copy path=%s", names.restored_path)
    return names


def _take_in_filled(result: Recovered, segments: Segments) -> None:
    """Have a part of the index for each segment that stands in place of a missing one too, though nothing is in it."""
    index = result.index
    known = {part.base for part in index.parts}
    for segment in segments.segments:
        if segment.base not in known:
            index.parts.append(_take_full(result, segments, segment, is_short=True))
    index.parts.sort(key=lambda part: part.base)
    index.write_full(segments.segments[-1].end if segments.segments else 0)


def _remove_strays(full: list[Segment], folder: Path) -> None:
    """Delete index files of segments that are gone, or that may still grow."""
    kept = {segment_name(segment.base) for segment in full}
    for path in folder.iterdir():
        if path.name.isdecimal() and path.name not in kept:
            path.unlink()


def _apply_next_offsets(index: QueueIndex) -> int:
    """Set where the queues stood at some position of the log; return that position, 0 where nothing tells."""
    found = read_next_offsets(index.folder / NEXT_OFFSETS_FILE)
    names = index.names
    if (
        found is None
        or found.names_count > names.count
        or found.names_fingerprint != names.fingerprint(found.names_count)
    ):
        return 0
    found.apply(index.head)
    return found.log_position


def _raise_next_offsets(head: HeadIndex, part: IndexPart, queue_count: int) -> None:
    """Take in the entries of a full segment that the file of next offsets does not cover."""
    source = part.source
    head.ensure(queue_count)
    if isinstance(source, SealedIndex):
        ends = ((ref, first + count) for ref, first, count in source.queues())
    else:
        ends = ((ref, source.next_offset(ref)) for ref in range(source.queue_count))
    for ref, end in ends:
        if end > head.next_offset(ref):
            head.set_next_offset(ref, end)


def _cover(index: QueueIndex, covered_until: int, newest_base: int) -> None:
    """Write the next offsets before the newest segment, so that they outlive the full ones."""
    if covered_until < newest_base:
        names = index.names
        names.write_out()
        names.sync()
        index.write_full(newest_base)
        index.write_next_offsets(index.head, names.count, names.fingerprint(names.count), newest_base)


def _take_full(result: Recovered, segments: Segments, segment: Segment, *, is_short: bool) -> IndexPart:
    source = _open_sealed(result, segment.base) if not is_short else None
    if source is not None:
        return IndexPart(segment.base, source, source.names_count, source.names_fingerprint)
    LOGGER.info("rebuilding the index of a segment base=%d", segment.base)
    result.report.indexes_rebuilt += 1
    entries = rebuild_index(segments, result.names, segment.base, result)
    result.names.write_out()
    return result.index.make_part(segment.base, entries)


def _open_sealed(result: Recovered, base: int) -> SealedIndex | None:
    path = result.index.folder / segment_name(base)
    if not path.exists():
        return None
    try:
        index = SealedIndex.open(path)
    except CorruptRecordError as error:
        LOGGER.warning("index file is damaged path=%s reason=%s", path, error.reason)
        return None
    names = result.names
    if (
        index.segment_base == base
        and index.names_count <= names.count
        and index.names_fingerprint == names.fingerprint(index.names_count)
    ):
        return index
    LOGGER.warning("index file belongs to other names or another segment path=%s", path)
    index.close()
    return None


def rebuild_index(segments: Segments, names: QueueNames, base: int, result: Recovered | None = None) -> HeadIndex:
    """Return the entries of one full segment, from its records; what was done is added to `result`."""
    segment = segments.find(base)
    assert segment is not None
    dispatcher = Dispatcher(names, HeadIndex(names.count))
    report = result.report if result is not None else RecoveryReport()
    lookup = SetLookup(dispatcher, base, segments, result.index.parts if result is not None else ())
    scan_segment(dispatcher, MappedFile.open(segment.path, is_writable=False), base, report, lookup)
    if result is not None:
        _add_up(result, dispatcher)
    return dispatcher.head


def _add_up(result: Recovered, dispatcher: Dispatcher) -> None:
    result.report.records_scanned += dispatcher.records
    result.report.entries_lost += dispatcher.lost
    result.store_ms = result.report.newest_ms = max(result.store_ms, dispatcher.store_ms)


def scan_segment(
    dispatcher: Dispatcher, file: MappedFile, base: int, report: RecoveryReport, lookup: SetLookup | None = None
) -> int:
    """Index the sound records of a segment; return the position after the last of them.

    A damaged record with sound ones after it is passed over and reported; what a dispatch set held is restored as far
    as that can be found out, by `lookup` from elsewhere too.
    """
    scratch = StoredBatch(1)
    view = file.view
    rescue = SetRescue(view, base, lookup)
    ranges = file.data_ranges(0)
    data_end = ranges[-1][1] if ranges else 0
    pos = dispatcher.run(view, base, 0)
    while record_size(view, pos) != BLANK:
        found = find_sound(scratch, view, base, pos, data_end)
        if found < 0:
            break
        LOGGER.warning("damaged record is skipped physical_offset=%d bytes=%d", base + pos, found - pos)
        report.damaged_at.append(base + pos)
        lost_from = pos
        restored = rescue.restore(pos, found)
        if restored is not None:
            LOGGER.warning("its dispatch set is restored physical_offset=%d queues=%d", base + pos, len(restored.names))
            report.sets_restored_at.append(base + pos)
            dispatcher.take_set(base + pos, restored.names, restored.offsets)
            lost_from += restored.size
        if lost_from < found:
            dispatcher.lose(view, base, lost_from, found)
        pos = dispatcher.run(view, base, found)
    dispatcher.settle()
    _report_unplaced(dispatcher, base, report)
    return pos


def _report_unplaced(dispatcher: Dispatcher, base: int, report: RecoveryReport) -> None:
    """Say which messages are not in the queues of their set, because nothing tells which queues those are."""
    for place, (count, first, last) in dispatcher.unplaced.items():
        report.unplaced[place] = [count, base + first, base + last]
        LOGGER.warning(
            "messages are not in the queues of a damaged dispatch set physical_offset=%d messages=%d first=%d last=%d",
            place,
            count,
            base + first,
            base + last,
        )


def _scan_newest(result: Recovered, segments: Segments) -> None:
    segment = segments.segments[-1]
    file = segments.open_newest()
    assert file is not None
    dispatcher = Dispatcher(result.names, result.index.head)
    lookup = SetLookup(dispatcher, segment.base, segments, result.index.parts)
    result.position = scan_segment(dispatcher, file, segment.base, result.report, lookup)
    _add_up(result, dispatcher)
    result.index.head_base = segment.base
    if record_size(file.view, result.position) == BLANK:  # it was full, and the next one did not outlast a power cut
        following = segments.roll(result.position + BLANK_BYTES)
        result.index.seal_head(segment.base, following.base)
        result.position = 0
        return
    result.report.tail_bytes_cut = cut_tail(file, result.position)


def cut_tail(file: MappedFile, position: int) -> int:
    """Fill the file with zeros from `position` on where it holds anything else; return how many bytes that were."""
    cut = 0
    for start, end in file.data_ranges(position):
        for at in range(start, end, _CHUNK_BYTES):
            stop = min(at + _CHUNK_BYTES, end)
            size = stop - at - bytes(file.view[at:stop]).count(0)
            if size:
                file.view[at:stop] = bytes(stop - at)
                cut += size
    return cut


def _log_report(report: RecoveryReport) -> None:
    if report.damaged_at or report.tail_bytes_cut or report.entries_lost or report.indexes_rebuilt:
        LOGGER.warning(
            "recovered records_scanned=%d damaged=%d entries_lost=%d tail_bytes_cut=%d indexes_rebuilt=%d",
            report.records_scanned,
            len(report.damaged_at),
            report.entries_lost,
            report.tail_bytes_cut,
            report.indexes_rebuilt,
        )
