from __future__ import annotations

import random

import pytest

from core.errors import MessageTooLargeError
from core.settings import MIB, StoreSettings
from core.store.record_bounds import bound_batch, bound_record, count_entries
from tests.support.store import NOW_MS, light, make_batch, open_store

SETTINGS = StoreSettings(segment_bytes=4 * MIB, inline_dispatch_bytes=256)
LIMIT = 4 * MIB


@pytest.fixture
def store(tmp_path):
    store = open_store(tmp_path / "data", SETTINGS)
    yield store
    store.close()


def test_a_record_is_no_larger_than_its_bound_and_not_much_smaller(store):
    routes = [store.make_route(b"T" * 200, 0, b"", light(*map(str, range(count)))) for count in (0, 1, 20, 300)]
    for route in routes:
        batch = make_batch([(route, b"b" * 1_000, b"k\x01v\x02")])
        bound = bound_record(batch, 0, route, route.dispatch.count, store._log.head, 0)
        sets = bound_batch(batch, store._log.head, MIB, LIMIT) - bound
        before = store.written_until
        store.append_batch(batch, NOW_MS)
        size = store.written_until - before
        assert size <= bound + sets <= size + 60 + 21 * route.dispatch.count
        assert (sets > 0) == route.dispatch.is_interned


def test_properties_count_with_the_offsets_that_they_may_have(store):
    route = store.make_route(b"T", 0, b"", light("a"))

    def bound(extra_bytes, ahead):
        batch = make_batch([(route, b"", b"k" * extra_bytes)])
        return bound_record(batch, 0, route, 1, store._log.head, ahead)

    def fits(extra_bytes):
        try:
            return bound(extra_bytes, 0) > 0
        except MessageTooLargeError:
            return False

    most = next(count for count in range(32_600, 32_767) if not fits(count))
    assert bound(most - 1, 9) > 32_700
    with pytest.raises(MessageTooLargeError):  # the offset may have two digits
        bound(most - 1, 10)
    assert bound(most - 2, 10) > 32_700


def test_batches_are_no_larger_than_their_bounds(store):
    chance = random.Random(5)
    names = [str(number) for number in range(400)]
    routes = [
        store.make_route(b"T", 0, b"", light(*chance.sample(names, chance.choice((1, 3, 50, 200))))) for _ in range(12)
    ]
    for _ in range(60):
        some = [chance.choice(routes) for _ in range(chance.randrange(1, 30))]
        batch = make_batch([(route, b"b" * chance.randrange(3_000)) for route in some])
        batch.is_whole = True
        bound = bound_batch(batch, store._log.head, store._log.set_again_bytes, LIMIT)
        assert count_entries(batch) == sum(1 + route.dispatch.count for route in some)
        store.append_batch(batch, NOW_MS)
        first, end = batch.physical_offset[0], store.written_until
        assert first // LIMIT == (end - 1) // LIMIT
        assert end - first <= bound
