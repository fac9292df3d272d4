"""The journal: replay, torn tails, flipped bits, full disks, and files that are none of ours."""

from __future__ import annotations

import os
import shutil
import signal
import struct
import subprocess
import sys
import zlib
from itertools import accumulate

import pytest
from hypothesis import given, settings, strategies as st

from core.errors import DataFolderUnusableError, DiskFullError
from core.store.journal import RECORD_BYTES_MAX, Journal, check_record, write_records
from tests.support.files import file_size_limit, fresh_folder
from tests.support.journals import compact, read, write

records_lists = st.lists(st.binary(min_size=1, max_size=RECORD_BYTES_MAX), max_size=30)
HEADER_BYTES = 64
KILLED = """
import itertools, pathlib, sys
from core.store.journal import Journal
from core.store.sync_plan import sync_now
journal = Journal.open(pathlib.Path(sys.argv[1]))
for number in itertools.count(int(sys.argv[2])):
    if number % 500 == 400:
        journal.begin_compaction()
    journal.append(b"%d" % number)
    if number % 500 == 499 and journal.is_compacting:
        journal.finish_compaction()
    sys.stdout.write(f"{number}\\n")
    sys.stdout.flush()
"""


def test_records_come_back_in_order(tmp_path):
    journal = Journal.open(tmp_path / "j")
    journal.append(b"one")
    journal.append_many(b"aabbcc", 2)
    assert list(journal.replay()) == [b"one", b"aa", b"bb", b"cc"]
    journal.close()
    assert read(tmp_path / "j") == [b"one", b"aa", b"bb", b"cc"]


def test_a_journal_that_was_not_closed_comes_back_whole(tmp_path):
    journal = Journal.open(tmp_path / "j")
    journal.append(b"kept")
    copy = fresh_folder(tmp_path)
    shutil.copy(tmp_path / "j", copy / "j")
    assert read(copy / "j") == [b"kept"]
    journal.close()


@pytest.mark.parametrize(("records", "size"), [(b"", 0), (b"x" * 65, 65), (b"abc", 2)])
def test_wrong_sizes_are_refused(tmp_path, records, size):
    journal = Journal.open(tmp_path / "j")
    with pytest.raises(ValueError, match="64 bytes"):
        journal.append_many(records, size)
    journal.begin_compaction()
    with pytest.raises(ValueError, match="64 bytes"):
        journal.append_compacted(records, size)
    assert list(journal.replay()) == []
    journal.close()


def test_the_file_grows(tmp_path):
    journal = Journal.open(tmp_path / "j")
    batch = bytes(range(64)) * 1_000
    for _ in range(5):
        journal.append_many(batch, 64)
    assert journal.bytes_used == HEADER_BYTES + 5_000 * 69
    journal.close()
    assert read(tmp_path / "j") == [bytes(range(64))] * 5_000


@given(records=records_lists, data=st.data())
@settings(max_examples=50, deadline=None)
def test_a_tail_torn_at_any_byte_is_cut_and_written_over(tmp_path_factory, records, data):
    path = tmp_path_factory.mktemp("journal") / "j"
    used = write(path, records)
    size = data.draw(st.integers(0, used))
    os.truncate(path, size)
    journal = Journal.open(path)
    found = list(journal.replay())
    assert found == records[: len(found)]
    assert sum(len(record) + 5 for record in records[: len(found) + 1]) > size - HEADER_BYTES or (found == records)
    journal.append(b"after")
    journal.close()
    assert read(path) == [*found, b"after"]


