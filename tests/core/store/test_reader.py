from __future__ import annotations

import itertools

import pytest

from core.errors import CorruptRecordError, DataFolderUnusableError
from core.message import StoredBatch
from core.settings import StoreSettings
from core.store.log_survey import LOST_SET, RECORD, RESTORED_SET, Stretch
from core.store.reader import StoreReader
from tests.support.store import NOW_MS, light, open_store, publish


@pytest.fixture
def store(tmp_path):
    store = open_store(tmp_path / "data")
    yield store
    store.close()


def scan_all(reader):
    """Return (body, dispatched names) of every record."""
    into = StoredBatch(16)
    found = []
    for segment in reader.segments():
        at = segment.base
        while at < segment.end:
            at = reader.scan(segment.base, at, segment.end, into)
            found += [
                (bytes(into.buf[into.body_start[i] : into.body_end[i]]), reader.dispatch_names(into, i))
                for i in range(into.count)
            ]
    return found


def test_reader_beside_a_running_store_sees_what_is_synced(store):
    few = store.make_route(b"T", 0, b"", light("a", "b"))
    many = store.make_route(b"T", 0, b"", light(*(f"{k:04}" for k in range(600))))
    none = store.make_route(b"T", 0, b"", [])
    expected = []
    for k in range(400):
        route = (few, many, none)[k % 3]
        publish(store, route, b"%d" % k * 100, now_ms=NOW_MS + k)
        expected.append((b"%d" % k * 100, route.dispatch.names))
    store.flush()
    publish(store, few, b"not synced yet")
    reader = StoreReader.open(store.data_dir)
    assert scan_all(reader) == expected
    infos = reader.segments()
    assert len(infos) > 2
    assert [info.base for info in infos[1:]] == [info.end for info in infos[:-1]]
    assert infos[0].first_store_ms == NOW_MS
    assert infos[-1].last_store_ms == NOW_MS + 399
    assert all(info.first_store_ms <= info.last_store_ms for info in infos)
    assert reader.damaged == []
    store.flush()
    assert len(scan_all(reader)) == 401
    reader.close()


def test_log_alone_is_read_to_its_last_sound_record(store, tmp_path):
    publish(store, store.make_route(b"T", 0, b"", []), b"a", b"b")
    store.close()
    (store.data_dir / "confirmed").unlink()
    reader = StoreReader.open(store.data_dir)
    assert [body for body, _ in scan_all(reader)] == [b"a", b"b"]
    (info,) = reader.segments()
    assert info.last_store_ms == NOW_MS


def test_damaged_records_are_passed_over_and_named(store):
    batch = publish(store, store.make_route(b"T", 0, b"", []), b"a" * 90, b"b" * 90, b"c" * 90)
    store.close()
    path = store.data_dir / "commitlog" / f"{0:020d}"
    for at in (batch.physical_offset[1] + 100, batch.physical_offset[1] + 1):  # the body, then the size too
        data = bytearray(path.read_bytes())
        data[at] ^= 1
        path.write_bytes(data)
        reader = StoreReader.open(store.data_dir)
        assert [body[:1] for body, _ in scan_all(reader)] == [b"a", b"c"]
        assert [(one.start, one.end) for one in reader.damaged] == [tuple(batch.physical_offset[1:3])]


def test_folder_without_a_log_is_refused_and_an_empty_log_is_empty(store, tmp_path):
    with pytest.raises(DataFolderUnusableError):
        StoreReader.open(tmp_path)
    assert StoreReader.open(str(store.data_dir)).segments() == []


def test_counts_match_names(store):
    many = store.make_route(b"T", 0, b"", light(*(f"{k:04}" for k in range(600))))
    publish(store, many, b"x")
    store.flush()
    reader = StoreReader.open(store.data_dir)
    into = StoredBatch(4)
    (info,) = reader.segments()
    assert reader.scan(info.base, info.base, info.end, into) == info.end
    assert into.count == 1
    assert reader.dispatch_count(into, 0) == 600


