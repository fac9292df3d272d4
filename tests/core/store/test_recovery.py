from __future__ import annotations

import logging
import shutil
from array import array

import pytest

from core.settings import StoreSettings
from core.store.dispatcher import Dispatcher
from core.store.head_index import HeadIndex
from core.store.mapped_file import MappedFile
from core.store.queue_names import QueueNames
from core.store.record_codec import decode_record
from core.store.recovery import RecoveryReport, cut_tail, scan_segment
from tests.support.store import NOW_MS, light, open_store, publish, read_queue, retire

SEGMENT = 64 * 1024


def fill(data_dir, count=300):
    """Write messages into several segments as a process that is killed; return what each queue holds."""
    store = open_store(data_dir / "killed")
    few = store.make_route(b"T", 0, b"", light("a", "b"))
    many = store.make_route(b"T", 1, b"", light(*(f"{k:03}" for k in range(500))))
    for k in range(count):
        publish(store, many if k % 10 == 0 else few, b"%d:" % k + b"x" * 700)
    store.flush()
    store.prepare()
    publish(store, few, b"not synced" * 70)
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


@pytest.fixture
def mixed(tmp_path):
    """Return a segment's file, what its queues hold, and where a record with a list of its own lies among a set's."""
    store = open_store(tmp_path / "mixed", StoreSettings(segment_bytes=SEGMENT, inline_dispatch_bytes=60))
    many = store.make_route(b"T", 0, b"LMQ_TOPIC\x01m\x02", light("a", "b", "c", "d"))
    few = store.make_route(b"T", 0, b"LMQ_TOPIC\x01f\x02", light("a", "b"))
    other = store.make_route(b"T", 0, b"LMQ_TOPIC\x01o\x02", light("a", "e", "f", "g"))
    places = []
    for number, route in enumerate([many, few, many, few, many, other, many, few, many]):
        batch = publish(store, route, b"%d" % number)
        places.append((batch.physical_offset[0], store.written_until))
    queues = {key: dict(read_queue(store, key)) for key in light(*"abcdefg")}
    store.close()
    start, end = places[3]
    return newest_path(tmp_path / "mixed"), queues, list(queues), start, end - start


def scanned(path, tmp_path):
    """Return what the queues hold when the segment is gone through, with its bodies, and their next offsets."""
    names = QueueNames.open(tmp_path / "queues")
    dispatcher = Dispatcher(names, HeadIndex(0))
    file = MappedFile.open(path, is_writable=False)
    scan_segment(dispatcher, file, 0, RecoveryReport())
    head = dispatcher.head
    found = {}
    for ref in range(names.count):
        first = head.first_offset(ref)
        out = array("i", bytes(4 * 64))
        count = head.lookup(ref, first, 64, out)
        served = {first + k: decode_record(file.view, out[k], 0).body for k in range(count) if out[k] >= 0}
        found[names.key(ref)] = (served, head.next_offset(ref))
    names.close()
    for name in ("queues", "queues.copy"):
        (tmp_path / name).unlink()
    return found


def test_whatever_is_damaged_of_a_record_no_queue_serves_another_offset(mixed, tmp_path):
    path, queues, keys, start, size = mixed
    data = path.read_bytes()
    for at in range(start, start + size):
        damaged = bytearray(data)
        damaged[at] ^= 0x05
        path.write_bytes(damaged)
        found = scanned(path, tmp_path)
        for key in keys:
            served, next_offset = found[key]
            assert served.items() <= queues[key].items(), (at - start, key)
            assert next_offset >= len(queues[key]), (at - start, key)


def test_a_body_that_is_damaged_costs_only_its_own_message(mixed, tmp_path):
    path, queues, keys, start, _ = mixed
    data = bytearray(path.read_bytes())
    data[data.index(b"3", start + 88)] ^= 1
    path.write_bytes(data)
    found = scanned(path, tmp_path)
    for key in keys:
        assert found[key] == ({k: body for k, body in queues[key].items() if body != b"3"}, len(queues[key])), key


def test_messages_in_doubt_are_served_again_from_where_an_offset_is_named(mixed, tmp_path):
    path, _, _, start, _ = mixed
    data = bytearray(path.read_bytes())
    data[data.index(b"%LMQ%a", start) + 5] ^= 4  # it names a queue that nobody knows
    path.write_bytes(data)
    found = scanned(path, tmp_path)
    assert set(found[b"%LMQ%a"][0].values()) == {b"0", b"1", b"2", b"5", b"6", b"7", b"8"}
    assert set(found[b"%LMQ%b"][0].values()) == {b"0", b"1", b"2", b"7", b"8"}
    assert set(found[b"%LMQ%d"][0].values()) == {b"0", b"2"}


def test_messages_after_a_damaged_record_are_served_again_from_where_their_set_is_written_again(tmp_path):
    store = open_store(tmp_path / "d", StoreSettings(segment_bytes=SEGMENT, inline_dispatch_bytes=60))
    store._log.set_again_bytes = 1
    many = store.make_route(b"T", 0, b"", light("a", "b", "c", "d"))
    few = store.make_route(b"T", 0, b"", light("a"))
    places = [publish(store, few if number == 3 else many, b"%d" % number + b"x" * 500) for number in range(70)]
    store.close()
    path = newest_path(tmp_path / "d")
    data = bytearray(path.read_bytes())
    data[data.index(b"%LMQ%a", places[3].physical_offset[0]) + 5] ^= 4  # it names a queue that nobody knows
    path.write_bytes(data)
    shutil.rmtree(tmp_path / "d" / "index")
    store = open_store(tmp_path / "d")
    assert store.report.damaged_at == [places[3].physical_offset[0]]
    served = read_queue(store, light("b")[0])
    first = next(offset for offset, body in served if offset > 2)
    assert 3 < first < 40
    assert served == [(k, b"%d" % (k + (k > 2)) + b"x" * 500) for k in [*range(3), *range(first, 69)]]
    assert store.max_offset(store.find_queue(light("b")[0])) == 69
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
    store.flush()
    store.prepare()
    assert retire(store, NOW_MS + 1000 * 3_600_000) > 0
    store.prepare()
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
