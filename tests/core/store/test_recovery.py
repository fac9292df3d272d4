from __future__ import annotations

import logging
import shutil

import pytest

from core.store.mapped_file import MappedFile
from core.store.recovery import cut_tail
from tests.support.store import NOW_MS, light, open_store, publish, read_queue, retire

SEGMENT = 64 * 1024


def fill(data_dir, count=300):
    """Write messages into several segments as a process that is killed; return what each queue holds."""
    store = open_store(data_dir / "killed")
    few = store.make_route(b"T", 0, b"", light("a", "b"))
    many = store.make_route(b"T", 1, b"", light(*(f"{k:03}" for k in range(500))))
    for k in range(count):
        publish(store, many if k % 10 == 0 else few, b"%d:" % k + b"x" * 700)
    store.prepare()
    shutil.copytree(data_dir / "killed", data_dir / "copy")
    queues = {key: read_queue(store, key) for key in KEYS}
    end = store.written_until
    store.close()
    return data_dir / "copy", queues, end


KEYS = [b"T/0", b"T/1", *light("a", "b", "000", "499")]


@pytest.fixture
def killed(tmp_path):
    return fill(tmp_path)


def newest_path(folder):
    return max((folder / "commitlog").iterdir())


def test_killed_store_comes_back_whole_without_rebuilding(killed):
    folder, queues, end = killed
    store = open_store(folder)
    assert {key: read_queue(store, key) for key in KEYS} == queues
    assert store.written_until == end
    assert store.report.indexes_rebuilt == 0
    assert store.report.records_scanned < 100
    store.close()


@pytest.mark.parametrize("cut", [1, 3, 20, 100, 500])
def test_torn_tail_is_cut_and_the_log_goes_on(killed, cut):
    folder, queues, end = killed
    path = newest_path(folder)
    data = bytearray(path.read_bytes())
    at = end - int(path.name)
    data[at - cut : at] = bytes(cut)
    path.write_bytes(data)
    store = open_store(folder)
    assert read_queue(store, b"T/0") == queues[b"T/0"][:-1]
    assert read_queue(store, b"%LMQ%a") == queues[b"%LMQ%a"][:-1]
    assert store.report.tail_bytes_cut > 0
    assert not any(path.read_bytes()[store.written_until - int(path.name) :])
    publish(store, store.make_route(b"T", 0, b"", light("a")), b"next")
    assert read_queue(store, b"%LMQ%a") == [*queues[b"%LMQ%a"][:-1], (len(queues[b"%LMQ%a"]) - 1, b"next")]
    store.close()


