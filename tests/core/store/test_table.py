"""Definitions: tables of keys and values, committed in groups."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from core.errors import DataFolderUnusableError, DiskFullError, FlushFailedError
from core.store.table import (
    COVER_STEP_BYTES,
    SLICE_MAX,
    Definitions,
)
from tests.support.definitions import commit, rows_on_disk
from tests.support.files import file_size_limit

KILLED = """
import itertools, pathlib, sys
from core.row_format import RowFormat
from core.store.table import Definitions
definitions = Definitions.open(pathlib.Path(sys.argv[1]))
for number in itertools.count(int(sys.argv[2])):
    for name in ("one", "two"):
        definitions.table(name).put(b"number", b"%d" % number)
    definitions.commit(definitions.begin_commit())
    sys.stdout.write(f"{number}\\n")
    sys.stdout.flush()
"""


def test_a_table_is_a_mapping(tmp_path):
    definitions = Definitions.open(tmp_path / "d.db")
    table = definitions.table("sessions")
    table.put(b"a", b"1")
    table.put(b"b", b"")
    table.put(b"a", b"2")
    table.delete(b"missing")
    assert table.get(b"a") == b"2"
    assert table.get(b"c") is None
    assert (len(table), b"b" in table, b"c" in table) == (2, True, False)
    table.delete(b"b")
    assert dict(table.items()) == {b"a": b"2"}
    assert definitions.table("sessions") is table
    definitions.close()


def test_changes_are_on_disk_after_a_commit_and_not_before(tmp_path):
    path = tmp_path / "d.db"
    definitions = Definitions.open(path)
    definitions.table("t").put(b"a", b"1")
    assert definitions.dirty
    snapshot = definitions.begin_commit()
    definitions.table("t").put(b"b", b"2")
    definitions.commit(snapshot)
    assert rows_on_disk(path, "t") == {b"a": b"1"}
    assert definitions.dirty
    commit(definitions)
    assert rows_on_disk(path, "t") == {b"a": b"1", b"b": b"2"}
    assert not definitions.dirty
    definitions.close()


def test_a_value_that_did_not_change_is_not_written(tmp_path):
    definitions = Definitions.open(tmp_path / "d.db")
    definitions.table("t").put(b"a", b"1")
    commit(definitions)
    definitions.table("t").put(b"a", b"1")
    assert not definitions.dirty
    definitions.close()


def test_a_commit_runs_on_another_thread(tmp_path):
    definitions = Definitions.open(tmp_path / "d.db")
    with ThreadPoolExecutor(1) as flush_thread:
        for number in range(20):
            definitions.table(f"t{number}").put(b"%d" % number, b"x")
            committing = flush_thread.submit(definitions.commit, definitions.begin_commit())
            definitions.table(f"u{number}").put(b"%d" % number, b"y")
            committing.result()
    definitions.close()
    again = Definitions.open(tmp_path / "d.db")
    assert [again.table(f"t{n}").get(b"%d" % n) for n in range(20)] == [b"x"] * 20
    assert [again.table(f"u{n}").get(b"%d" % n) for n in range(20)] == [b"y"] * 20
    again.close()


def test_closing_commits_what_is_left(tmp_path):
    definitions = Definitions.open(tmp_path / "d.db")
    definitions.table("t").put(b"a", b"1")
    definitions.close()
    assert rows_on_disk(tmp_path / "d.db", "t") == {b"a": b"1"}


@pytest.mark.parametrize("name", ["", "T", "a b", 'a"; DROP', "1a"])
def test_a_wrong_table_name_is_refused(tmp_path, name):
    definitions = Definitions.open(tmp_path / "d.db")
    with pytest.raises(ValueError, match="name"):
        definitions.table(name)
    definitions.close()


def test_a_failed_commit_is_made_good_by_the_next(tmp_path):
    path = tmp_path / "d.db"
    definitions = Definitions.open(path)
    table = definitions.table("t")
    table.put(b"small", b"1")
    commit(definitions)
    table.put(b"big", bytes(200_000))
    table.put(b"small", b"2")
    definitions._connection.execute("PRAGMA max_page_count = 8")
    with pytest.raises(DiskFullError):
        commit(definitions)
    assert rows_on_disk(path, "t") == {b"small": b"1"}
    assert definitions.dirty
    table.put(b"small", b"3")
    definitions._connection.execute("PRAGMA max_page_count = 1000")
    commit(definitions)
    assert rows_on_disk(path, "t") == {b"small": b"3", b"big": bytes(200_000)}
    definitions.close()


def test_a_disk_that_refuses_is_not_a_commit(tmp_path):
    definitions = Definitions.open(tmp_path / "d.db")
    definitions.table("t").put(b"big", bytes(200_000))
    with file_size_limit(50_000), pytest.raises(FlushFailedError):
        commit(definitions)
    assert definitions.dirty
    definitions.close()
    assert rows_on_disk(tmp_path / "d.db", "t") == {b"big": bytes(200_000)}


def test_a_file_that_is_no_database_is_refused(tmp_path):
    (tmp_path / "d.db").write_bytes(b"no database" * 1_000)
    with pytest.raises(DataFolderUnusableError, match="damaged database"):
        Definitions.open(tmp_path / "d.db")


def test_a_folder_that_is_missing_is_refused(tmp_path):
    with pytest.raises(DataFolderUnusableError, match="database"):
        Definitions.open(tmp_path / "none" / "d.db")


def test_a_damaged_row_is_never_served(tmp_path):
    path = tmp_path / "d.db"
    definitions = Definitions.open(path)
    definitions.table("t").put(b"key", b"a value to find")
    definitions.close()
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"a value to find", b"b value to find"))
    definitions = Definitions.open(path)
    with pytest.raises(DataFolderUnusableError, match="damaged row in table t"):
        definitions.table("t")
    definitions.close()


def test_damage_anywhere_is_refused_or_harmless(tmp_path):
    path = tmp_path / "d.db"
    definitions = Definitions.open(path)
    rows = {b"key-%03d" % n: b"value %d " % n * 5 for n in range(200)}
    for key, value in rows.items():
        definitions.table("t").put(key, value)
    definitions.close()
    whole = path.read_bytes()
    refused = 0
    for at in range(0, len(whole), 211):
        damaged = bytearray(whole)
        damaged[at] ^= 0x41
        path.write_bytes(damaged)
        try:
            definitions = Definitions.open(path)
        except DataFolderUnusableError:
            refused += 1
            continue
        try:
            assert set(definitions.table("t").items()) <= set(rows.items())
        except DataFolderUnusableError:
            refused += 1
        finally:
            definitions.close()
    assert refused > 20


class TableModel(RuleBasedStateMachine):
    """Random use, commits and crashes beside two dicts."""

    folders = None

    def __init__(self):
        super().__init__()
        self.path = self.folders.mktemp("table") / "d.db"
        self.definitions = Definitions.open(self.path)
        self.now, self.durable = {}, {}

    @rule(key=st.binary(max_size=2), value=st.binary(max_size=9))
    def put(self, key, value):
        self.definitions.table("t").put(key, value)
        self.now[key] = value

    @rule(key=st.binary(max_size=2))
    def delete(self, key):
        self.definitions.table("t").delete(key)
        self.now.pop(key, None)

    @rule()
    def commit(self):
        commit(self.definitions)
        self.durable = dict(self.now)

    @rule()
    def crash(self):
        self.definitions._connection.close()
        self.definitions = Definitions.open(self.path)
        self.now = dict(self.durable)

    @rule()
    def read(self):
        assert dict(self.definitions.table("t").items()) == self.now

    def teardown(self):
        self.read()
        self.definitions.close()


def test_random_use_with_crashes(tmp_path_factory):
    model = type("Model", (TableModel,), {"folders": tmp_path_factory})
    case = model.TestCase
    case.settings = settings(max_examples=10, stateful_step_count=20, deadline=None)
    case().runTest()


@pytest.mark.slow
def test_a_killed_writer_loses_no_commit_that_it_reported(tmp_path):
    number = 0
    for _ in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(tmp_path / "d.db"), str(number)],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        for _ in range(20):
            reported = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        reported = int((process.stdout.read().split() or [reported])[-1])
        process.wait()
        process.stdout.close()
        definitions = Definitions.open(tmp_path / "d.db")
        found = [int(definitions.table(name).get(b"number")) for name in ("one", "two")]
        assert found[0] == found[1]
        assert found[0] in {reported, reported + 1}
        number = found[0] + 1
        definitions.close()


def reopened_covered(path):
    definitions = Definitions.open(path)
    definitions.close()
    return definitions.covered_until


def test_what_the_log_has_changed_is_kept_with_the_changes(tmp_path):
    path = tmp_path / "d.db"
    definitions = Definitions.open(path)
    assert definitions.covered_until == 0
    definitions.table("t").put(b"a", b"1")
    definitions.note_covered(500)
    snapshot = definitions.begin_commit()
    definitions.note_covered(900)  # of records that change what comes with the next commit
    definitions.commit(snapshot)
    assert reopened_covered(path) == 500
    commit(definitions)
    assert reopened_covered(path) == 500  # nothing was changed: not worth a commit
    definitions.table("t").put(b"a", b"2")
    commit(definitions)
    assert reopened_covered(path) == 900
    definitions.close()


def test_what_the_log_has_changed_is_kept_by_itself_when_much_was_written_since(tmp_path):
    path = tmp_path / "d.db"
    definitions = Definitions.open(path)
    definitions.note_covered(COVER_STEP_BYTES)
    commit(definitions)
    assert reopened_covered(path) == COVER_STEP_BYTES
    definitions.note_covered(100)  # the machine failed, and the log is shorter than it was
    commit(definitions)
    assert reopened_covered(path) == 100
    definitions.close()


def test_failed_commit_keeps_no_more_of_the_log_than_it_did(tmp_path):
    path = tmp_path / "d.db"
    definitions = Definitions.open(path)
    definitions.table("t").put(b"a", b"x" * 100_000)
    definitions.note_covered(700)
    with file_size_limit(4096), pytest.raises((DiskFullError, FlushFailedError)):
        commit(definitions)
    assert reopened_covered(path) == 0
    commit(definitions)
    assert reopened_covered(path) == 700
    definitions.close()


class _Counting:
    """A connection that counts the rows of each call."""

    def __init__(self, connection):
        self._connection = connection
        self.counts = []

    def __getattr__(self, name):
        return getattr(self._connection, name)

    def executemany(self, text, rows):
        rows = list(rows)
        self.counts.append(len(rows))
        return self._connection.executemany(text, rows)


def test_a_large_commit_is_written_and_forgotten_in_slices(tmp_path):
    path = tmp_path / "d.db"
    definitions = Definitions.open(path)
    definitions._connection = counting = _Counting(definitions._connection)
    table, other = definitions.table("t"), definitions.table("u")
    for i in range(2_500):
        table.put(b"%d" % i, b"x")
    other.put(b"a", b"1")
    table.delete(b"7")
    snapshot = definitions.begin_commit()
    steps = definitions.commit_in_slices(snapshot)
    sizes = []
    for _ in steps:
        sizes.append(sum(map(len, snapshot.slices)))
        assert snapshot.is_done == (len(sizes) > 3)  # all slices are one transaction
    assert sizes == [2_502] * 3 + [2_000, 1_000, 0]
    assert max(counting.counts) <= SLICE_MAX
    assert (len(rows_on_disk(path, "t")), rows_on_disk(path, "u")) == (2_499, {b"a": b"1"})
    definitions.close()


def test_a_commit_that_is_given_up_in_between_is_made_by_the_next(tmp_path):
    path = tmp_path / "d.db"
    definitions = Definitions.open(path)
    table = definitions.table("t")
    for i in range(SLICE_MAX + 1):
        table.put(b"%d" % i, b"x")
    steps = definitions.commit_in_slices(definitions.begin_commit())
    next(steps)
    steps.close()
    assert definitions.dirty
    commit(definitions)
    assert len(rows_on_disk(path, "t")) == SLICE_MAX + 1
    definitions.close()
