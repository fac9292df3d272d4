"""One bound for all caches: what is in use stays, what is not goes, and the bytes are those that the process takes."""

from __future__ import annotations

import gc
import tracemalloc

import pytest
from hypothesis import given, strategies as st

from core.cache_budget import Cache, CacheBudget
from core.message import Route
from core.properties import TOPIC, encode_properties
from tests.support.store import light

BOUND = 1 << 20


def sized(value, generation):
    return len(value)


def traced(work):
    """Return the bytes that the process has more after `work` than before, and what it returned."""
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        kept = work()
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before, kept
    finally:
        tracemalloc.stop()


def test_what_was_put_is_found_until_it_is_dropped():
    cache = Cache(CacheBudget(BOUND), "some", sized)
    cache.put(b"a", b"1")
    cache.put(("b", 2, b"c"), b"2")
    assert (cache.get(b"a"), cache.get(("b", 2, b"c")), len(cache)) == (b"1", b"2", 2)
    cache.put(b"a", b"3")
    assert (cache.get(b"a"), len(cache)) == (b"3", 2)
    cache.drop(b"a")
    cache.drop(b"never")
    assert (cache.get(b"a"), len(cache)) == (None, 1)
    cache.clear()
    assert cache.is_empty()


def test_what_is_asked_for_stays_in_each_cache_however_much_another_takes():
    budget = CacheBudget(BOUND)
    quiet, busy = Cache(budget, "quiet", sized), Cache(budget, "busy", sized)
    for number in range(100):
        quiet.put(b"in use %d" % number, b"value")
    quiet.put(b"not in use", b"value")
    for number in range(20_000):
        busy.put(b"%d" % number, bytes(500))
        assert quiet.get(b"in use %d" % (number % 100)) == b"value"
    assert quiet.get(b"not in use") is None
    assert budget.evicted["quiet"] == 1
    assert budget.evicted["busy"] + len(busy) == 20_000


