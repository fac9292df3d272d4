"""What a log still says of a damaged dispatch set: other sets, and counts of their queues."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given, strategies as st

from core.message import StoredBatch
from core.settings import StoreSettings
from core.store.set_copies import DAMAGE, QueueCount, find_copies, walk
from tests.support.store import light, open_store, publish

NAMES = light(*"abcdefgh")


@pytest.fixture
def log(tmp_path):
    """Return a segment: a set of eight queues before and after messages to it and to some of them by lists."""
    store = open_store(tmp_path, StoreSettings(segment_bytes=64 * 1024, inline_dispatch_bytes=60))
    many = store.make_route(b"T", 0, b"", NAMES)
    few = store.make_route(b"T", 0, b"", light("a", "z"))
    publish(store, few, b"0")
    publish(store, many, b"1", b"2", b"3")
    publish(store, few, b"4")
    many.dispatch.written_at = -1
    publish(store, many, b"5")
    store.close()
    return (tmp_path / "commitlog" / ("0" * 20)).read_bytes()


def test_sets_are_found_in_their_order(log):
    first, second = find_copies(log, 0)
    assert first.names == second.names == NAMES
    assert first.text == second.text
    assert first.place < second.place
    assert list(first.offsets) == [1] + [0] * 7
    assert list(second.offsets) == [5] + [3] * 7


def test_the_walk_goes_on_after_damage(log):
    first, _ = find_copies(log, 0)
    data = bytearray(log)
    data[first.place + 120] ^= 1
    into = StoredBatch(1)
    seen = list(walk(into, bytes(data), 0, 0))
    assert seen.count(DAMAGE) == 1
    assert first.place not in seen
    assert len(find_copies(bytes(data), 0)) == 1


def test_queues_are_counted_back_from_what_names_them_next(log):
    first, _ = find_copies(log, 0)
    size = int.from_bytes(log[first.place : first.place + 4], "big")
    count = QueueCount(first.place, NAMES, [])
    assert count.run([(0, log, first.place + size)]) == array("q", [1] + [0] * 7)
    assert count.use_count == 3


def test_nothing_is_counted_where_a_record_is_lost_or_a_queue_is_not_named_again(log):
    first, second = find_copies(log, 0)
    size = int.from_bytes(log[first.place : first.place + 4], "big")
    assert QueueCount(first.place, [*NAMES, b"%LMQ%other"], []).run([(0, log, first.place + size)]) is None
    data = bytearray(log)
    data[second.place - 30] ^= 1
    assert QueueCount(first.place, NAMES, []).run([(0, bytes(data), first.place + size)]) is None
    assert QueueCount(second.place, NAMES, []).run([(0, log, first.place + size)]) is None  # it names another set


@given(st.binary(max_size=500))
def test_any_bytes_hold_no_sets(data):
    assert find_copies(data, 0) == []
