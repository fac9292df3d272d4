"""What there is of a log's files, and what is missing of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import DataFolderUnusableError
from core.store.log_survey import SegmentFile, Stretch, find_missing, list_files


def files(*ranges):
    return [SegmentFile(base, size, Path(f"{base:020d}")) for base, size in ranges]


def test_a_whole_log_has_nothing_missing():
    assert find_missing(files((128, 64), (192, 64)), 200) == []
    assert find_missing([], 0) == []


@pytest.mark.parametrize(
    ("found", "end", "missing"),
    [
        (files((0, 64), (128, 64)), 150, (64, 128, f"segment {64:020d} is missing")),
        (files((0, 64), (64, 20), (128, 64)), 150, (84, 128, f"segment {64:020d} has only 20 bytes")),
        (files((0, 64), (64, 0), (128, 64)), 150, (64, 128, f"segment {64:020d} has only 0 bytes")),
        (files((0, 64), (64, 64)), 150, (128, 150, f"segment {128:020d} is missing")),
        (files((0, 64), (64, 30)), 100, (94, 100, f"segment {64:020d} has only 30 bytes")),
        ([], 100, (0, 100, "there is no segment")),
    ],
)
def test_what_is_missing_is_named_with_its_positions(found, end, missing):
    assert find_missing(found, end) == [Stretch(*missing)]
    assert str(Stretch(*missing)) == f"{missing[2]}: positions {missing[0]} to {missing[1]}"


def test_segments_over_each_other_are_refused():
    with pytest.raises(DataFolderUnusableError, match="lies within"):
        find_missing(files((0, 64), (32, 64)), 0)


def test_other_files_are_no_segments(tmp_path):
    (tmp_path / f"{64:020d}").write_bytes(b"x" * 10)
    (tmp_path / "notes").write_bytes(b"x")
    assert list_files(tmp_path) == [SegmentFile(64, 10, tmp_path / f"{64:020d}")]
    assert list_files(tmp_path)[0].end == 74
