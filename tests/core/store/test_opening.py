"""The log of a folder at the start."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from core.errors import DataFolderUnusableError
from core.store.opening import FOLDERS, open_log
from tests.support.store import SMALL, open_store, publish


def test_a_fresh_folder_gets_its_folders_and_their_names_are_synced(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(Path(f"/proc/self/fd/{fd}").readlink()))
    segments, recovered = open_log(tmp_path, SMALL, 0)
    assert {path.name for path in tmp_path.iterdir()} == set(FOLDERS)
    assert tmp_path in synced
    assert segments.segments == []
    assert recovered.position == 0
    recovered.names.close()


def test_only_what_was_not_confirmed_is_synced_again(tmp_path, monkeypatch):
    store = open_store(tmp_path / "killed")
    route = store.make_route(b"T", 0, b"", [])
    publish(store, route, *(b"x" * 30_000,) * 3)
    store.flush()
    publish(store, route, *(b"x" * 30_000,) * 4)
    shutil.copytree(tmp_path / "killed", tmp_path / "data")
    store.close()
    synced = []
    monkeypatch.setattr(os, "fdatasync", lambda fd: synced.append(Path(f"/proc/self/fd/{fd}").readlink().name))
    _, recovered = open_log(tmp_path / "data", SMALL, 0)
    recovered.names.close()
    names = sorted(path.name for path in (tmp_path / "data" / "commitlog").iterdir())
    assert [name for name in names if name not in synced] == names[:1]


def test_what_the_tables_say_of_the_log_counts_where_nothing_else_does(tmp_path):
    with pytest.raises(DataFolderUnusableError, match="there is no segment: positions 0 to 5"):
        open_log(tmp_path, SMALL, 5)


def test_a_log_whose_definitions_are_gone_is_not_opened_unless_that_loss_is_accepted(tmp_path, caplog):
    store = open_store(tmp_path)
    publish(store, store.make_route(b"T", 0, b"", []), b"one")
    store.close()
    for path in tmp_path.glob("definitions.db*"):
        path.unlink()
    with pytest.raises(
        DataFolderUnusableError, match=r"definitions\.db: is missing, and there is a log: .*put it back"
    ):
        open_store(tmp_path)
    assert not (tmp_path / "definitions.db").exists()
    open_store(tmp_path, SMALL.model_copy(update={"accept_loss": True})).close()
    assert "store.accept_loss: " in caplog.text
    open_store(tmp_path).close()
