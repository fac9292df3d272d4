"""Where too many messages wait for a client, by all its subscriptions: the oldest of each give way in proportion."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from gateway.door import ClientLimits
from gateway.mqtt.giving_way import LOOK_MS, divide
from tests.gateway.mqtt.test_queued import BODY, come_in, look, numbers, send


@given(st.lists(st.integers(0, 10_000), max_size=50), st.integers(0, 20_000))
def test_what_may_stay_is_divided_in_proportion(waiting, limit):
    kept = divide(waiting, limit)
    total = sum(waiting)
    assert sum(kept) == min(total, limit)
    for count, left in zip(waiting, kept, strict=True):
        assert 0 <= left <= count
        assert abs(left * total - count * min(total, limit)) <= total


@pytest.mark.parametrize("qos", [1, 2])
def test_limit_is_that_of_a_client_by_all_its_subscriptions(make_world, qos):
    world = make_world(queued_count_max=100)
    world.client(b"a", (b"t", qos), (b"u", qos), (b"empty", qos), (b"late", 0), clean=False).vanish()
    send(world, 300)
    send(world, 100, first=300, topic=b"u")
    came = numbers(world.connect(b"a", clean=False))
    assert sorted(came) == [*range(225, 300), *range(375, 400)]
    assert world.counts.dropped == {"queue_full": 300}


def test_nothing_gives_way_while_all_subscriptions_together_are_within_it(make_world):
    world = make_world(queued_count_max=100)
    world.client(b"a", (b"t", 1), (b"u", 1), clean=False).vanish()
    send(world, 60)
    send(world, 40, first=60, topic=b"u")
    assert sorted(numbers(world.connect(b"a", clean=False))) == list(range(100))
    assert world.counts.dropped == {}


def test_client_that_reads_slowly_is_looked_at_once_a_second(make_world):
    world = make_world(queued_count_max=10)
    peer = world.client(b"a", (b"t", 1), (b"u", 1))
    peer.stall()
    came = []
    for first in (0, 20):
        send(world, 10, first)
        send(world, 10, first + 10, topic=b"u")
        peer.drain()
        came.append(sorted(numbers(peer)))
        peer.stall()
        world.now_ms += LOOK_MS
    assert came == [[*range(5, 10), *range(15, 20)], [*range(25, 30), *range(35, 40)]]


def test_bytes_of_all_subscriptions_count_together(make_world):
    world = make_world(queued_bytes_max=160 * BODY)
    world.client(b"a", (b"t", 1), (b"u", 1), clean=False).vanish()
    send(world, 300)
    send(world, 100, first=300, topic=b"u")
    look(world)
    came = numbers(world.connect(b"a", clean=False))
    assert 130 <= len(came) <= 160
    first, second = [one for one in came if one < 300], [one for one in came if one >= 300]
    assert first == list(range(300 - len(first), 300))
    assert second == list(range(400 - len(second), 400))
    assert min(len(first), len(second)) > 40


@pytest.mark.parametrize("limits", [ClientLimits(queued_count_max=16), ClientLimits(queued_bytes_max=16 * BODY)])
def test_log_need_not_keep_what_is_over_the_limit_of_a_client_by_an_address(make_world, limits):
    world = make_world()
    come_in(world, b"own", (b"t", 1), (b"u", 1), limits=limits).vanish()
    send(world, 16)
    send(world, 16, first=16, topic=b"u")
    look(world)
    look(world)
    held = dict(world.door.sessions.held_positions())
    assert sorted(held.values()) == [8, 8]
    assert world.counts.dropped == {"queue_full": 16}
    assert len(come_in(world, b"own", limits=limits).bodies()) == 16