@pytest.fixture
def long_log(tmp_path):
    """Return a closed folder of four segments with interned sets, and where its first set begins and ends."""
    store = open_store(tmp_path / "long", StoreSettings(segment_bytes=64 * 1024, inline_dispatch_bytes=60))
    route = store.make_route(b"T", 0, b"", light(*"abcdefgh"))
    batch = publish(store, route, b"first")
    while store.written_until < 4 * 65_536 - 10_000:
        publish(store, route, bytes(900))
    store.close()
    return store.data_dir, batch.physical_offset[0]


@pytest.mark.parametrize("number", [0, 1, 3])
def test_a_segment_that_is_missing_or_short_is_named_with_its_positions(long_log, number):
    folder, _ = long_log
    whole = StoreReader.open(folder).survey()
    assert (len(whole.segments), whole.missing) == (4, [])
    path = folder / "commitlog" / f"{number * 65_536:020d}"
    end = whole.segments[number].end
    with path.open("r+b") as file:
        file.truncate(30_000)
    assert StoreReader.open(folder).survey().missing == [
        Stretch(number * 65_536 + 30_000, end, f"segment {path.name} has only 30000 bytes")
    ]
    path.unlink()
    missing = [] if number == 0 else [Stretch(number * 65_536, end, f"segment {path.name} is missing")]
    assert StoreReader.open(folder).survey().missing == missing  # the oldest may be gone for good


def test_nothing_where_the_log_was_confirmed_is_damage(long_log):
    folder, _ = long_log
    info = StoreReader.open(folder).segments()[-1]
    path = folder / "commitlog" / f"{info.base:020d}"
    data = bytearray(path.read_bytes())
    data[20_000:] = bytes(len(data) - 20_000)
    path.write_bytes(data)
    reader = StoreReader.open(folder)
    scan_all(reader)
    (found,) = reader.damaged
    assert found.start <= info.base + 20_000 < found.end == info.end
    assert found.what == RECORD


def test_damage_does_not_hide_what_comes_after_it_from_a_reader_of_the_log_alone(long_log):
    folder, _ = long_log
    (folder / "confirmed").unlink()
    before = scan_all(StoreReader.open(folder))
    path = max((folder / "commitlog").iterdir())
    data = bytearray(path.read_bytes())
    data[20_000] ^= 1
    path.write_bytes(data)
    assert len(scan_all(StoreReader.open(folder))) == len(before) - 1


@pytest.mark.parametrize("how", ["a bit", "names", "all of it"])
def test_a_damaged_set_costs_no_message_its_queues(long_log, how):
    folder, end = long_log
    before = scan_all(StoreReader.open(folder))
    path = folder / "commitlog" / ("0" * 20)
    data = bytearray(path.read_bytes())
    if how == "a bit":
        data[150] ^= 8
    else:
        start, stop = (105, 130) if how == "names" else (8, end)
        data[start:stop] = bytes(stop - start)
    path.write_bytes(data)
    reader = StoreReader.open(folder)
    assert scan_all(reader) == before
    assert reader.damaged == [Stretch(0, end, RESTORED_SET if how != "all of it" else LOST_SET)]


def test_queues_that_nothing_tells_are_said_to_be_lost(long_log):
    folder, end = long_log
    for path in (folder / "index").iterdir():
        path.unlink()
    path = folder / "commitlog" / ("0" * 20)
    data = bytearray(path.read_bytes())
    data[8:end] = bytes(end - 8)
    path.write_bytes(data)
    reader = StoreReader.open(folder)
    into = StoredBatch(4)
    assert reader.scan(0, 0, 65_000, into) > end
    assert into.count == 4
    for _ in range(2):
        with pytest.raises(CorruptRecordError, match="whose queues nothing tells"):
            reader.dispatch_names(into, 0)
    assert reader.damaged == [Stretch(0, end, LOST_SET)]


def test_a_segment_is_cut_where_records_start(long_log):
    folder, _ = long_log
    reader = StoreReader.open(folder)
    into = StoredBatch(1_000)
    for info in reader.segments():
        bounds = [info.base, *reader.cut(info.base, info.end, 4), info.end]
        assert len(bounds) == 5
        whole = reader.scan(info.base, info.base, info.end, into) and list(into.physical_offset[: into.count])
        parts = []
        for start, end in itertools.pairwise(bounds):
            at = start
            while at < end:
                at = reader.scan(info.base, at, end, into)
                parts += into.physical_offset[: into.count]
        assert parts == whole
    into.clear()
    assert reader.damaged == []
