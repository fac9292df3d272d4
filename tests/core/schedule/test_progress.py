from __future__ import annotations

from core.schedule.progress import Progress
from tests.support.store import open_store


def test_what_was_saved_is_there_after_a_crash_between_any_two_stores(tmp_path):
    store = open_store(tmp_path)
    places, table = store.places("timer"), store.table("timer")
    progress = Progress(table, places)
    assert progress.load() == (0, 0)
    known = (0, 0)
    for entry in [(1_000, 0), (1_000, 7), (1_001, 3), (1_065, 9), (1_065, 10), (2_000, 0)]:
        seen = []
        set_place = places.set

        def record(slot, value, set_place=set_place, seen=seen):
            set_place(slot, value)
            seen.append(Progress(table, places).load())

        progress._places = type("Recorded", (), {"set": staticmethod(record), "get": staticmethod(places.get)})()
        progress.save(*entry)
        assert set(seen) <= {known, entry}
        assert seen[-1] == entry
        known = entry
    store.close()
    store = open_store(tmp_path)
    assert Progress(store.table("timer"), store.places("timer")).load() == known
    store.close()
