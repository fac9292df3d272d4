from __future__ import annotations

import pytest

from core.errors import DataFolderUnusableError
from core.message import StoredBatch
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
    assert reader.damaged_at == []
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
        assert reader.damaged_at == [batch.physical_offset[1]]


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
