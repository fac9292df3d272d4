"""Where a damaged dispatch set is looked for."""

from __future__ import annotations

import shutil

from core.settings import StoreSettings
from core.store.dispatcher import Dispatcher
from core.store.head_index import HeadIndex
from core.store.set_lookup import SetLookup
from tests.support.store import light, open_store, publish, read_queue

NAMES = light(*"abcdefgh")
SETTINGS = StoreSettings(segment_bytes=64 * 1024, inline_dispatch_bytes=60)


def fill(folder, segments):
    store = open_store(folder, SETTINGS)
    route = store.make_route(b"T", 0, b"", NAMES)
    while store.written_until < segments * 65_536:
        publish(store, route, bytes(900))
    return store


def test_segments_around_come_nearest_first_and_later_ones_in_order(tmp_path):
    store = fill(tmp_path, 6)
    dispatcher = Dispatcher(store._names, HeadIndex(store._names.count))
    lookup = SetLookup(dispatcher, 2 * 65_536, store._segments, store._index.parts[:2])
    assert [base // 65_536 for base, _ in lookup.others()] == [1, 3, 0, 4, 5, 6]
    assert [base // 65_536 for base, _ in lookup.later()] == [3, 4, 5, 6]
    store.close()


def test_queues_stand_where_the_parts_before_end(tmp_path):
    store = fill(tmp_path, 3)
    dispatcher = Dispatcher(store._names, HeadIndex(store._names.count))
    lookup = SetLookup(dispatcher, 2 * 65_536, store._segments, store._index.parts[:2])
    ref = store.find_queue(NAMES[0])
    first, count = store._index.parts[1].find(ref)
    assert list(lookup.stood([NAMES[0], b"%LMQ%new"])) == [first + count, 0]
    store.close()


def test_a_set_that_only_another_segment_has_is_found_there(tmp_path):
    store = fill(tmp_path / "a", 1)
    store.close()
    (tmp_path / "b").mkdir()
    path = max((tmp_path / "a" / "commitlog").iterdir())
    data = bytearray(path.read_bytes())
    for at in range(100, 140, 3):
        data[at] ^= 0x11  # names of the only copy in this segment
    path.write_bytes(data)
    held = None
    for keeps_index in (True, False):
        folder = tmp_path / str(keeps_index)
        shutil.copytree(tmp_path / "a", folder)
        if not keeps_index:
            shutil.rmtree(folder / "index")
        store = open_store(folder, SETTINGS)
        found = [offset for offset, _ in read_queue(store, NAMES[3])]
        assert found == list(range(store.max_offset(store.find_queue(NAMES[3]))))
        assert store.report.sets_restored_at == [65_536]
        assert held in {None, len(found)}
        held = len(found)
        store.close()
