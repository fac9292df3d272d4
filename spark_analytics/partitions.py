"""How a log is cut into parts that are read side by side. Needs no Spark.

A part begins at a segment's start or at a record that was found by the segment's index or from record to record, up to
what was confirmed when the read was planned: what looks like a record inside a body is never a boundary.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from core.errors import DataFolderUnusableError
from core.store.log_survey import Stretch
from core.store.reader import SegmentInfo, StoreReader
from spark_analytics.options import ReadOptions

TASK_BYTES_MIN = 8 << 20  # a smaller part takes less time than its task does


@dataclass(frozen=True)
class LogRange:
    """Physical offsets [start, end) inside the segment at `base`."""

    base: int
    start: int
    end: int


def plan_read(reader: StoreReader, options: ReadOptions) -> list[LogRange]:
    """Return the parts of a log that `options` ask for.

    Raises:
        DataFolderUnusableError: Something of them is missing, and the options do not say to skip it.
    """
    survey = reader.survey()
    if not options.skip_bad_records:
        for lost in find_missing(survey.segments, survey.missing, options):
            raise DataFolderUnusableError(options.path, str(lost))
    whole = plan_ranges(survey.segments, options)
    return [part for one in whole for part in _split(reader, one, options.tasks_per_segment or os.cpu_count() or 1)]


def find_missing(
    segments: Sequence[SegmentInfo], missing: Iterable[Stretch], options: ReadOptions
) -> Iterator[Stretch]:
    """Give what is missing of the positions that `options` name, or of the whole log."""
    start, end = options.starting_offset, options.ending_offset
    if start is not None and segments and start < segments[0].base:
        yield Stretch(start, segments[0].base, "records are not kept any more")
    for lost in missing:
        if (end is None or lost.start < end) and (start is None or start < lost.end):
            yield lost
    if end is not None and end > max((segment.end for segment in segments), default=end):
        yield Stretch(segments[-1].end, end, "the log ends before it")


def plan_ranges(segments: Iterable[SegmentInfo], options: ReadOptions) -> list[LogRange]:
    """Return one range for each segment that may hold a record of the positions and store times asked for."""
    low = options.starting_offset or 0
    high = options.ending_offset
    found = [
        LogRange(segment.base, max(segment.base, low), segment.end if high is None else min(segment.end, high))
        for segment in segments
        if (options.starting_ms is None or segment.last_store_ms >= options.starting_ms)
        and (options.ending_ms is None or segment.first_store_ms < options.ending_ms)
    ]
    return [part for part in found if part.start < part.end]


def _split(reader: StoreReader, whole: LogRange, tasks: int) -> list[LogRange]:
    """Return the parts of one segment, each for one task."""
    count = min(tasks, (whole.end - whole.start) // TASK_BYTES_MIN)
    if count < 2:  # noqa: PLR2004 - nothing to cut
        return [whole]
    inner = [at for at in reader.cut(whole.base, whole.end, count) if at > whole.start]
    return [LogRange(whole.base, *bounds) for bounds in pairwise([whole.start, *inner, whole.end])]
