"""Tells which part of a log is there to read, and which part was written and is missing, before a reader begins."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from core.errors import DataFolderUnusableError
from core.store.layout import segment_name, segment_paths

RECORD = "record"  # or several
LOST_SET = "dispatch set"  # its messages are there, their queues are not known
RESTORED_SET = "dispatch set, restored"


class Stretch(NamedTuple):
    """Physical offsets [start, end) of which the records cannot be read."""

    start: int
    end: int
    what: str

    def __str__(self) -> str:
        return f"{self.what}: positions {self.start} to {self.end}"


class SegmentFile(NamedTuple):
    """One file of the log."""

    base: int
    size: int
    path: Path

    @property
    def end(self) -> int:
        """The physical offset after the last byte of the file."""
        return self.base + self.size


def list_files(folder: Path) -> list[SegmentFile]:
    """Return the segments' files in their order; one that retention deletes meanwhile is left out."""
    files: list[SegmentFile] = []
    for base, path in segment_paths(folder):
        try:
            files.append(SegmentFile(base, path.stat().st_size, path))
        except FileNotFoundError:
            continue
    return files


def find_missing(files: list[SegmentFile], confirmed_end: int) -> list[Stretch]:
    """Return what lies between the files, and after the last of them before `confirmed_end`.

    Raises:
        DataFolderUnusableError: Two files hold the same positions.
    """
    missing: list[Stretch] = []
    whole = max((file.size for file in files), default=0)
    for file, after in pairwise(files):
        if file.end > after.base:
            reason = f"segment {after.path.name} lies within {file.path.name}"
            raise DataFolderUnusableError(str(file.path.parent), reason)
        if file.end < after.base:
            missing.append(Stretch(file.end, after.base, _what_is_missing(file, whole)))
    if files and files[-1].end < confirmed_end:
        missing.append(Stretch(files[-1].end, confirmed_end, _what_is_missing(files[-1], whole)))
    if not files and confirmed_end > 0:
        missing.append(Stretch(0, confirmed_end, "there is no segment"))
    return missing


def _what_is_missing(file: SegmentFile, whole: int) -> str:
    if file.size < whole or not file.size:
        return f"segment {file.path.name} has only {file.size} bytes"
    return f"segment {segment_name(file.end)} is missing"