@pytest.mark.parametrize("size", [1, 100, 16_384])
def test_ever_new_entries_take_no_more_than_the_bound(size):
    bound = BOUND if size < 1_000 else 4 * BOUND
    budget = CacheBudget(bound)
    caches = [Cache(budget, name, sized) for name in ("one", "two")]

    def fill():
        for number in range(3 * bound // (size + 150)):
            caches[number % 2].put(b"%d" % number, bytes(size))
            assert sum(budget.bytes_used().values()) <= bound
        return caches

    taken, _ = traced(fill)
    assert bound // 4 < taken <= bound


def test_few_large_entries_make_many_small_ones_go_in_time():
    budget = CacheBudget(BOUND)
    cache = Cache(budget, "some", sized)

    def fill():
        for number in range(8_000):
            cache.put(b"%d" % number, b"")
        for number in range(40):
            cache.put(b"large %d" % number, bytes(BOUND // 16))

    taken, _ = traced(fill)
    assert taken <= BOUND


def test_an_entry_larger_than_the_bound_is_kept_while_nothing_else_comes():
    budget = CacheBudget(1000)
    cache = Cache(budget, "some", sized)
    cache.put(b"large", bytes(5000))
    assert cache.get(b"large") == bytes(5000)
    cache.put(b"a", b"1")
    cache.put(b"b", bytes(400))
    assert cache.get(b"large") is None
    assert cache.get(b"b") == bytes(400)


def test_what_is_cleared_is_given_back_and_no_longer_known_to_the_budget():
    budget = CacheBudget(BOUND)

    def come_and_go(count):
        for _ in range(count):
            cache = Cache(budget, "targets", sized)
            cache.put(b"key", bytes(100))
            cache.clear()

    come_and_go(10)
    taken, _ = traced(lambda: come_and_go(1_000))
    assert taken < 10_000
    assert budget.bytes_used() == {"targets": 0}
    assert budget.generation == 1


def test_a_cache_whose_owner_forgot_it_costs_nothing_in_the_end():
    budget = CacheBudget(BOUND)

    def forget():
        for _ in range(1_000):
            Cache(budget, "forgotten", sized).put(b"key", bytes(100))
        other = Cache(budget, "other", sized)
        for number in range(10_000):
            other.put(b"%d" % number, bytes(100))
        other.clear()

    taken, _ = traced(forget)
    assert budget.bytes_used() == {"forgotten": 0, "other": 0}
    assert taken < BOUND


def test_another_bound_is_come_down_to():
    budget = CacheBudget(4 * BOUND)
    cache = Cache(budget, "some", sized)
    for number in range(4_000):
        cache.put(b"%d" % number, bytes(1_000))
    budget.limit(BOUND)
    for number in range(2_000):
        cache.put(b"new %d" % number, bytes(1_000))
    assert budget.bytes_used()["some"] <= BOUND
    assert budget.bytes_max == BOUND


@pytest.mark.parametrize(("topic_bytes", "queues"), [(10, 0), (60, 1), (60, 3), (200, 40), (16_000, 1)])
def test_routes_are_charged_what_they_take(store, topic_bytes, queues):
    budget = CacheBudget(1 << 40)
    cache = Cache(budget, "routes", Route.measure)
    count = 300_000 // (topic_bytes + 200 * queues + 200)

    def fill():
        for number in range(count):
            topic = b"%0*d" % (topic_bytes, number)
            names = light(*[f"{number}-{queue}" for queue in range(queues)])
            cache.put(topic, store.make_route(b"LMQ_PARENT", 0, encode_properties([(TOPIC, topic)]), names))

    taken, _ = traced(fill)
    assert taken <= 1.1 * budget.bytes_used()["routes"] <= 2.5 * taken


def test_a_set_that_many_routes_share_is_charged_once(store):
    budget = CacheBudget(1 << 40)
    cache = Cache(budget, "routes", Route.measure)
    names = light(*[f"queue-{number}" for number in range(1_000)])
    for number in range(1_000):
        cache.put(b"%d" % number, store.make_route(b"LMQ_PARENT", 0, b"", names))
    assert 1_000 * 200 < budget.bytes_used()["routes"] < 1_000 * 500


KEYS = [b"%d" % number for number in range(8)]
steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from(KEYS), st.integers(0, 300)),
        st.tuples(st.just("get"), st.sampled_from(KEYS)),
        st.tuples(st.just("drop"), st.sampled_from(KEYS)),
        st.tuples(st.just("clear")),
        st.tuples(st.just("other"), st.integers(0, 300)),
    ),
    max_size=80,
)


@given(steps)
def test_a_cache_gives_what_was_put_last_or_nothing(actions):
    budget = CacheBudget(2_000)
    cache, other = Cache(budget, "some", sized), Cache(budget, "other", sized)
    model = {}
    for action, *arguments in actions:
        if action == "put":
            key, size = arguments
            if key not in model:  # the same key has values of the same size
                model[key] = bytes(size)
            cache.put(key, model[key])
            assert cache.get(key) == model[key]
        elif action == "get":
            assert cache.get(arguments[0]) in {None, model.get(arguments[0])}
        elif action == "drop":
            cache.drop(arguments[0])
            model.pop(arguments[0], None)
            assert cache.get(arguments[0]) is None
        elif action == "clear":
            cache.clear()
            model.clear()
        else:
            other.put(b"%d" % len(other), bytes(arguments[0]))
        assert len(cache) <= len(model)
        assert 0 <= sum(budget.bytes_used().values()) <= 2_000


def test_lookups_that_find_an_entry_are_counted_by_name_also_of_caches_that_are_gone():
    budget = CacheBudget(BOUND)
    for _ in range(2):
        cache = Cache(budget, "some", sized)
        cache.put(b"a", b"1")
        for key in (b"a", b"b", b"a"):
            cache.get(key)
        cache.clear()
    other = Cache(budget, "other", sized)
    assert other.get(b"a") is None
    assert {name: hits.count for name, hits in budget.hits.items()} == {"some": 4, "other": 0}
    other.hits.count += 3  # by an owner that looked into `young`
    assert budget.hits["other"].count == 3
