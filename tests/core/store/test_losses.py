"""A log that lacks what was on disk before: refused, or gone on with behind all that was given."""

from __future__ import annotations

import logging
import os
import shutil

import pytest

from core.errors import DataFolderUnusableError
from core.message import StoredBatch
from core.settings import StoreSettings
from core.store.log_check import check_log
from core.store.reader import StoreReader
from tests.support.crashes import crash_everywhere
from tests.support.store import light, open_store, publish, read_queue

SEGMENT = 64 * 1024
ACCEPTING = StoreSettings(segment_bytes=SEGMENT, accept_loss=True)
NAME = "{:020d}".format
KEYS = [b"T/0", *light("early", "all", "late")]


@pytest.fixture
def killed(tmp_path):
    """Return a folder of five segments as a killed process leaves it, what each queue holds, and the log's end."""
    store = open_store(tmp_path / "killed")
    for number in range(55):
        names = ["all"] + ["early"] * (number < 20) + ["late"] * (number > 40)
        publish(store, store.make_route(b"T", 0, b"", light(*names)), b"%d:" % number + b"x" * 5_000)
        if number == 35:
            store.flush()
            store.prepare()
    store.flush()
    shutil.copytree(tmp_path / "killed", tmp_path / "data")
    queues = {key: dict(read_queue(store, key)) for key in KEYS}
    end = store.written_until
    store.close()
    assert 4 * SEGMENT < end < 5 * SEGMENT - 10_000
    return tmp_path / "data", queues, end


def newest(folder):
    return max((folder / "commitlog").iterdir())


def cut_tail(folder):
    os.truncate(newest(folder), 9_000)


def lose_newest(folder):
    newest(folder).unlink()


def empty_newest(folder):
    newest(folder).write_bytes(b"")


def lose_two(folder):
    newest(folder).unlink()
    newest(folder).unlink()


def lose_middle(folder):
    (folder / "commitlog" / NAME(SEGMENT)).unlink()


def lose_middle_and_what_is_known_of_it(folder):
    (folder / "commitlog" / NAME(3 * SEGMENT)).unlink()
    for path in (folder / "index").glob("offsets*"):
        path.unlink()


def cut_middle(folder):
    os.truncate(folder / "commitlog" / NAME(SEGMENT), 23_456)


def lose_log(folder):
    shutil.rmtree(folder / "commitlog")


def lose_log_and_confirmed(folder):
    shutil.rmtree(folder / "commitlog")
    (folder / "confirmed").unlink()


WAYS = [
    cut_tail,
    lose_newest,
    empty_newest,
    lose_two,
    lose_middle,
    lose_middle_and_what_is_known_of_it,
    cut_middle,
    lose_log,
    lose_log_and_confirmed,
]


