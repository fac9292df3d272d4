from __future__ import annotations

import logging

import pytest

from core.errors import DataFolderUnusableError
from core.store.side_files import SideFiles
from core.store.sync_plan import sync_now


@pytest.fixture
def folder(tmp_path):
    for name in ("places", "journals"):
        (tmp_path / name).mkdir()
    return tmp_path


def close(side_files):
    for one in side_files.all():
        one.close()


def flip(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 0x10
    path.write_bytes(data)


def test_each_file_is_opened_once_and_all_are_synced_together(folder):
    files = SideFiles(folder)
    assert not files.dirty
    assert files.places("p") is files.places("p")
    assert files.journal("j") is files.journal("j")
    for one in files.all():
        sync_now(one)
    assert not files.dirty
    files.journal("j").append(b"record")
    assert files.dirty
    close(files)


def test_damage_is_counted_and_told_with_its_file(folder, caplog):
    files = SideFiles(folder)
    slot = files.places("p").acquire()
    files.places("p").set(slot, 77)
    for _ in range(3):
        files.journal("j").append(b"record")
    assert files.damage() == {"place": 0, "journal": 0}
    close(files)
    flip(folder / "places" / "p", 16 + 16 * slot)
    flip(folder / "journals" / "j", 64 + 11 + 3)
    caplog.set_level(logging.WARNING)
    files = SideFiles(folder)
    files.places("p").reserve([slot])
    assert [files.places("p").get(slot) for _ in range(3)] == [0] * 3
    assert list(files.journal("j").replay()) == [b"record"]
    assert files.damage() == {"place": 1, "journal": 1}
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 2
    assert f"path={folder / 'places' / 'p'} slot={slot} " in told[0]
    assert f"path={folder / 'journals' / 'j'} at=75 bytes=22" in told[1]
    close(files)


def test_file_that_cannot_be_opened_is_named(folder):
    (folder / "journals" / "j").mkdir()
    with pytest.raises(DataFolderUnusableError) as caught:
        SideFiles(folder).journal("j")
    assert str(folder / "journals" / "j") in str(caught.value)
