from __future__ import annotations

import pytest

from core.errors import FlushFailedError, StoreClosedError
from core.settings import MIB, StoreSettings
from core.store.embedded import EmbeddedEngine
from core.store.layout import PAGE_BYTES
from core.store.pages_ahead import POPULATED_MIN
from tests.support.store import NOW_MS, make_batch, open_store, publish

AGED_MS = NOW_MS + 1000 * 3_600_000


@pytest.fixture
def engine(tmp_path):
    engine = EmbeddedEngine(open_store(tmp_path), is_sync=False)
    yield engine
    engine.store.close()


def fill(engine, key, count):
    """Publish a kilobyte a message, flushing so that full segments get their index."""
    route = engine.make_route(b"T", 0, b"", [key])
    for _ in range(count):
        publish(engine.store, route, b"x" * 1_000)
        engine.store.flush()
        engine.store.prepare()
    return engine.find_queue(key)


def test_room_and_limits_are_the_stores(tmp_path):
    settings = StoreSettings(segment_bytes=65_536, disk_free_bytes_min=5 << 20, message_bytes_max=4_096)
    engine = EmbeddedEngine.open(tmp_path, settings, now_ms=NOW_MS)
    assert (engine.room.free_bytes_min, engine.message_bytes_max) == (5 << 20, 4_096)
    engine.store.close()


def test_figures_say_what_was_stored(engine):
    fill(engine, b"%LMQ%q", 3)
    figures = engine.figures()
    assert (figures.messages_stored, figures.dispatches, figures.queues) == (3, 3, 2)
    assert figures.log_bytes > 0
    assert figures.records_damaged == 0


def test_what_was_on_disk_before_the_start_is_sure(tmp_path):
    engine = EmbeddedEngine(open_store(tmp_path), is_sync=False)
    fill(engine, b"%LMQ%q", 3)
    end = engine.end_place
    engine.store.close()
    again = EmbeddedEngine(open_store(tmp_path), is_sync=False)
    fill(again, b"%LMQ%q", 1)
    assert again.sure_place == end > 0
    again.store.close()


def test_retiring_goes_on_in_the_steps_that_follow_and_stops_at_what_is_held(engine):
    queue_ref = fill(engine, b"%LMQ%q", 400)
    held = [(queue_ref, 0)]
    engine.hold(lambda: held)
    assert engine.retire(AGED_MS) == 0
    while engine.step(AGED_MS):
        pass
    assert engine.min_offset(queue_ref) == 0
    held.clear()
    count = engine.retire(AGED_MS)
    while engine.step(AGED_MS):
        pass
    assert count + engine.retire(AGED_MS) > 2
    assert 0 < engine.min_offset(queue_ref) < engine.max_offset(queue_ref) == 400


def test_what_no_table_covers_is_given_once(engine):
    fill(engine, b"%LMQ%q", 3)
    engine.store.note_covered()
    fill(engine, b"%LMQ%q", 2)
    assert engine.replay_uncovered(lambda batch: batch.count) == 2
    assert engine.replay_uncovered(lambda batch: batch.count) == 0


def test_nothing_is_taken_after_a_refused_sync(engine):
    batch = make_batch([(engine.make_route(b"T", 0, b"", []), b"x")])
    engine.append_batch(batch, NOW_MS)
    engine.durability.begin_flush()
    engine.durability.end_flush(FlushFailedError("EIO"))
    with pytest.raises(StoreClosedError):
        engine.append_batch(batch, NOW_MS)
    assert batch.appended == 0
    assert engine.is_failed


def test_pages_that_lone_messages_come_to_are_ready_after_the_step_before(engine):
    log = engine.store._log
    route = engine.make_route(b"LMQ_PARENT", 0, b"", [b"%LMQ%q"])
    ahead = set()
    while log.position < 8 * PAGE_BYTES:
        publish(engine.store, route, b"x")
        assert log.position < PAGE_BYTES or log.position <= log.touched_end
        engine.step(NOW_MS)
        ahead.add((log.touched_end - log.position) // PAGE_BYTES)
    assert max(ahead) >= 2


def test_who_makes_room_ready_is_woken_when_the_writer_came_near_its_end(tmp_path):
    store = open_store(tmp_path / "large", StoreSettings(segment_bytes=2 * POPULATED_MIN))
    engine, woken = EmbeddedEngine(store, is_sync=False), []
    engine.wake_preparer = lambda: woken.append(store.written_until)
    route = store.make_route(b"LMQ_PARENT", 0, b"", [b"%LMQ%q"])
    publish(store, route, b"first")
    store.prepare()
    for _ in range(POPULATED_MIN // MIB):
        publish(store, route, bytes(MIB - 1_000))
        engine.step(NOW_MS)
    assert len(woken) == 1
    assert POPULATED_MIN // 2 <= woken[0] < POPULATED_MIN // 2 + 2 * MIB
    store.close()
