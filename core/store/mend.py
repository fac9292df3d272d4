"""A log with stretches missing, made one again: nothing that is left moves, and no position is given twice.

A segment whose end is missing is closed where its records end; in place of a missing one stands one that holds a gap
and nothing else. So each segment starts where the one before it ends, for RocketMQ's broker too.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

from core.store.disk import make_durable, sync_file, sync_folder
from core.store.gap import GAP_BYTES_MIN, make_blank, make_gap
from core.store.layout import BLANK_BYTES, NEXT_SEGMENT_FILE, segment_name
from core.store.log_check import LogEnd, find_log_end
from core.store.mapped_file import MappedFile
from core.store.segments import Segment, Segments

LOGGER = logging.getLogger(__name__)


def next_base(segments: Segments, known_end: int) -> int:
    """Return where a segment may start that holds nothing yet when the log was on disk up to `known_end` before."""
    whole = _whole(segments)
    if not segments.segments:
        return -(-known_end // whole) * whole
    base = _end_when_whole(segments.segments[-1], whole)
    return base + max(-(-(known_end - base) // whole), 0) * whole


def _whole(segments: Segments) -> int:
    """Return the size of a whole segment: that of new segments, where one has it or there is none, else the largest."""
    sizes = [segment.size for segment in segments.segments]
    return segments.segment_bytes if segments.segment_bytes in sizes or not sizes else max(sizes)


def _end_when_whole(segment: Segment, whole: int) -> int:
    return segment.base + max(segment.size, whole)


def fill_holes(segments: Segments, spare: Path, end: int = -1) -> None:
    """Have segments follow one another, up to `end` where that is given: where the next one is to start.

    Done again after it was broken off, it does what is left.

    Raises:
        FlushFailedError: The disk refused.
        OSError: A file cannot be made or written.
    """
    whole = _whole(segments)
    ends = [segment.base for segment in segments.segments[1:]]
    if end >= 0:
        ends.append(end)
    for segment, after in zip(list(segments.segments), ends, strict=False):
        if segment.end < after or after == end:
            size = min(_end_when_whole(segment, whole), after) - segment.base
            log_end = _close(segment, size)
            for base in range(segment.base + size, after, whole):
                _make_gap_segment(segments, spare, base, min(whole, after - base), log_end.store_ms)
    segments.load()


def _close(segment: Segment, size: int) -> LogEnd:
    """Give a segment its size, and let nothing follow its last sound record."""
    fd = os.open(segment.path, os.O_RDWR | os.O_CLOEXEC)
    try:
        view = MappedFile.open(segment.path, is_writable=False).view
        end = find_log_end(view, segment.base, len(view))
        os.ftruncate(fd, size)
        if size - end.position >= BLANK_BYTES:
            position, blank = make_blank(end.position, size)
            os.pwrite(fd, blank, position)
        sync_file(fd)
    finally:
        os.close(fd)
    LOGGER.info("closed a segment at the end of its records segment=%d at=%d", segment.base, end.position)
    return end


def _make_gap_segment(segments: Segments, spare: Path, base: int, size: int, store_ms: int) -> None:
    """Make a segment of which nothing is kept; it takes no room."""
    path = spare / f"{NEXT_SEGMENT_FILE}0"
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o640)
    try:
        os.ftruncate(fd, size)
        for position, data in [*make_gap(base, 0, GAP_BYTES_MIN, store_ms, b""), make_blank(GAP_BYTES_MIN, size)]:
            os.pwrite(fd, data, position)
        path.rename(segments.folder / segment_name(base))
        make_durable(fd, segments.folder / segment_name(base))
    finally:
        os.close(fd)
    sync_folder(spare)
    LOGGER.info("made a segment in place of a missing one segment=%d bytes=%d", base, size)
