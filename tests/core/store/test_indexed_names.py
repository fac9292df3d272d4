"""A segment's index tells which light queues a message is in."""

from __future__ import annotations

import pytest

from core.message import StoredBatch
from core.store.indexed_names import names_by_index
from core.store.reader import StoreReader
from tests.support.store import light, open_store, publish


@pytest.fixture
def folder(tmp_path):
    store = open_store(tmp_path)
    routes = [store.make_route(b"T", 0, b"", light(*names)) for names in ("abc", "b", "", "ca")]
    for number in range(120):
        publish(store, routes[number % 4], b"%d" % number + bytes(900))
    store.close()
    return tmp_path


def positions(folder):
    """Return where the first four messages stand in the first segment."""
    reader = StoreReader.open(folder)
    into = StoredBatch(4)
    reader.scan(0, 0, 60_000, into)
    found = list(into.record_start[: into.count])
    into.clear()
    return found


def test_the_light_queues_of_a_message_come_sorted(folder):
    found = [names_by_index(folder, 0, position) for position in positions(folder)]
    assert found == [light("a", "b", "c"), light("b"), [], light("a", "c")]
    assert names_by_index(folder, 0, 7) == []


@pytest.mark.parametrize("name", ["0" * 20, "queues"])
@pytest.mark.parametrize("how", ["missing", "damaged", "other"])
def test_without_a_sound_index_there_are_none(folder, name, how, tmp_path_factory):
    position = positions(folder)[0]
    path = folder / "index" / name
    data = bytearray(path.read_bytes())
    if how == "missing":
        path.unlink()
    elif how == "damaged":
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
        (folder / "index" / "queues.copy").unlink()
    else:
        other = open_store(tmp_path_factory.mktemp("other"))
        other.intern_queue(b"%LMQ%z")
        other.close()
        path.write_bytes((other.data_dir / "index" / "queues").read_bytes())
        (folder / "index" / "queues.copy").unlink()
    if (name, how) == ("queues", "missing"):
        assert names_by_index(folder, 0, position) == []
    else:
        assert names_by_index(folder, 0, position) in ([], light("a", "b", "c"))
