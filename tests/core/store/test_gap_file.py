from __future__ import annotations

import os

import pytest

from core.errors import DiskFullError
from core.store.gap_file import finish_gaps, forget_gap_file, read_gap_file, write_gap_file, write_gaps

WRITES = [(10, b"head"), (50_000, b"tail")]
HOLES = [(14, 50_000), (60_000, 80_000)]


@pytest.fixture
def segment(tmp_path):
    path = tmp_path / "segment"
    path.write_bytes(b"x" * 100_000)
    return path


def test_what_is_noted_is_done_also_twice(tmp_path, segment):
    expected = bytearray(b"x" * 100_000)
    expected[10:50_004] = b"head" + bytes(49_986) + b"tail"
    expected[60_000:80_000] = bytes(20_000)
    for _ in range(2):
        write_gap_file(tmp_path / "s.gaps", WRITES, HOLES)
        assert read_gap_file(tmp_path / "s.gaps") == (WRITES, HOLES)
        assert finish_gaps(tmp_path / "s.gaps", segment)
        assert segment.read_bytes() == expected
        assert not (tmp_path / "s.gaps").exists()
    assert segment.stat().st_blocks * 512 < 60_000


def test_damaged_note_changes_nothing(tmp_path, segment):
    path = tmp_path / "s.gaps"
    write_gap_file(path, WRITES, HOLES)
    whole = path.read_bytes()
    for damaged in (b"", whole[:-1], whole[:30], whole[:40] + b"?" + whole[41:], b"y" * 200):
        path.write_bytes(damaged)
        assert not finish_gaps(path, segment)
        assert segment.read_bytes() == b"x" * 100_000
        assert not path.exists()
    forget_gap_file(path)


def test_segment_keeps_its_size_where_there_is_no_room(segment, monkeypatch):
    monkeypatch.setattr(os, "pwrite", lambda *_: 0)
    fd = os.open(segment, os.O_RDWR)
    with pytest.raises(DiskFullError):
        write_gaps(fd, segment, WRITES)
    os.close(fd)
    assert segment.stat().st_size == 100_000
