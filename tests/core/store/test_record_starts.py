"""A segment is cut where records start, by its index or from record to record."""

from __future__ import annotations

import pytest

from core.message import StoredBatch
from core.store.reader import StoreReader
from core.store.record_starts import cut_segment
from core.store.record_walk import find_start
from tests.support.store import light, open_store, publish


@pytest.fixture
def folder(tmp_path):
    """A full segment and a newest one, with bodies that hold a record's first bytes."""
    store = open_store(tmp_path)
    route = store.make_route(b"T", 0, b"", light("a"))
    for number in range(200):
        publish(store, route, b"\xda\xa3\x20\xa7" * (number % 400))
    store.close()
    return tmp_path


def starts_of(folder, base):
    reader = StoreReader.open(folder)
    info = next(info for info in reader.segments() if info.base == base)
    into = StoredBatch(1_000)
    assert reader.scan(base, base, info.end, into) >= info.end
    found = list(into.record_start[: into.count])
    into.clear()
    return found, info.end - base


@pytest.mark.parametrize("base", [0, 65_536])
@pytest.mark.parametrize("count", [2, 3, 7, 1_000])
@pytest.mark.parametrize("has_index", [True, False])
def test_a_segment_is_cut_at_records(folder, base, count, has_index):
    if not has_index:
        for path in (folder / "index").iterdir():
            path.unlink()
    starts, limit = starts_of(folder, base)
    view = (folder / "commitlog" / f"{base:020d}").read_bytes()
    found = cut_segment(folder, view, base, limit, count)
    assert found == sorted(set(found) & set(starts) - {0})
    assert len(found) <= count - 1
    assert len(found) == count - 1 or count == 1_000
    if count == 2:
        assert limit // 4 < found[0] < limit * 3 // 4


def test_behind_damage_nothing_is_cut_without_an_index(folder):
    for path in (folder / "index").iterdir():
        path.unlink()
    starts, limit = starts_of(folder, 0)
    view = bytearray((folder / "commitlog" / ("0" * 20)).read_bytes())
    view[starts[len(starts) // 2] + 28] ^= 1
    found = cut_segment(folder, bytes(view), 0, limit, 10)
    assert found
    assert found == [at for at in found if at <= starts[len(starts) // 2]]


def test_the_index_of_other_records_is_not_used(folder):
    starts, limit = starts_of(folder, 65_536)
    (folder / "index" / f"{65_536:020d}").write_bytes((folder / "index" / ("0" * 20)).read_bytes())
    view = (folder / "commitlog" / f"{65_536:020d}").read_bytes()
    assert set(cut_segment(folder, view, 65_536, limit, 5)) <= set(starts)


def test_starts_are_found_from_record_to_record(folder):
    starts, limit = starts_of(folder, 0)
    view = (folder / "commitlog" / ("0" * 20)).read_bytes()
    assert find_start(view, 0, 0, 1) == starts[1]
    assert find_start(view, 0, 0, starts[5]) == starts[5]
    assert find_start(view, 0, 0, len(view)) == -1
    assert limit > starts[5]
