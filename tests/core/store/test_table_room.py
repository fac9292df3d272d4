"""Definitions on a disk that has no room, or little."""

from __future__ import annotations

import errno
import os

import pytest

from core.errors import DiskFullError
from core.store import table as table_module
from core.store.table import (
    CHANGE_BYTES,
    FILL,
    LOG_BYTES,
    ROOM_BYTES_MIN,
    SLICE_MAX,
    Definitions,
)
from tests.support.definitions import commit, rows_on_disk


def test_no_change_is_promised_while_a_commit_waits_for_room(tmp_path):
    definitions = Definitions.open(tmp_path / "d.db")
    table = definitions.table("t")
    definitions.check_room()
    table.put(b"big", bytes(200_000))
    definitions._connection.execute("PRAGMA max_page_count = 8")
    with pytest.raises(DiskFullError):
        commit(definitions)
    with pytest.raises(DiskFullError, match=r"no space left for d\.db$"):
        definitions.check_room()
    definitions._connection.execute("PRAGMA max_page_count = 1000")
    commit(definitions)
    definitions.check_room()
    definitions.close()


def test_no_change_is_promised_where_the_disk_has_no_room_for_those_that_wait_and_it(tmp_path, monkeypatch):
    definitions = Definitions.open(tmp_path / "d.db")
    free = ROOM_BYTES_MIN
    monkeypatch.setattr(table_module, "free_bytes", lambda path: free if path == tmp_path else 0)
    definitions.check_room()
    for i in range(SLICE_MAX + 1):
        definitions.table("t").put(b"%d" % i, b"")
    with pytest.raises(DiskFullError):
        definitions.check_room()
    assert (SLICE_MAX + 1) * CHANGE_BYTES > LOG_BYTES  # so that it counts what the rows have
    free += 2 * LOG_BYTES
    definitions.check_room()
    with pytest.raises(DiskFullError):
        definitions.check_room(row_bytes=2 * LOG_BYTES // FILL)
    definitions.check_commits()  # what is deleted needs none
    definitions.close()
    free = ROOM_BYTES_MIN - 1
    with pytest.raises(DiskFullError):
        definitions.check_room()


@pytest.mark.parametrize("call", ["posix_fallocate", "open"])
@pytest.mark.parametrize("error", [None, errno.ENOSPC, errno.EOPNOTSUPP, errno.EMFILE])
def test_a_commit_gives_the_log_of_the_database_room_ahead_where_that_can_be_had(tmp_path, call, error, monkeypatch):
    definitions = Definitions.open(tmp_path / "d.db")

    def refuse(*_):
        raise OSError(error, os.strerror(error))

    definitions.table("t").put(b"k", b"v")
    with monkeypatch.context() as patch:
        if error is not None:
            patch.setattr(os, call, refuse)
        commit(definitions)
    assert ((tmp_path / "d.db-wal").stat().st_size >= LOG_BYTES) == (error is None)
    assert rows_on_disk(tmp_path / "d.db", "t") == {b"k": b"v"}
    definitions.close()


def test_the_log_of_the_database_keeps_its_room_over_a_clean_stop_on_a_full_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(table_module, "free_bytes", lambda _: 0)
    for i in range(3):
        definitions = Definitions.open(tmp_path / "d.db")
        table = definitions.table("t")
        assert dict(table.items()) == {b"%d" % k: b"v" for k in range(i)}
        table.put(b"%d" % i, b"v")
        definitions.close()
        assert (tmp_path / "d.db-wal").stat().st_blocks * 512 >= LOG_BYTES
        assert rows_on_disk(tmp_path / "d.db", "t") == {b"%d" % k: b"v" for k in range(i + 1)}


def test_a_stop_on_a_disk_without_room_leaves_what_the_next_start_can_read(tmp_path, monkeypatch):
    monkeypatch.setattr(table_module, "free_bytes", lambda _: 0)
    definitions = Definitions.open(tmp_path / "d.db")
    definitions.table("t").put(b"k", b"v")
    commit(definitions)

    def refuse(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    definitions.close()
    definitions = Definitions.open(tmp_path / "d.db")
    assert dict(definitions.table("t").items()) == {b"k": b"v"}
    definitions.close()


def test_many_small_changes_want_no_more_room_than_their_rows_take(tmp_path, monkeypatch):
    definitions = Definitions.open(tmp_path / "d.db")
    monkeypatch.setattr(table_module, "free_bytes", lambda _: 64 << 20)
    for i in range(100_000):
        definitions.table("t").put(b'["/","binding","exchange","queue-%06d","a.key"]' % i, b"{}")
    definitions.check_room()
    commit(definitions)
    assert sum(file.stat().st_blocks * 512 for file in tmp_path.iterdir()) < 64 << 20
    for i in range(100):
        definitions.table("t").put(b"%d" % i, bytes(200_000))
    with pytest.raises(DiskFullError):
        definitions.check_room()
    definitions.close()
