from __future__ import annotations

import os
import shutil
from array import array

import pytest

from core.errors import (
    DataFolderInUseError,
    DataFolderUnusableError,
    DiskFullError,
    InvalidNameError,
    MessageTooLargeError,
    QueueLimitError,
    StoreClosedError,
)
from core.message import StoredBatch
from core.reserved import RESERVED_TOPICS
from core.settings import RetentionSettings, StoreSettings
from tests.support.store import NOW_MS, SMALL, light, make_batch, open_store, publish, read_queue, retire


@pytest.fixture
def store(tmp_path):
    store = open_store(tmp_path / "data")
    yield store
    store.close()


def test_message_is_written_once_and_read_from_each_of_its_queues(store):
    route = store.make_route(b"T", 2, b"LMQ_TOPIC\x01a/b\x02", light("a", "b"))
    batch = publish(store, route, b"one", b"two")
    assert list(batch.queue_offset) == [0, 1]
    for key in (b"T/2", *light("a", "b")):
        assert read_queue(store, key) == [(0, b"one"), (1, b"two")]
    assert store.written_until == 2 * (batch.physical_offset[1] - batch.physical_offset[0])
    into = StoredBatch(4)
    assert store.read_at(batch.physical_offset[1], into)
    assert bytes(into.buf[into.topic_start[0] : into.topic_end[0]]) == b"a/b"
    assert not store.read_at(store.written_until, into)
    assert not store.read_at(3, into)


def test_queues_survive_closing_and_many_segments(tmp_path):
    store = open_store(tmp_path)
    routes = [store.make_route(b"T", 0, b"", light(f"q{k % 7}", f"q{k % 3}")) for k in range(21)]
    for k in range(1000):
        publish(store, routes[k % 21], b"%d" % k * 50)
    before = {key: read_queue(store, key) for key in (b"T/0", *light(*(f"q{k}" for k in range(7))))}
    assert len(before[b"T/0"]) == 1000
    assert store.log_bytes() >= 4 * SMALL.segment_bytes
    store.close()
    store = open_store(tmp_path)
    assert {key: read_queue(store, key) for key in before} == before
    assert store.report.indexes_rebuilt == 0
    store.close()


def test_indexes_are_rebuilt_from_the_log_alone(tmp_path):
    store = open_store(tmp_path)
    many = store.make_route(b"T", 0, b"", light(*(f"q{k:04}" for k in range(600))))
    few = store.make_route(b"T", 0, b"", light("q0001", "x"))
    for k in range(300):
        publish(store, many if k % 3 else few, b"%d" % k * 80)
    keys = [store.queue_key(ref) for ref in range(store.queue_count())]
    before = {key: read_queue(store, key) for key in keys}
    store.close()
    shutil.rmtree(tmp_path / "index")
    store = open_store(tmp_path)
    assert {key: read_queue(store, key) for key in keys} == before
    assert store.report.indexes_rebuilt > 0
    assert store.report.entries_lost == 0
    store.close()


@pytest.mark.parametrize("topic", sorted(RESERVED_TOPICS))
def test_no_route_leads_to_a_topic_of_the_logs_own(store, topic):
    with pytest.raises(InvalidNameError):
        store.make_route(topic, 0, b"", [])
    assert store.find_queue(topic + b"/0") == -1


def test_message_without_a_route_is_passed_over(store):
    route = store.make_route(b"T", 0, b"", [])
    batch = make_batch([(None, b"x"), (route, b"y"), (None, b"z")])
    store.append_batch(batch, NOW_MS)
    assert list(batch.physical_offset) == [-1, 0, -1]
    assert batch.appended == 3


def test_too_large_message_leaves_no_trace_and_those_before_it_stay(store):
    route = store.make_route(b"T", 0, b"", light("a"))
    for extra in (b"K\x01" + b"v" * 32_767 + b"\x02",):
        batch = make_batch([(route, b"fine"), (route, b"bad", extra), (route, b"never")])
        with pytest.raises(MessageTooLargeError):
            store.append_batch(batch, NOW_MS)
        assert batch.appended == 1
    with pytest.raises(MessageTooLargeError):
        publish(store, route, b"x" * 70_000)
    assert read_queue(store, b"T/0") == [(0, b"fine")] == read_queue(store, b"%LMQ%a")
    publish(store, route, b"next")
    assert read_queue(store, b"%LMQ%a") == [(0, b"fine"), (1, b"next")]


