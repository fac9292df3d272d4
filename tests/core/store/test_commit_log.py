from __future__ import annotations

import errno
import os
import shutil
from itertools import groupby, pairwise

import pytest

from core.errors import DiskFullError, MessageTooLargeError
from core.message import PublishBatch
from core.properties import decode_properties
from core.reserved import DISPATCH_SET_TOPIC
from core.settings import MIB, StoreSettings
from core.store.commit_log import NEVER
from core.store.layout import PAGE_BYTES
from core.store.record import record_size
from core.store.record_codec import decode_record
from tests.support.store import NOW_MS, light, make_batch, open_store, publish, read_queue


@pytest.fixture
def store(tmp_path):
    store = open_store(tmp_path / "data")
    yield store
    store.close()


def records_of(store):
    """Return every record of the newest segment."""
    log = store._log
    view = log.segments.newest.view
    records = []
    pos = 0
    while pos < log.position:
        records.append(decode_record(view, pos, log.base))
        pos += record_size(view, pos)
    assert pos == log.position
    return records


def test_record_holds_all_that_the_batch_said(store):
    route = store.make_route(b"LMQ_PARENT", 3, b"LMQ_TOPIC\x01a/b\x02", light("x", "y"))
    batch = make_batch([(route, b"hello", b"K\x01v\x02")])
    batch.origin = b"LMQ_PROTOCOL\x01mqtt\x02"
    batch.born_host = bytes(range(16)) + b"\x00\x00\x07\x5b"
    batch.flag[0] = 0x4C4D0001
    batch.sys_flag[0] = 0x301
    batch.reconsume_times[0] = 2
    batch.born_ms[0] = NOW_MS - 5
    store.append_batch(batch, NOW_MS)
    (record,) = records_of(store)
    assert (record.topic, record.queue_id, record.queue_offset, record.physical_offset) == (b"LMQ_PARENT", 3, 0, 0)
    assert (record.body, record.flag, record.sys_flag) == (b"hello", 0x4C4D0001, 0x311)
    assert (record.born_ms, record.store_ms, record.born_host) == (NOW_MS - 5, NOW_MS, batch.born_host)
    assert record.store_host == b"\x7f\x00\x00\x01\x00\x00\x2a\x9f"
    assert record.reconsume_times == 2
    properties = decode_properties(record.properties)
    assert list(properties) == [
        b"LMQ_TOPIC",
        b"LMQ_PROTOCOL",
        b"K",
        b"INNER_MULTI_DISPATCH",
        b"INNER_MULTI_QUEUE_OFFSET",
        b"__CRC32#",
    ]
    assert properties[b"INNER_MULTI_QUEUE_OFFSET"] == b"0,0"


def test_born_time_of_nobody_is_now(store):
    publish(store, store.make_route(b"T", 0, b"", []), b"x", now_ms=NOW_MS + 9)
    assert records_of(store)[0].born_ms == NOW_MS + 9


def test_missing_last_separator_is_added(store):
    route = store.make_route(b"T", 0, b"", light("a"))
    store.append_batch(make_batch([(route, b"x", b"K\x01v")]), NOW_MS)
    assert decode_properties(records_of(store)[0].properties)[b"K"] == b"v"


@pytest.mark.parametrize("size", [0, 127, 128, 255])
def test_topic_of_any_length_reads_back(store, size):
    publish(store, store.make_route(b"t" * size, 0, b"", []), b"x")
    assert records_of(store)[-1].topic == b"t" * size


def test_interned_set_is_written_once_a_segment_and_again_in_the_next(store):
    names = light(*(f"{k:04}" for k in range(700)))
    route = store.make_route(b"T", 0, b"", names)
    publish(store, route, b"a", b"b")
    first, second, third = records_of(store)
    assert first.topic == DISPATCH_SET_TOPIC
    assert decode_properties(second.properties)[b"LMQ_SET"] == decode_properties(third.properties)[b"LMQ_SET"] == b"0"
    while store._log.base == 0:
        publish(store, route, b"c" * 10_000)
    sets = [record for record in records_of(store) if record.topic == DISPATCH_SET_TOPIC]
    assert len(sets) == 1
    assert sets[0].physical_offset >= store._log.base
    found = read_queue(store, names[-1])
    assert [offset for offset, _ in found] == list(range(len(found)))


def test_prepared_and_rolled_back_messages_are_in_no_queue(store):
    route = store.make_route(b"T", 0, b"", light("a"))
    batch = make_batch([(route, b"%d" % sys_flag) for sys_flag in (0, 4, 8, 12)])
    for i, sys_flag in enumerate((0, 4, 8, 12)):
        batch.sys_flag[i] = sys_flag
    store.append_batch(batch, NOW_MS)
    assert read_queue(store, b"T/0") == [(0, b"0"), (1, b"8")] == read_queue(store, b"%LMQ%a")


