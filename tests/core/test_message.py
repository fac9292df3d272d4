from __future__ import annotations

import pytest

from core.message import DispatchSet, KeySearch, PublishBatch, RefRoom, Route, StoredBatch


def test_a_batch_has_room_for_its_capacity_in_every_column():
    publish, stored = PublishBatch(7), StoredBatch(7)
    for batch, columns in (
        (publish, "route_index body_start body_end extra_start extra_end flag sys_flag reconsume_times born_ms tag"),
        (publish, "physical_offset queue_offset"),
        (stored, "record_start record_end topic_start topic_end body_start body_end properties_start properties_end"),
        (stored, "flag sys_flag attempt queue_offset physical_offset born_ms store_ms"),
    ):
        assert all(len(getattr(batch, column)) == 7 for column in columns.split())


def test_clearing_lets_go_of_buffers_and_routes():
    batch = PublishBatch(2)
    batch.buf = bytearray(b"body")
    batch.topics.append(b"t")
    batch.routes.append(Route(b"T", 0, 0, b"", DispatchSet([], [], b"", RefRoom())))
    batch.count = batch.appended = batch.retained_count = 1
    batch.clear()
    assert (batch.count, batch.appended, batch.retained_count) == (0, 0, 0)
    assert (bytes(batch.buf), batch.topics, batch.routes) == (b"", [], [])


@pytest.mark.parametrize("count", [0, 1, 3, 8, 9, 64, 2_000])
def test_refs_that_share_room_stay_as_they_were_put(count):
    room = RefRoom()
    sets = [DispatchSet([], list(range(first, first + count)), b"", room) for first in range(0, 3_000, 7)]
    assert all(list(each.queue_refs) == list(range(7 * i, 7 * i + count)) for i, each in enumerate(sets))


def test_a_dispatch_set_counts_its_queues():
    dispatch = DispatchSet([b"%LMQ%a", b"%LMQ%b"], [4, 9], b"text", RefRoom())
    assert (dispatch.count, list(dispatch.queue_refs), dispatch.written_at) == (2, [4, 9], -1)


def test_a_search_that_asks_again_has_found_nothing_yet():
    search = KeySearch()
    search.ask(3, 10, 20, b"key", is_back=True)
    search.found(12)
    search.found(19)
    assert list(search.offsets[: search.count]) == [12, 19]
    search.ask(4, 0, 5, b"other", is_back=False)
    assert (search.queue_ref, search.first, search.end, search.key, search.is_back) == (4, 0, 5, b"other", False)
    assert search.count == 0
