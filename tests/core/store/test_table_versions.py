"""Rows of older versions are brought to that of their owner; those of later ones are refused."""

from __future__ import annotations

import sqlite3
import zlib

import pytest

from core.errors import DataFolderUnusableError
from core.row_format import RowFormat
from core.store.table import (
    Definitions,
)
from tests.support.definitions import rows_on_disk

TEXT_ROWS = RowFormat(3, {0: lambda value: b"0>" + value, 2: lambda value: value + b"<2"})


def old_database(path, rows):
    """Write a table as gateways did whose rows said no version."""
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (key BLOB PRIMARY KEY, value BLOB NOT NULL, crc INTEGER NOT NULL) WITHOUT ROWID")
    data = [(key, value, zlib.crc32(value, zlib.crc32(key))) for key, value in rows.items()]
    connection.executemany("INSERT INTO t VALUES (?, ?, ?)", data)
    connection.commit()
    connection.close()


def versions_on_disk(path):
    connection = sqlite3.connect(path)
    found = dict(connection.execute("SELECT key, version FROM t"))
    connection.close()
    return found


def test_rows_without_a_version_are_brought_to_that_of_their_owner(tmp_path):
    old_database(tmp_path / "d.db", {b"a": b"1", b"b": b""})
    definitions = Definitions.open(tmp_path / "d.db")
    table = definitions.table("t", TEXT_ROWS)
    assert dict(table.items()) == {b"a": b"0>1<2", b"b": b"0><2"}
    assert definitions.dirty
    table.put(b"c", b"new")
    definitions.close()
    assert rows_on_disk(tmp_path / "d.db", "t") == {b"a": b"0>1<2", b"b": b"0><2", b"c": b"new"}
    assert set(versions_on_disk(tmp_path / "d.db").values()) == {3}
    definitions = Definitions.open(tmp_path / "d.db")
    assert dict(definitions.table("t", TEXT_ROWS).items()) == {b"a": b"0>1<2", b"b": b"0><2", b"c": b"new"}
    assert not definitions.dirty
    definitions.close()


def test_rows_are_brought_on_step_by_step_from_where_they_are(tmp_path):
    for version in (1, 2, 3):
        definitions = Definitions.open(tmp_path / "d.db")
        definitions.table("t", TEXT_ROWS._replace(version=version)).put(b"%d" % version, b"x")
        definitions.close()
    assert rows_on_disk(tmp_path / "d.db", "t") == {b"1": b"x<2", b"2": b"x<2", b"3": b"x"}


def test_row_of_a_later_version_is_refused_and_a_changed_version_is_damage(tmp_path):
    definitions = Definitions.open(tmp_path / "d.db")
    definitions.table("t", TEXT_ROWS).put(b"a", b"x")
    definitions.close()
    definitions = Definitions.open(tmp_path / "d.db")
    with pytest.raises(DataFolderUnusableError, match="table t has rows of version 3, this program reads them up to 2"):
        definitions.table("t", RowFormat(2))
    definitions.let_go()
    connection = sqlite3.connect(tmp_path / "d.db")
    connection.execute("UPDATE t SET version = 1")
    connection.commit()
    connection.close()
    definitions = Definitions.open(tmp_path / "d.db")
    with pytest.raises(DataFolderUnusableError, match="damaged row in table t"):
        definitions.table("t", TEXT_ROWS)
    definitions.let_go()
