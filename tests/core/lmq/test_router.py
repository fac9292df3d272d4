"""The router caches routes, and the cache never tells anything but what the bindings say."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from core.cache_budget import CacheBudget
from core.lmq.router import CHANGES_MAX, Router
from core.message import DispatchSet, RefRoom, Route

TOPICS = [b"a", b"a/b", b"a/b/c", b"b", b"$s/a", b"b/a"]
FILTERS = [b"a", b"a/b", b"#", b"+/b", b"a/#", b"#/a", b"a/+/c", b"b/a"]
steps = st.lists(
    st.one_of(
        st.tuples(st.just("bind"), st.sampled_from(FILTERS), st.sampled_from([b"q1", b"q2", b"q3"])),
        st.tuples(st.just("unbind"), st.integers(0, 50)),
        st.tuples(st.just("route"), st.sampled_from(TOPICS)),
    ),
    max_size=60,
)


relay_steps = st.lists(
    st.one_of(
        st.tuples(st.just("lead"), st.sampled_from(FILTERS), st.integers(0, 2)),
        st.tuples(st.just("take back"), st.integers(0, 50)),
        st.tuples(st.just("say"), st.integers(0, 2), st.sets(st.sampled_from([b"q1", b"q2", b"q3"]))),
        st.tuples(st.just("bind"), st.sampled_from(FILTERS), st.sampled_from([b"q1", b"q2"])),
        st.tuples(st.just("route"), st.sampled_from(TOPICS)),
    ),
    max_size=60,
)


class Says:
    """A relay that leads to what it is told."""

    def __init__(self):
        self.queues = set()

    def names(self, topic):
        return [*self.queues, b"by/" + topic] if self.queues else []


class Maker:
    """Makes routes and counts them."""

    def __init__(self):
        self.made = []

    def __call__(self, topic, names):
        self.made.append(topic)
        dispatch = DispatchSet(list(names), list(range(len(names))), b",".join(names), RefRoom())
        return Route(topic, 0, 0, b"", dispatch)


def names_of(route):
    return route.dispatch.names


@pytest.fixture
def maker():
    return Maker()


@pytest.fixture
def router(maker):
    return Router(maker, CacheBudget())


def test_route_names_the_queues_of_all_matching_filters_sorted(router):
    router.bind(b"a/+", b"q2", hides_dollar=True)
    router.bind(b"a/b", b"q1", hides_dollar=True)
    router.bind(b"#", b"q2", hides_dollar=False)
    assert names_of(router.route(b"a/b")) == [b"q1", b"q2"]
    assert names_of(router.route(b"x")) == [b"q2"]
    assert router.explain(b"a/b") == {b"q1": {b"a/b": 1}, b"q2": {b"#": 1, b"a/+": 1}}


def test_route_is_the_same_object_until_a_binding_touches_it(router, maker):
    kept = router.route(b"a/b")
    other = router.route(b"x/y")
    router.bind(b"x/y", b"q", hides_dollar=True)
    router.bind(b"x/+", b"q", hides_dollar=True)
    assert router.route(b"a/b") is kept
    assert router.route(b"x/y") is not other
    assert maker.made == [b"a/b", b"x/y", b"x/y"]


def test_binding_again_what_is_bound_drops_nothing_and_is_counted(router):
    router.bind(b"a/#", b"q", hides_dollar=True)
    kept, generation = router.route(b"a/b"), router.generation
    router.bind(b"a/#", b"q", hides_dollar=True)
    router.unbind(b"a/#", b"q")
    assert router.route(b"a/b") is kept
    assert router.generation == generation
    router.unbind(b"a/#", b"q")
    assert router.generation > generation
    assert names_of(router.route(b"a/b")) == []


def test_unbinding_what_is_not_bound_raises_key_error(router):
    with pytest.raises(KeyError):
        router.unbind(b"a", b"q")


def test_ever_new_topics_drop_routes_that_nobody_asks_for_and_no_others(maker):
    router = Router(maker, CacheBudget(64_000))
    for number in range(1000):
        router.route(b"t/%d" % number)
        assert router.route(b"t/%d" % number).topic == b"t/%d" % number
        assert router.route(b"t/0").topic == b"t/0"
    assert len(maker.made) == 1000
    router.route(b"t/1")
    assert len(maker.made) == 1001


def test_changed_filters_of_many_bytes_leave_right_routes_and_little_memory(maker):
    caches = CacheBudget(1 << 20)
    router = Router(maker, caches)
    router.bind(b"a/b", b"q", hides_dollar=True)
    for number in range(100):
        router.route(b"a/b")
        router.bind(b"x/%d/" % number + b"y/" * 100 + b"#", b"q", hides_dollar=True)
        assert caches.bytes_used()["routes"] < caches.aside_bytes + 2_000
        assert names_of(router.route(b"a/b")) == [b"q"]


def test_very_many_changed_filters_leave_right_routes(router):
    router.route(b"a/b")
    for number in range(CHANGES_MAX + 10):
        router.bind(b"x/%d/#" % number, b"q", hides_dollar=True)
    assert names_of(router.route(b"a/b")) == []
    router.bind(b"a/+", b"q", hides_dollar=True)
    assert names_of(router.route(b"a/b")) == [b"q"]


@given(steps, st.sampled_from([1, 4_000, 1 << 20]))
def test_cached_routes_are_never_stale(actions, cache_bytes):
    router, fresh_bound = Router(Maker(), CacheBudget(cache_bytes)), []
    for action, *arguments in actions:
        if action == "bind":
            router.bind(*arguments, hides_dollar=True)
            fresh_bound.append(tuple(arguments))
        elif action == "unbind" and fresh_bound:
            router.unbind(*fresh_bound.pop(arguments[0] % len(fresh_bound)))
        elif action == "route":
            fresh = Router(Maker(), CacheBudget(1))
            for topic_filter, queue in fresh_bound:
                fresh.bind(topic_filter, queue, hides_dollar=True)
            assert names_of(router.route(arguments[0])) == names_of(fresh.route(arguments[0]))


@given(relay_steps, st.sampled_from([1, 4_000, 1 << 20]))
def test_routes_by_relays_are_never_stale(actions, cache_bytes):
    router, relays, bound = Router(Maker(), CacheBudget(cache_bytes)), [Says() for _ in range(3)], []
    for action, *arguments in actions:
        if action == "lead":
            bound.append((arguments[0], relays[arguments[1]]))
            router.bind_relay(*bound[-1])
        elif action == "take back" and bound:
            router.unbind_relay(*bound.pop(arguments[0] % len(bound)))
        elif action == "say":
            relays[arguments[0]].queues = arguments[1]
            router.renew_relays()
        elif action == "bind":
            router.bind(*arguments, hides_dollar=False)
        elif action == "route":
            generation, kept = router.generation, names_of(router.route(arguments[0]))
            assert kept == router.matches(arguments[0])
            assert router.generation == generation


def test_a_relay_that_is_bound_twice_leads_until_it_is_taken_back_twice(router):
    relay = Says()
    relay.queues = {b"q"}
    for _ in range(2):
        router.bind_relay(b"a/#", relay)
    router.unbind_relay(b"a/#", relay)
    assert names_of(router.route(b"a/b")) == [b"by/a/b", b"q"]
    router.unbind_relay(b"a/#", relay)
    assert names_of(router.route(b"a/b")) == []
    with pytest.raises(KeyError):
        router.unbind_relay(b"a/#", relay)


def test_what_relays_say_touches_no_route_but_theirs(router, maker):
    relay = Says()
    router.bind_relay(b"a/+", relay)
    other, exact = router.route(b"x"), router.route(b"a/b")
    relay.queues = {b"q"}
    router.renew_relays()
    assert router.route(b"x") is other
    assert router.route(b"a/b") is not exact
    assert names_of(router.route(b"a/b")) == [b"by/a/b", b"q"]
    assert maker.made == [b"x", b"a/b", b"a/b"]


def test_nothing_leads_from_what_the_gateway_tells_of_itself():
    router = Router(Maker(), CacheBudget())
    router.bind(b"#", b"q", hides_dollar=False)
    router.bind(b"$SYS/broker/x", b"q", hides_dollar=False)
    assert router.matches(b"$SYS/broker/x") == []
    assert router.explain(b"$SYS/broker/x") == {}
    assert names_of(router.route(b"$SYS/broker/x")) == []
    assert router.matches(b"$SYS/other") == [b"q"]
    assert router.matches(b"$SYS/broker/connection/edge/state") == [b"q"]  # bridges tell it, not the gateway
    assert router.matches(b"$SYS/broker/connection/a/b/state") == []