def test_properties_that_fit_exactly_are_taken_and_one_more_byte_is_not(store):
    route = store.make_route(b"T", 0, b"", light("a", "b"))
    for k in range(12):
        publish(store, route, b"%d" % k)
    fixed = len(route.dispatch.text) + len(b"12,12\x02") + 20
    room = 32_767 - fixed - len(b"K\x01\x02") - 1  # one byte is kept for a missing separator
    position = store.written_until
    with pytest.raises(MessageTooLargeError):
        store.append_batch(make_batch([(route, b"x", b"K\x01" + b"v" * (room + 1) + b"\x02")]), NOW_MS)
    assert store.written_until == position
    store.append_batch(make_batch([(route, b"x", b"K\x01" + b"v" * room + b"\x02")]), NOW_MS)
    assert read_queue(store, b"%LMQ%a", 12) == [(12, b"x")]


def test_positions_outside_the_buffers_are_refused_before_anything_is_written(store):
    route = store.make_route(b"T", 0, b"", [])
    for column, value in (("body_end", 2), ("body_start", -1), ("extra_end", 1), ("extra_start", 1)):
        batch = make_batch([(route, b"x")])
        getattr(batch, column)[0] = value
        with pytest.raises(IndexError):
            store.append_batch(batch, NOW_MS)
    assert store.written_until == 0


