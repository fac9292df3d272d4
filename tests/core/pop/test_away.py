"""Reads that find nothing there yet: what is on its way is not gone."""

from __future__ import annotations

from core.message import AWAY, StoredBatch
from core.pop.pop_service import PopService
from tests.support.late_engine import make_late
from tests.support.store import NOW_MS, open_store, publish


def take_all(broker_engine, queue):
    """Take what there is, a turn of the engine after each time that it is on its way; return bodies and waits."""
    stored, found, waits = StoredBatch(8), [], 0
    while True:
        count = queue.take(stored, 8, 1 << 20, 0, NOW_MS)
        if count == 0:
            return found, waits
        if count == AWAY:
            assert stored.count == 0
            waits += 1
            broker_engine.step(NOW_MS)
            continue
        found += [bytes(stored.buf[stored.body_start[i] : stored.body_end[i]]) for i in range(count)]


def test_messages_that_are_given_back_and_on_their_way_are_taken_again_and_not_dropped(tmp_path):
    store = open_store(tmp_path)
    engine = make_late(store, is_sync=False, away=1.0)
    route = engine.make_route(b"T", 0, b"", [b"%LMQ%q"])
    publish(store, route, *[b"%d" % number for number in range(20)])
    queue = PopService(engine, engine.journal("pop")).open(b"%LMQ%q", b"g")
    first, waits = take_all(engine, queue)
    assert first == [b"%d" % number for number in range(20)]
    assert waits > 0
    for offset in range(20):
        queue.nack(offset)
    again, waits = take_all(engine, queue)
    assert sorted(again) == sorted(first)
    assert waits > 0
    assert queue.skipped_count == 0
    store.close()