@given(records=st.lists(st.binary(min_size=1, max_size=64), min_size=1, max_size=20), data=st.data())
@settings(max_examples=80, deadline=None)
def test_a_flipped_bit_ends_the_journal_before_it(tmp_path_factory, records, data):
    path = tmp_path_factory.mktemp("journal") / "j"
    used = write(path, records)
    bit = data.draw(st.integers(0, 8 * used - 1))
    whole = bytearray(path.read_bytes())
    whole[bit // 8] ^= 1 << bit % 8
    path.write_bytes(whole)
    journal = Journal.open(path)
    found = list(journal.replay())
    assert found == records[: len(found)]
    if bit // 8 >= HEADER_BYTES:
        ends = accumulate((len(record) + 5 for record in records), initial=HEADER_BYTES)
        assert len(found) == sum(end <= bit // 8 for end in ends) - 1
        assert journal.lost_bytes > 0
    journal.close()
    assert read(path) == found


def test_damage_does_not_come_back_when_the_journal_is_written_over_it(tmp_path):
    path = tmp_path / "j"
    write(path, [b"aaaa"] * 100)
    whole = bytearray(path.read_bytes())
    whole[HEADER_BYTES + 9 * 50 + 3] ^= 1
    path.write_bytes(whole)
    journal = Journal.open(path)
    assert list(journal.replay()) == [b"aaaa"] * 50
    assert journal.lost_bytes == 9 * 50
    journal.append(b"aaaa")
    journal.close()
    assert read(path) == [b"aaaa"] * 51


@pytest.mark.parametrize("compactions", [1, 2, 3])
@pytest.mark.parametrize("keep", [0, 10, HEADER_BYTES, HEADER_BYTES + 3, 60])
def test_a_journal_that_the_version_before_left_incomplete_is_the_one_before_it(tmp_path, compactions, keep):
    path = tmp_path / "j"
    write(path, [b"old-1", b"old-2"])
    path.rename(tmp_path / ("j.old-" + "1".zfill(20)))
    for number in range(compactions):
        (tmp_path / "made").mkdir()
        journal = Journal.open(tmp_path / "made" / "j")
        compact(journal, [b"new-%d" % number, b"never on disk" * 3])
        journal.close()
        made = (tmp_path / "made" / "j").read_bytes()[:keep]
        shutil.rmtree(tmp_path / "made")
        (path if number + 1 == compactions else tmp_path / f"j.old-{number + 2:020d}").write_bytes(made)
    assert read(path) == [b"old-1", b"old-2"]
    assert [name.name for name in tmp_path.iterdir()] == ["j"]


def test_a_full_disk_while_growing_appends_nothing(tmp_path):
    path = tmp_path / "j"
    journal = Journal.open(path)
    journal.append_many(bytes(64 * 900), 64)
    with file_size_limit(path.stat().st_size):
        with pytest.raises(DiskFullError):
            journal.append_many(b"\x01" * 64 * 200, 64)
        journal.append(b"still room for this one")
    assert list(journal.replay())[-2:] == [bytes(64), b"still room for this one"]
    journal.append_many(b"\x01" * 64 * 200, 64)
    journal.close()
    assert len(read(path)) == 1_101


def test_a_file_that_is_no_journal_is_set_aside_and_an_empty_one_begun(tmp_path, caplog):
    path = tmp_path / "j"
    path.write_bytes(b"nonsense" * 1_000)
    journal = Journal.open(path)
    assert list(journal.replay()) == []
    assert journal.lost_bytes == 8_000
    assert journal.is_damaged
    assert f"path={path} kept={tmp_path / 'j.damaged'} bytes=8000" in caplog.text
    journal.append(b"new")
    journal.close()
    assert (tmp_path / "j.damaged").read_bytes().rstrip(b"\0") == b"nonsense" * 1_000
    journal = Journal.open(path)
    assert list(journal.replay()) == [b"new"]
    assert not journal.is_damaged
    journal.close()


def test_another_journal_is_refused_by_the_names_of_both_and_left_as_it_is(tmp_path):
    write(tmp_path / "mqtt_retained", [bytes(16)] * 3)
    shutil.copy(tmp_path / "mqtt_retained", tmp_path / "pop")
    before = (tmp_path / "pop").read_bytes()
    with pytest.raises(DataFolderUnusableError, match="pop: it is the journal 'mqtt_retained', not 'pop'"):
        Journal.open(tmp_path / "pop")
    assert (tmp_path / "pop").read_bytes() == before


@pytest.mark.parametrize("at", [*range(0, 64, 3), 63])
def test_a_damaged_head_costs_no_record_and_is_told(tmp_path, at, caplog):
    path = tmp_path / "j"
    write(path, [b"one", b"two"])
    whole = bytearray(path.read_bytes())
    whole[at] ^= 4
    path.write_bytes(whole)
    journal = Journal.open(path)
    assert list(journal.replay()) == [b"one", b"two"]
    assert journal.is_damaged
    assert f"path={path}" in caplog.text
    journal.close()
    journal = Journal.open(path)
    assert not journal.is_damaged
    journal.close()


@given(records=records_lists, number=st.integers(0, 1 << 40), is_compacted=st.booleans())
@settings(max_examples=30, deadline=None)
def test_a_journal_of_the_version_before_becomes_one_of_this_version(tmp_path_factory, records, number, is_compacted):
    path = tmp_path_factory.mktemp("journal") / "j"
    used = write(path, records)
    head = struct.pack(">8sIQQ", b"LMQJOURN", 1, number, used - 28 if is_compacted else 36)
    old = head + (zlib.crc32(head) & 0x7FFFFFFF).to_bytes(4, "big") + path.read_bytes()[60:]
    path.write_bytes(old[: 4 * (len(old) // 4)])
    for _ in range(2):
        journal = Journal.open(path)
        assert list(journal.replay()) == records
        assert not journal.is_damaged
        journal.close()


@given(st.binary(max_size=200), st.integers(0, 210))
def test_any_bytes_are_checked_within_bounds(data, pos):
    assert check_record(data, pos, len(data)) in range(RECORD_BYTES_MAX + 1)


def test_records_are_written_within_bounds():
    with pytest.raises(IndexError):
        write_records(bytearray(20), 4, b"x" * 12, 12)


@pytest.mark.slow
def test_a_killed_writer_loses_no_record_that_it_reported(tmp_path):
    path = tmp_path / "j"
    number = 0
    for round_ in range(5):
        process = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(path), str(number)],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        reported = number
        for _ in range(700 + 333 * round_):
            reported = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        reported = int((process.stdout.read().split() or [reported])[-1])
        process.wait()
        process.stdout.close()
        found = [int(record) for record in read(path)]
        assert found[-1] in {reported, reported + 1}
        assert found == list(range(found[0], found[-1] + 1))
        number = found[-1] + 1