def contents(folder):
    """Return all files but those of SQLite, which tidies up when it is let go of."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != "lock"]
    return {path: path.read_bytes() for path in paths if not path.name.startswith("definitions.db")}


@pytest.mark.parametrize("lose", WAYS)
def test_the_start_is_refused_with_what_is_missing_and_nothing_is_touched(killed, lose):
    folder, _, _ = killed
    lose(folder)
    before = contents(folder)
    (loss, *_) = check_log(folder).losses
    with pytest.raises(DataFolderUnusableError) as caught:
        open_store(folder)
    assert contents(folder) == before
    assert str(loss) in str(caught.value)
    assert f"positions {loss.start} to {loss.end}" in str(caught.value)
    assert "store.accept_loss = true" in str(caught.value)


@pytest.mark.parametrize("lose", WAYS)
def test_with_the_loss_accepted_the_log_goes_on_and_nothing_is_given_again(killed, lose, caplog):
    folder, queues, end = killed
    lose(folder)
    known_end = check_log(folder).known_end
    caplog.set_level(logging.WARNING)
    store = open_store(folder, ACCEPTING)
    assert (
        "store.accept_loss: segment" in caplog.text or "there is no segment" in caplog.text or "ends in" in caplog.text
    )
    is_log_kept = "lose_log" not in lose.__name__
    assert store.written_until >= (end if lose is not lose_log_and_confirmed else known_end)
    for _ in range(2):
        for key, held in queues.items():
            found = dict(read_queue(store, key))
            assert found.items() <= held.items()
            assert is_log_kept == bool(found) or key == b"%LMQ%late"
            ref = store.find_queue(key)
            if lose is not lose_log_and_confirmed and ref >= 0:
                assert store.max_offset(ref) >= len(held)
        assert check_log(folder).losses == []
        store.close()
        store = open_store(folder)  # from now on it is whole
    written_until = store.written_until
    batch = publish(store, store.make_route(b"T", 0, b"", light("all")), b"next", b"more")
    assert batch.physical_offset[0] >= written_until
    after = [(offset, body) for offset, body in read_queue(store, b"%LMQ%all") if body in {b"next", b"more"}]
    assert [body for _, body in after] == [b"next", b"more"]
    assert after[1][0] == after[0][0] + 1
    assert after[0][0] >= (len(queues[b"%LMQ%all"]) if lose is not lose_log_and_confirmed else 24)
    into = StoredBatch(64)
    at, seen = 0, []
    while at < store.written_until:
        at = store.scan(at, into)
        seen += [bytes(into.buf[into.body_start[i] : into.body_end[i]]) for i in range(into.count)]
    into.clear()
    assert seen[-2:] == [b"next", b"more"]
    store.close()
    reader = StoreReader.open(folder)
    infos = reader.segments()
    assert [info.base for info in infos[1:]] == [info.base + SEGMENT for info in infos[:-1]]
    reader.close()


def test_the_queues_that_had_messages_in_a_missing_segment_are_named(killed):
    folder, _, _ = killed
    lose_middle(folder)
    with pytest.raises(DataFolderUnusableError) as caught:
        open_store(folder)
    assert "%LMQ%all 24, %LMQ%early 20, T/0 24" in str(caught.value)
    shutil.rmtree(folder / "commitlog")
    with pytest.raises(DataFolderUnusableError, match="come to: %LMQ%all 24, %LMQ%early 20, T/0 24"):
        open_store(folder)


def test_who_accepts_a_loss_that_is_none_is_told(tmp_path, caplog):
    caplog.set_level(logging.WARNING)
    open_store(tmp_path, ACCEPTING).close()
    assert "store.accept_loss is set, and nothing is missing" in caplog.text
    caplog.clear()
    open_store(tmp_path).close()
    assert caplog.text == ""


def test_files_that_are_put_back_are_opened(killed, tmp_path):
    folder, queues, end = killed
    kept = tmp_path / "kept"
    newest(folder).rename(kept)
    with pytest.raises(DataFolderUnusableError):
        open_store(folder)
    kept.rename(folder / "commitlog" / NAME(4 * SEGMENT))
    store = open_store(folder)
    assert {key: dict(read_queue(store, key)) for key in KEYS} == queues
    assert store.written_until == end
    store.close()


def test_a_log_that_was_put_into_a_folder_alone_is_opened_as_it_is(killed, tmp_path):
    folder, queues, _ = killed
    shutil.copytree(folder / "commitlog", tmp_path / "alone" / "commitlog")
    os.truncate(tmp_path / "alone" / "commitlog" / NAME(4 * SEGMENT), 9_000)
    store = open_store(tmp_path / "alone")
    assert dict(read_queue(store, b"T/0")).items() <= queues[b"T/0"].items()
    store.close()


@pytest.mark.parametrize("at", [0, 9, 17])
def test_a_damaged_confirmed_is_told_and_not_believed(killed, at, caplog):
    folder, queues, _ = killed
    data = bytearray((folder / "confirmed").read_bytes())
    data[at] ^= 1
    (folder / "confirmed").write_bytes(data)
    caplog.set_level(logging.WARNING)
    store = open_store(folder)
    assert f"path={folder / 'confirmed'}" in caplog.text
    assert {key: dict(read_queue(store, key)) for key in KEYS} == queues
    store.close()


@pytest.mark.slow
@pytest.mark.parametrize("lose", [cut_tail, lose_two, lose_middle_and_what_is_known_of_it, lose_log])
def test_a_crash_at_any_step_gives_nothing_again_either(killed, lose):
    folder, queues, end = killed
    lose(folder)
    for _ in crash_everywhere(folder, lambda: open_store(folder, ACCEPTING).close()):
        store = open_store(folder, ACCEPTING)
        assert store.written_until >= end
        for key, held in queues.items():
            ref = store.find_queue(key)
            assert ref < 0 or store.max_offset(ref) >= len(held)
        store.close()
