from __future__ import annotations

from pathlib import Path

from core.settings import StoreSettings
from core.store.descriptors import descriptor_count_max
from tests.support.store import light, open_store, publish, read_queue

SETTINGS = StoreSettings(segment_bytes=64 * 1024, segments_mapped_max=4)
SEGMENTS = 120
SYNCED_MAX = 2 * (SETTINGS.segments_mapped_max + 8) + 64  # where each segment is synced as soon as it is full


def _open_in(folder):
    """Return how many descriptors there are of files in a folder."""
    names = []
    for entry in Path("/proc/self/fd").iterdir():
        try:
            names.append(str(entry.readlink()))
        except FileNotFoundError:  # what lists them
            continue
    return sum(name.startswith(str(folder)) for name in names)


def test_room_is_kept_for_segments_that_wait_for_a_sync():
    usual = StoreSettings()
    smaller = StoreSettings(segment_bytes=usual.segment_bytes // 4)
    assert descriptor_count_max(usual) == 2 * (usual.segments_mapped_max + 4 + 8) + 64
    assert descriptor_count_max(smaller) == 2 * (usual.segments_mapped_max + 16 + 8) + 64


def test_store_holds_no_more_than_it_says_however_long_the_log_is(tmp_path):
    store = open_store(tmp_path, SETTINGS)
    for name in ("one", "two", "three"):
        store.places(name)
        store.journal(name)
    route = store.make_route(b"T", 0, b"", light("a"))
    most = 0
    for _ in range(SEGMENTS):
        publish(store, route, *(b"x" * 6_000,) * 10)
        most = max(most, _open_in(tmp_path))
        store.flush()
        store.prepare()
        most = max(most, _open_in(tmp_path))
    assert len(list((tmp_path / "commitlog").iterdir())) > SEGMENTS // 2
    assert len(read_queue(store, b"%LMQ%a")) == 10 * SEGMENTS
    most = max(most, _open_in(tmp_path))
    assert len(list((tmp_path / "index").glob("0*"))) > SYNCED_MAX  # these hold none
    assert most <= SYNCED_MAX <= descriptor_count_max(SETTINGS)
    store.close()
    again = open_store(tmp_path, SETTINGS)
    assert _open_in(tmp_path) <= SYNCED_MAX
    again.close()