def test_hundred_thousand_queues_take_one_publish(tmp_path):
    store = open_store(tmp_path, StoreSettings(segment_bytes=16 << 20))
    names = light(*(f"mqtt%dev{k:06}" for k in range(100_000)))
    route = store.make_route(b"T", 0, b"", names)
    publish(store, route, b"x")
    assert store.written_until < 1_600_000
    once = store.written_until
    publish(store, route, b"y")
    assert store.written_until - once < 300
    assert read_queue(store, names[77_777]) == [(0, b"x"), (1, b"y")]
    store.close()


def test_watched_queues_are_reported_once_when_they_grow(store):
    route = store.make_route(b"T", 0, b"", light("a", "b"))
    ref = store.find_queue(b"%LMQ%a")
    store.watch(ref, on=True)
    publish(store, route, b"x", b"y")
    grown = []
    assert store.take_grown(grown) == 1
    assert grown == [ref]
    assert store.take_grown(grown) == 0


def test_read_stops_at_its_limits_but_gives_at_least_one(store):
    publish(store, store.make_route(b"T", 0, b"", []), *(b"x" * 100,) * 5)
    into = StoredBatch(8)
    ref = store.find_queue(b"T/0")
    assert store.read(ref, 0, into, 3, 1 << 20) == 3
    assert into.next_offset == 3
    assert store.read(ref, 0, into, 8, 1) == 1
    assert store.read(ref, 1, into, 8, 500) == 2
    assert store.read(ref, 5, into, 8, 500) == 0
    assert store.read(ref, 99, into, 8, 500) == 0
    assert into.next_offset == 5


def test_read_offsets_gives_a_chosen_set_up_to_a_segments_border(store):
    route = store.make_route(b"T", 0, b"", [])
    for k in range(900):
        publish(store, route, b"%d" % k)
    ref = store.find_queue(b"T/0")
    wanted = array("q", [0, 1, 2, 7, 300, 301, 880, 899])
    into = StoredBatch(8)
    found = []
    done = 0
    while done < len(wanted):
        done += store.read_offsets(ref, wanted[done:], len(wanted) - done, into)
        found += [int(bytes(into.buf[into.body_start[i] : into.body_end[i]])) for i in range(into.count)]
    assert found == list(wanted)


def test_offset_at_time_follows_store_times(store):
    route = store.make_route(b"T", 0, b"", [])
    for k in range(10):
        publish(store, route, b"a", b"b", now_ms=NOW_MS + 1000 * k)
    ref = store.find_queue(b"T/0")
    assert store.offset_at_time(ref, 0) == 0
    assert store.offset_at_time(ref, NOW_MS + 3000) == 6
    assert store.offset_at_time(ref, NOW_MS + 3001) == 8
    assert store.offset_at_time(ref, NOW_MS + 99_000) == 20
    assert store.offset_at_time(ref, NOW_MS + 3000, upper=True) == 7
    assert store.offset_at_time(ref, 0, upper=True) == 0


def test_store_times_never_go_back(store):
    route = store.make_route(b"T", 0, b"", [])
    publish(store, route, b"a", now_ms=NOW_MS + 50)
    publish(store, route, b"b", now_ms=NOW_MS)
    into = StoredBatch(2)
    store.read(store.find_queue(b"T/0"), 0, into, 2, 1 << 20)
    assert list(into.store_ms) == [NOW_MS + 50] * 2


def test_old_segments_go_and_offsets_go_on(tmp_path):
    settings = StoreSettings(segment_bytes=64 * 1024, retention=RetentionSettings(age_hours=1))
    store = open_store(tmp_path, settings)
    route = store.make_route(b"T", 0, b"", light("a"))
    quiet = store.make_route(b"T", 0, b"", light("quiet"))
    publish(store, quiet, b"once")
    for k in range(900):
        publish(store, route, b"%d" % k * 30)
    late = NOW_MS + 3 * 3_600_000
    publish(store, route, b"late", now_ms=late)
    held = (store.find_queue(b"T/0"), 0)
    assert retire(store, late, held) == 0
    store.prepare()
    assert retire(store, late, held) == 0  # no index is written before the segment is on disk
    store.flush()
    store.prepare()
    assert retire(store, late, held) == 0
    dropped = retire(store, late)
    assert dropped > 0
    assert store.min_offset(store.find_queue(b"%LMQ%a")) > 0
    assert read_queue(store, b"%LMQ%a")[-1] == (900, b"late")
    assert read_queue(store, b"%LMQ%quiet") == []
    for _ in range(2):
        ref = store.find_queue(b"%LMQ%quiet")
        assert (store.min_offset(ref), store.max_offset(ref)) == (1, 1)
        store.close()
        store = open_store(tmp_path, settings)
    publish(store, store.make_route(b"T", 0, b"", light("quiet")), b"again")
    assert read_queue(store, b"%LMQ%quiet") == [(1, b"again")]
    store.close()