def test_full_disk_at_a_segments_end_loses_only_what_was_refused(store, monkeypatch):
    route = store.make_route(b"T", 0, b"", light("a"))
    publish(store, route, *(b"x" * 20_000,) * 3)

    def no_room(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", no_room)
    batch = make_batch([(route, b"fits"), (route, b"y" * 20_000)])
    with pytest.raises(DiskFullError):
        store.append_batch(batch, NOW_MS)
    assert batch.appended == 1
    publish(store, route, b"small ones still fit")
    monkeypatch.undo()
    publish(store, route, b"z" * 20_000)
    found = read_queue(store, b"%LMQ%a")
    assert [offset for offset, _ in found] == list(range(6))
    assert found[3:5] == [(3, b"fits"), (4, b"small ones still fit")]


def test_segment_with_too_many_entries_is_closed_early(store):
    store._log.entries_max = 50
    route = store.make_route(b"T", 0, b"", light(*"abcdefghi"))
    publish(store, route, *(b"x",) * 20)
    assert store._log.base >= 3 * 64 * 1024
    assert len(read_queue(store, b"%LMQ%i")) == 20


@pytest.mark.parametrize(("segment_bytes", "names"), [(64 * 1024, 100), (1 << 20, 30)])
def test_set_in_use_is_written_again_after_a_sixteenth_of_a_segment_and_64_times_its_size(
    tmp_path, segment_bytes, names
):
    store = open_store(tmp_path, StoreSettings(segment_bytes=segment_bytes))
    route = store.make_route(b"T", 0, b"", light(*(f"{'long' * 10}{number:03}" for number in range(names))))
    bodies = [b"%d" % number + b"x" * 1_000 for number in range(segment_bytes // 1_200)]
    starts = [publish(store, route, body).physical_offset[0] for body in bodies]
    sets = [record for record in records_of(store) if record.topic == DISPATCH_SET_TOPIC]
    assert len(sets) > 1
    size = starts[0] - sets[0].physical_offset
    period = max(segment_bytes // 16, 64 * size)
    apart = [after.physical_offset - before.physical_offset for before, after in pairwise(sets)]
    assert all(period <= each < period + 1_500 for each in apart)
    last = [record for record in records_of(store) if record.topic == b"T"][-1]
    assert decode_properties(last.properties)[b"LMQ_SET"] == b"%d" % sets[-1].physical_offset
    assert read_queue(store, route.dispatch.names[-1]) == list(enumerate(bodies))
    store.close()
    shutil.rmtree(tmp_path / "index")
    store = open_store(tmp_path, StoreSettings(segment_bytes=segment_bytes))
    assert read_queue(store, route.dispatch.names[-1]) == list(enumerate(bodies))
    store.close()


def test_empty_batch_is_taken(store):
    batch = PublishBatch(1)
    assert store.append_batch(batch, NOW_MS) == 0
    assert batch.appended == 0


def test_pages_made_ready_ahead_leave_the_log_as_it_is(tmp_path):
    logs = []
    for name, is_touched in (("touched", True), ("plain", False)):
        store = open_store(tmp_path / name)
        route = store.make_route(b"LMQ_PARENT", 0, b"", light("q"))
        for number in range(600):  # into the third segment
            publish(store, route, b"%d" % number * (number % 97))
            if is_touched:
                store.touch_ahead()
                store.touch_pages()
        assert len(store._log.segments.segments) == 3
        store.close()
        assert not store.touch_ahead()
        store.touch_pages()
        logs.append([path.read_bytes() for path in sorted((tmp_path / name / "commitlog").iterdir())])
    assert logs[0] == logs[1]


def test_pages_are_made_ready_several_at_once_while_messages_come_one_by_one(tmp_path):
    store = open_store(tmp_path / "data", StoreSettings(segment_bytes=4 * MIB))
    route = store.make_route(b"LMQ_PARENT", 0, b"", light("q"))

    def ready_until(count, body_bytes=256):
        """Return how many pages were ready, from the segment's start, each time that it became more."""
        ends = []
        for _ in range(count):
            publish(store, route, bytes(body_bytes))
            wants_pages = store.touch_ahead()
            ends.append(store._log.touched_end // PAGE_BYTES)
            if wants_pages:
                store.touch_pages()
            ends.append(store._log.touched_end // PAGE_BYTES)
        return [end for end, _ in groupby(ends)]

    assert ready_until(400) == [2, 3, 5, 9, 17, 33, 49]
    store.flush()
    at = store._log.position // PAGE_BYTES
    assert ready_until(1) == [at + 2]  # the sync wrote what was ready: one page again, then twice as many each time
    assert ready_until(120)[1:5] == [at + 3, at + 5, at + 9, at + 17]
    store.close()


def want_pages_alone(store, route):
    """Have a segment, and no step of preparation due: what is wanted from here on is pages."""
    publish(store, route, b"first")
    store._log.prepare_at = NEVER


def test_messages_that_are_synced_one_by_one_have_one_page_ready(tmp_path):
    store = open_store(tmp_path / "data", StoreSettings(segment_bytes=4 * MIB))
    route = store.make_route(b"LMQ_PARENT", 0, b"", light("q"))
    want_pages_alone(store, route)
    for _ in range(60):  # else each sync would write pages of zeros besides
        publish(store, route, bytes(256))
        assert not store.touch_ahead()
        store.flush()
        assert not store.touch_ahead()
        assert store._log.touched_end // PAGE_BYTES == store._log.position // PAGE_BYTES + 2
    store.close()


def test_in_bulk_one_page_is_ready_and_no_more_are_wanted(tmp_path):
    store = open_store(tmp_path / "data", StoreSettings(segment_bytes=4 * MIB))
    route = store.make_route(b"LMQ_PARENT", 0, b"", light("q"))
    want_pages_alone(store, route)
    for _ in range(5):
        publish(store, route, bytes(30 * PAGE_BYTES))
        assert not store.touch_ahead()
        assert store._log.touched_end // PAGE_BYTES == store._log.position // PAGE_BYTES + 2
    for _ in range(100):  # some tens fill a page
        publish(store, route, b"alone")
        if store.touch_ahead():
            break
    else:
        pytest.fail("no more pages are wanted, though messages come one by one")
    publish(store, route, bytes(30 * PAGE_BYTES))
    store.touch_pages()  # too late
    assert store._log.touched_end < store._log.position
    store.close()


def test_no_pages_are_wanted_beyond_the_end_of_a_segment(tmp_path):
    store = open_store(tmp_path / "data", StoreSettings(segment_bytes=16 * PAGE_BYTES))
    route = store.make_route(b"LMQ_PARENT", 0, b"", light("q"))
    want_pages_alone(store, route)
    wanted_at = []
    while not store._log.base:
        publish(store, route, bytes(256))
        if store.touch_ahead() and not store._log.base:  # the next segment wants a step
            wanted_at.append((store._log.base, store._log.position // PAGE_BYTES))
            store.touch_pages()
    assert wanted_at == [(0, 1), (0, 3), (0, 7)]  # up to the fifth, the ninth and the last page
    store.close()


def make_whole(*messages):
    batch = make_batch(messages)
    batch.is_whole = True
    return batch


def test_a_whole_batch_with_a_message_that_is_too_large_leaves_nothing(store):
    plain, wide = store.make_route(b"T", 0, b"", []), store.make_route(b"T", 0, b"", light(*map(str, range(100))))
    publish(store, plain, b"before")
    end = store.written_until
    for large in (
        (plain, b"x" * (store.settings.message_bytes_max + 1)),
        (wide, b"x", b"k\x01%b\x02" % (b"v" * 32_760)),
    ):
        batch = make_whole((wide, b"1"), large, (plain, b"3"))
        with pytest.raises(MessageTooLargeError):
            store.append_batch(batch, NOW_MS)
        assert (batch.appended, store.written_until) == (0, end)
    assert read_queue(store, b"T/0") == [(0, b"before")]
    assert read_queue(store, b"%LMQ%0") == []


def test_a_whole_batch_goes_to_the_next_segment_where_it_does_not_fit_into_this_one(store, monkeypatch):
    route = store.make_route(b"T", 0, b"", light("a"))
    publish(store, route, *(b"x" * 20_000,) * 2)
    batch = make_whole((route, b"y" * 20_000), (route, b"z" * 20_000))

    def no_room(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "posix_fallocate", no_room)
        with pytest.raises(DiskFullError):
            store.append_batch(batch, NOW_MS)
        assert batch.appended == 0
        publish(store, route, b"fits")
    store.append_batch(batch, NOW_MS)
    assert [store._log.segments.find(batch.physical_offset[i]).base for i in range(2)] == [64 * 1024] * 2
    assert [body[:1] for _, body in read_queue(store, b"%LMQ%a")] == [b"x", b"x", b"f", b"y", b"z"]


def test_a_whole_batch_that_no_segment_holds_is_too_large(store):
    route = store.make_route(b"T", 0, b"", light("a"))
    batch = make_whole(*[(route, b"y" * 20_000)] * 4)
    with pytest.raises(MessageTooLargeError, match="batch has"):
        store.append_batch(batch, NOW_MS)
    assert store.written_until == 0
