"""Where a damaged dispatch set is looked for."""

from __future__ import annotations

import shutil

from core.settings import StoreSettings
from core.store.dispatcher import Dispatcher
from core.store.head_index import HeadIndex
from core.store.recovery import recover
from core.store.segments import Segments
from core.store.set_lookup import SetLookup
from tests.support.store import light, open_store, publish, read_queue

NAMES = light(*"abcdefgh")
SETTINGS = StoreSettings(segment_bytes=64 * 1024, inline_dispatch_bytes=60)


def fill(folder, segments):
    store = open_store(folder, SETTINGS)
    route = store.make_route(b"T", 0, b"", NAMES)
    while store.written_until < segments * 65_536:
        publish(store, route, bytes(900))
    store.close()


def around(folder, number):
    """Return what is around a segment, and the indexes of those before it."""
    segments = Segments(folder / "commitlog", folder, 65_536, 4)
    recovered = recover(segments, folder / "index")
    dispatcher = Dispatcher(recovered.names, HeadIndex(recovered.names.count))
    parts = recovered.index.parts[:number]
    return SetLookup(dispatcher, number * 65_536, segments, parts), parts, recovered.names


def test_segments_around_come_nearest_first_and_later_ones_in_order(tmp_path):
    fill(tmp_path, 6)
    lookup, _, _ = around(tmp_path, 2)
    assert [base // 65_536 for base, _ in lookup.others()] == [1, 3, 0, 4, 5, 6]
    assert [base // 65_536 for base, _ in lookup.later()] == [3, 4, 5, 6]


def test_queues_stand_where_the_parts_before_end(tmp_path):
    fill(tmp_path, 3)
    lookup, parts, names = around(tmp_path, 2)
    first, count = parts[1].find(names.find(NAMES[0]))
    assert first > 0
    assert list(lookup.stood([NAMES[0], b"%LMQ%new"])) == [first + count, 0]


def test_a_set_that_only_another_segment_has_is_found_there(tmp_path):
    fill(tmp_path / "a", 1)
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