def test_flush_covers_what_was_written_before_it(store):
    assert not store.needs_flush()
    publish(store, store.make_route(b"T", 0, b"", []), b"x")
    assert store.needs_flush()
    assert store.flush() == store.written_until == store.flushed_until
    assert not store.needs_flush()
    store.table("t").put(b"k", b"v")
    assert store.needs_flush()
    store.flush()
    assert not store.needs_flush()


def test_names_that_no_list_can_hold_are_refused(store):
    for name in (b"a", b"%LMQ%", b"%LMQ%a,b", b"%LMQ%a\x01", b""):
        with pytest.raises(InvalidNameError):
            store.make_dispatch([name])
    dispatch = store.make_dispatch(light("a", "b", "a"))
    assert dispatch.names == light("a", "b")
    assert store.make_dispatch(light("a", "b", "a")) is dispatch


def test_folder_is_for_one_store_at_a_time(store):
    with pytest.raises(DataFolderInUseError):
        open_store(store.data_dir)


@pytest.mark.parametrize("kind", ["journals", "places"])
def test_file_that_cannot_be_opened_is_named(store, kind):
    path = store.data_dir / kind / "mine"
    path.mkdir()
    with pytest.raises(DataFolderUnusableError) as caught:
        (store.journal if kind == "journals" else store.places)("mine")
    assert caught.value.path == str(path)


def test_closed_store_takes_nothing(store):
    route = store.make_route(b"T", 0, b"", [])
    store.close()
    with pytest.raises(StoreClosedError):
        publish(store, route, b"x")
    store.close()


def test_log_is_read_in_its_order_across_segments_and_from_where_it_begins(tmp_path):
    store = open_store(tmp_path)
    route = store.make_route(b"T", 0, b"", light("a"))
    batch = publish(store, route, *(b"%03d" % k + b"x" * 900 for k in range(200)))
    into = StoredBatch(64)

    def scan(start):
        found = []
        while start < store.written_until:
            start = store.scan(start, into)
            found += [int(bytes(into.buf[at : at + 3])) for at in into.body_start[: into.count]]
        return found

    assert scan(0) == list(range(200))
    assert scan(batch.physical_offset[70]) == list(range(70, 200))
    assert scan(store.written_until) == []
    into.clear()
    store.flush()
    store.prepare()
    assert retire(store, NOW_MS + 1000 * 3_600_000) > 0
    kept = store.min_offset(store.find_queue(b"%LMQ%a"))
    assert kept > 0
    assert scan(0) == list(range(kept, 200))
    into.clear()
    store.close()


def test_empty_log_that_has_no_room_for_its_first_segment_says_so_ahead(tmp_path, monkeypatch):
    store = open_store(tmp_path)
    store.prepare()
    monkeypatch.setattr(os, "statvfs", lambda path: os.statvfs_result((4096, 4096, 9, 3, 3, 0, 0, 0, 0, 255)))
    assert store.free_bytes() == 3 * 4096
    with pytest.raises(DiskFullError):
        store.prepare()
    store.close()


def test_names_of_queues_are_bounded_but_for_what_mqtt_and_amqp_are_stored_on(tmp_path):
    settings = SMALL.model_copy(update={"queues_max": 1_000})
    store = open_store(tmp_path / "data", settings)
    for number in range(999):
        store.intern_queue(b"%%LMQ%%%d" % number)
    with pytest.raises(QueueLimitError):
        store.make_dispatch(light("one", "two"))
    assert store.max_offset(store.find_queue(b"%LMQ%one")) == 0  # the last that found room
    assert store.make_dispatch(light("0", "998", "one")).count == 3
    route = store.make_route(b"LMQ_PARENT", 0, b"", light("0"))
    publish(store, route, b"body")
    assert read_queue(store, b"%LMQ%0") == [(0, b"body")]
    store.close()
    store = open_store(tmp_path / "data", settings)
    assert store.queue_count() == 1_001
    with pytest.raises(QueueLimitError):
        store.intern_queue(b"%LMQ%two")
    store.close()