def test_garbage_after_the_tail_is_cleared(killed):
    folder, queues, end = killed
    path = newest_path(folder)
    data = bytearray(path.read_bytes())
    data[end - int(path.name) + 1000 :] = b"\xda\xa3\x20\xa7" * ((len(data) - (end - int(path.name) + 1000)) // 4)
    path.write_bytes(data[:SEGMENT].ljust(SEGMENT, b"x"))
    store = open_store(folder)
    assert read_queue(store, b"T/0") == queues[b"T/0"]
    assert store.written_until == end
    store.close()


@pytest.mark.parametrize("at", [1, 5, 30, 60, 120, 800])
def test_damaged_record_in_the_middle_costs_only_itself(tmp_path, at):
    store = open_store(tmp_path / "a")
    batch = publish(store, store.make_route(b"T", 0, b"", light("a")), *(b"%d" % k + b"x" * 700 for k in range(20)))
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    store.close()
    path = newest_path(tmp_path / "b")
    data = bytearray(path.read_bytes())
    data[batch.physical_offset[7] + at] ^= 0x10
    path.write_bytes(data)
    store = open_store(tmp_path / "b")
    assert store.report.damaged_at == [batch.physical_offset[7]]
    for key in (b"T/0", b"%LMQ%a"):
        assert [offset for offset, _ in read_queue(store, key)] == [k for k in range(20) if k != 7]
        assert store.max_offset(store.find_queue(key)) == 20
    publish(store, store.make_route(b"T", 0, b"", light("a")), b"next")
    assert read_queue(store, b"%LMQ%a", 19)[1] == (20, b"next")
    store.close()
    store = open_store(tmp_path / "b")
    assert len(read_queue(store, b"%LMQ%a")) == 20
    store.close()


def test_damaged_message_of_an_interned_set_keeps_the_places_of_those_after_it(tmp_path):
    store = open_store(tmp_path / "a")
    names = light(*(f"{k:03}" for k in range(500)))
    batch = publish(store, store.make_route(b"T", 0, b"", names), *(b"%d" % k for k in range(5)))
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    store.close()
    path = newest_path(tmp_path / "b")
    data = bytearray(path.read_bytes())
    data[batch.physical_offset[2] + 88] ^= 1  # its body
    path.write_bytes(data)
    store = open_store(tmp_path / "b")
    assert read_queue(store, names[3]) == [(0, b"0"), (1, b"1"), (3, b"3"), (4, b"4")]
    store.close()


@pytest.mark.parametrize("name", ["queues", "queues.copy", "offsets", "00000000000000000000", "00000000000000065536"])
@pytest.mark.parametrize("how", ["missing", "flipped", "foreign", "empty"])
def test_any_index_file_may_be_lost_or_damaged(killed, name, how, tmp_path):
    folder, queues, _ = killed
    path = folder / "index" / name
    if how == "missing":
        path.unlink()
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "flipped":
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    else:
        (tmp_path / "other").mkdir()
        store = open_store(tmp_path / "other")
        route = store.make_route(b"U", 0, b"", light("z"))
        for _ in range(200):
            publish(store, route, b"x" * 900)
        store.close()
        path.write_bytes((tmp_path / "other" / "index" / name).read_bytes())
    store = open_store(folder)
    assert {key: read_queue(store, key) for key in KEYS} == queues
    store.close()


def test_index_files_of_segments_that_are_gone_are_removed(killed):
    folder, _, _ = killed
    stray = folder / "index" / f"{1 << 40:020d}"
    stray.write_bytes(b"x")
    open_store(folder).close()
    assert not stray.exists()


def test_newest_segment_that_is_still_empty_takes_the_next_record(killed):
    folder, queues, _ = killed
    next_base = int(newest_path(folder).name) + SEGMENT
    (folder / "commitlog" / f"{next_base:020d}").write_bytes(bytes(SEGMENT))
    store = open_store(folder)
    assert {key: read_queue(store, key) for key in KEYS} == queues
    batch = publish(store, store.make_route(b"T", 0, b"", []), b"x")
    assert batch.physical_offset[0] == next_base
    store.close()


def test_recovery_is_the_same_when_it_is_itself_cut_short(killed):
    folder, queues, _ = killed
    shutil.rmtree(folder / "index")
    for _ in range(3):
        store = open_store(folder)
        shutil.copytree(folder, folder.with_name(folder.name + "x"))
        folder = folder.with_name(folder.name + "x")
        store.close()
    store = open_store(folder)
    assert {key: read_queue(store, key) for key in KEYS} == queues
    store.close()


def test_store_time_goes_on_after_the_last_record(tmp_path):
    store = open_store(tmp_path)
    publish(store, store.make_route(b"T", 0, b"", []), b"x", now_ms=NOW_MS + 10_000)
    store.close()
    store = open_store(tmp_path, now_ms=NOW_MS)
    publish(store, store.make_route(b"T", 0, b"", []), b"y", now_ms=NOW_MS)
    assert store.offset_at_time(store.find_queue(b"T/0"), NOW_MS + 10_000) == 0
    assert store.offset_at_time(store.find_queue(b"T/0"), NOW_MS + 10_001) == 2
    store.close()


def test_tail_is_cut_only_where_it_holds_something(tmp_path):
    file = MappedFile.create(tmp_path / "f", SEGMENT)
    file.view[10] = 1
    file.view[50_000] = 2
    assert cut_tail(file, 11) == 1
    assert (file.view[10], file.view[50_000]) == (1, 0)
    assert cut_tail(file, 11) == 0


@pytest.mark.parametrize("at", [0, 16])
@pytest.mark.parametrize(("names", "count"), [(["queues"], 1), (["queues.copy"], 1), (["queues", "queues.copy"], 2)])
def test_damaged_queue_names_are_told_and_counted(tmp_path, caplog, names, count, at):
    store = open_store(tmp_path)
    publish(store, store.make_route(b"T", 0, b"", light("a", "b")), b"1", b"2")
    store.close()
    for name in names:
        path = tmp_path / "index" / name
        data = bytearray(path.read_bytes())
        data[at] ^= 1
        path.write_bytes(data)
    caplog.set_level(logging.WARNING)
    store = open_store(tmp_path)
    assert store.damage_beside()["queue_names"] == count
    assert f"path={tmp_path / 'index' / names[0]}" in caplog.text
    assert [body for _, body in read_queue(store, b"%LMQ%b")] == [b"1", b"2"]
    store.close()
    caplog.clear()
    store = open_store(tmp_path)
    assert store.damage_beside() == {"queue_names": 0, "place": 0, "journal": 0}
    assert caplog.text == ""
    store.close()


def test_power_cut_within_many_new_names_costs_no_queue_its_place(tmp_path):
    store = open_store(tmp_path / "a")
    publish(store, store.make_route(b"T", 0, b"", light("quiet")), b"gone")
    publish(store, store.make_route(b"T", 0, b"", []), *(b"x" * 900,) * 100)
    store.prepare()
    assert retire(store, NOW_MS + 1000 * 3_600_000) > 0
    store.flush()
    synced = (tmp_path / "a" / "index" / "queues").stat().st_size
    publish(store, store.make_route(b"T", 0, b"", light(*(f"new{k}" for k in range(20)))), b"1")
    publish(store, store.make_route(b"T", 0, b"", []), *(b"x" * 900,) * 100)  # the names are written with the roll
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    queues = {key: read_queue(store, key) for key in (b"T/0", *light("quiet", "new0", "new19"))}
    store.close()
    for name in ("queues", "queues.copy"):
        path = tmp_path / "b" / "index" / name
        data = bytearray(path.read_bytes())
        assert len(data) > synced + 100
        data[synced + 20 : synced + 60] = bytes(40)
        path.write_bytes(data)
    store = open_store(tmp_path / "b")
    ref = store.find_queue(b"%LMQ%quiet")
    assert (store.min_offset(ref), store.max_offset(ref)) == (1, 1)
    assert {key: read_queue(store, key) for key in queues} == queues
    store.close()
