"""The work on the other thread, step by step, and what is left of it by a process that dies between two of them."""

from __future__ import annotations

import pytest

from core.errors import DiskFullError
from core.settings import RetentionSettings, StoreSettings
from core.store import gap_file, puncher
from tests.support.crashes import crash_everywhere
from tests.support.store import NOW_MS, give_back, light, open_store, publish, read_queue, retire

MIB = 1 << 20
SETTINGS = StoreSettings(segment_bytes=MIB, inline_dispatch_bytes=300, retention=RetentionSettings(age_hours=1))
LATE_MS = NOW_MS + 100 * 3_600_000
MANY = [f"busy{k}" for k in range(40)]


def make_folder(data_dir):
    """Return what `rare` holds in a log of a full segment with sets, and a newest one."""
    store = open_store(data_dir, SETTINGS)
    common = store.make_route(b"T", 0, b"", light(*MANY))
    seldom = store.make_route(b"T", 0, b"", light(*MANY, "rare"))
    rare = []
    for number in range(900):
        body = b"%d:" % number + b"x" * 1_000
        publish(store, common if number % 250 else seldom, body)
        if not number % 250:
            rare.append(body)
    publish(store, store.make_route(b"T", 0, b"", []), b"x" * 1_000_000)
    store.close()
    return list(enumerate(rare))


def reduce_all(data_dir):
    store = open_store(data_dir, SETTINGS)
    give_back(store, LATE_MS, (store.find_queue(b"%LMQ%rare"), 0))
    return store


@pytest.mark.slow
def test_process_that_dies_at_any_step_leaves_what_is_needed_and_no_damage(tmp_path):
    data_dir = tmp_path / "data"
    rare = make_folder(data_dir)
    for _ in crash_everywhere(data_dir, lambda: reduce_all(data_dir)):
        for is_rebuilt in (False, True):
            if is_rebuilt:
                for path in (data_dir / "index").iterdir():
                    if path.name.isdecimal():
                        path.unlink()
            store = open_store(data_dir, SETTINGS)
            assert not store.report.damaged_at
            assert not store.report.entries_lost
            assert read_queue(store, b"%LMQ%rare") == rare
            assert store.max_offset(store.find_queue(b"%LMQ%rare")) == len(rare)
            busy = read_queue(store, b"%LMQ%busy7")
            assert all(body.startswith(b"%d:" % offset) for offset, body in busy)
            assert store.damaged_count == 0
            assert not list((data_dir / "index").glob("*.gaps"))
            store.close()
    assert disk_bytes(data_dir) < 1.5 * MIB


def disk_bytes(data_dir):
    return sum(path.stat().st_blocks * 512 for path in (data_dir / "commitlog").iterdir())


def test_file_system_without_holes_keeps_the_whole_segment_and_it_is_told_once(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(puncher, "can_punch", lambda _: False)
    rare = make_folder(tmp_path / "data")
    before = disk_bytes(tmp_path / "data")
    store = reduce_all(tmp_path / "data")
    assert disk_bytes(tmp_path / "data") == before
    assert read_queue(store, b"%LMQ%rare") == rare
    assert len(read_queue(store, b"%LMQ%busy7")) == 900
    assert [record.message for record in caplog.records if "knows no holes" in record.message] == [
        "the file system knows no holes: segments stay whole as long as anything is needed"
    ]
    store.close()


def test_disk_without_room_lets_it_be_tried_again(tmp_path, monkeypatch):
    rare = make_folder(tmp_path / "data")
    store = open_store(tmp_path / "data", SETTINGS)
    held = (store.find_queue(b"%LMQ%rare"), 0)

    def no_room(_fd, path, _writes):
        raise DiskFullError(str(path))

    with monkeypatch.context() as full:
        full.setattr(puncher, "write_gaps", no_room)
        for _ in range(4):
            retire(store, LATE_MS, held)
            for _ in range(20):
                store.prepare()
    assert store.retention.bytes_punched == 0
    assert gap_file.read_gap_file(next((tmp_path / "data" / "index").glob("*.gaps"))) is not None
    give_back(store, LATE_MS, held)
    assert store.retention.bytes_punched > MIB // 2
    assert read_queue(store, b"%LMQ%rare") == rare
    store.close()


def test_damaged_segment_stays_whole(tmp_path):
    make_folder(tmp_path / "data")
    store = open_store(tmp_path / "data", SETTINGS)
    path = tmp_path / "data" / "commitlog" / f"{0:020d}"
    data = path.read_bytes()
    with path.open("r+b") as file:
        file.seek(data.index(b"500:xxx") + 50)
        file.write(b"y")
    before = disk_bytes(tmp_path / "data")
    give_back(store, LATE_MS, (store.find_queue(b"%LMQ%rare"), 0))
    assert disk_bytes(tmp_path / "data") == before
    store.close()


def test_close_ends_what_was_begun(tmp_path):
    rare = make_folder(tmp_path / "data")
    store = open_store(tmp_path / "data", SETTINGS)
    held = (store.find_queue(b"%LMQ%rare"), 0)
    for _ in range(1_000):
        retire(store, LATE_MS, held)
        store.prepare()
        if list((tmp_path / "data" / "index").glob("*.gaps")):
            break
    assert store.retention.bytes_punched == 0
    store.close()
    assert not list((tmp_path / "data" / "index").glob("*.gaps"))
    again = open_store(tmp_path / "data", SETTINGS)
    assert read_queue(again, b"%LMQ%rare") == rare
    again.close()
