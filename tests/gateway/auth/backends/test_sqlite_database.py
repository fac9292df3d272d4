from __future__ import annotations

import sqlite3
import time
import tracemalloc

import pytest

from gateway.auth.backends.question import BackendError
from gateway.auth.backends.sqlite_database import SqliteDatabase
from gateway.settings.models import SettingsError

QUERY = "SELECT word FROM words WHERE name = :name"
FOREVER = "WITH RECURSIVE n(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM n) SELECT max(k) FROM n WHERE :name = :name"


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a user's #1?.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE words (name TEXT, word TEXT)")
        connection.execute("INSERT INTO words VALUES ('ann', 'one'), ('ann', 'two'), ('x'' OR 1=1 --', 'odd')")
    connection.close()
    return path


def test_rows_are_read_with_named_values(path):
    database = SqliteDatabase(path, 1_000)
    assert database.fetch(QUERY, {"name": "ann"}, 5) == (["word"], [("one",), ("two",)])
    assert database.fetch(QUERY, {"name": "ann"}, 1)[1] == [("one",)]
    assert database.fetch(QUERY, {"name": "x' OR 1=1 --"}, 5)[1] == [("odd",)]
    database.leave()
    database.leave()


def test_nothing_is_written(path):
    database = SqliteDatabase(path, 1_000)
    with pytest.raises(BackendError, match="readonly"):
        database.fetch("DELETE FROM words", {}, 1)
    assert len(database.fetch("SELECT * FROM words", {}, 9)[1]) == 3
    database.leave()


def test_query_that_does_not_end_is_stopped_and_one_that_is_locked_out_gives_up(path):
    database = SqliteDatabase(path, 30)
    began = time.monotonic()
    with pytest.raises(BackendError, match="interrupted"):
        database.fetch(FOREVER, {"name": "x"}, 1)
    other = sqlite3.connect(path)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(BackendError, match="locked"):
        database.fetch(QUERY, {"name": "ann"}, 1)
    other.close()
    assert time.monotonic() - began < 5
    assert database.fetch(QUERY, {"name": "ann"}, 1)[1] == [("one",)]
    database.leave()


def test_file_that_is_missing_or_no_database_is_told(path):
    with pytest.raises(SettingsError, match="there is no file"):
        SqliteDatabase(path.with_name("none"), 100)
    path.write_bytes(b"rubbish" * 1_000)
    with pytest.raises(BackendError, match="not a database"):
        SqliteDatabase(path, 100).fetch(QUERY, {"name": "ann"}, 1)


@pytest.mark.parametrize("text", ["hex(zeroblob(400000000))", "zeroblob(100000)"])
def test_text_that_is_huge_is_refused_and_never_read(path, text):
    database = SqliteDatabase(path, 5_000)
    tracemalloc.start()
    try:
        with pytest.raises(BackendError, match="too big"):
            database.fetch(f"SELECT {text}", {}, 5)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert database.fetch(QUERY, {"name": "ann"}, 1)[1] == [("one",)]
    database.leave()


def test_rows_that_are_too_long_together_are_none_and_only_so_many_are_read(path):
    database = SqliteDatabase(path, 5_000)
    rows = "WITH RECURSIVE n(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM n) SELECT hex(zeroblob({size})) FROM n"
    with pytest.raises(BackendError, match="the query gives more than"):
        database.fetch(rows.format(size=20_000), {}, 257)
    assert len(database.fetch(rows.format(size=10), {}, 257)[1]) == 257
    database.leave()
