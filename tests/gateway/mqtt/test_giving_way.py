"""Where too many messages wait for a client, by all its subscriptions: the oldest of each give way in proportion."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from gateway.door import ClientLimits
from gateway.mqtt.giving_way import AT_ONCE_COUNT, LOOK_MS, Division
from gateway.mqtt.queued_limits import WaitingMax
from tests.gateway.mqtt.test_queued import BODY, come_in, look, numbers, send
from tests.support.mqtt import puback, publish, subscribe


@given(st.lists(st.integers(0, 10_000), max_size=50), st.integers(0, 20_000))
def test_what_may_stay_is_divided_in_proportion(waiting, limit):
    total = sum(waiting)
    division = Division(total, limit)
    kept = []
    for count in waiting:
        kept.append(division.allow(count))
        division.use(kept[-1])
    assert sum(kept) == min(total, limit)
    for count, left in zip(waiting, kept, strict=True):
        assert 0 <= left <= count
        assert abs(left * total - count * min(total, limit)) <= total


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(1, 40)), max_size=50), st.integers(0, 2_000))
def test_what_one_leaves_is_for_those_after_it_and_all_together_keep_the_limit(waiting, limit):
    division = Division(sum(count for count, _ in waiting), limit)
    used = 0
    for count, piece in waiting:
        allowed = division.allow(count)
        assert 0 <= allowed <= count
        division.use(allowed - allowed % piece)
        used += allowed - allowed % piece
    assert used <= limit


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


def test_bytes_of_many_subscriptions_with_a_message_each_are_within_the_limit(make_world):
    world = make_world(queued_bytes_max=4 * BODY)
    topics = [b"t/%d" % i for i in range(20)]
    world.client(b"a", *[(topic, 1) for topic in topics], clean=False).vanish()
    for i, topic in enumerate(topics):
        send(world, 1, first=i, topic=topic)
    look(world)
    assert len(numbers(world.connect(b"a", clean=False))) == 4
    assert world.counts.dropped == {"queue_full": 16}


def test_message_that_is_larger_than_the_limit_is_kept_alone(make_world):
    world = make_world(queued_bytes_max=BODY // 2)
    world.client(b"a", (b"t", 1), (b"u", 1), clean=False).vanish()
    send(world, 3)
    send(world, 3, first=3, topic=b"u")
    look(world)
    assert numbers(world.connect(b"a", clean=False)) == [5]


def come_with_many(world, count, *, limit):
    """Return a client with so many subscriptions, by each of which a message waits."""
    topics = [b"t/%d" % i for i in range(count)]
    peer = world.client(b"a", clean=False)
    peer.send(subscribe(1, *[(topic, 1) for topic in topics])).vanish()
    for i, topic in enumerate(topics):
        send(world, 1, first=i, topic=topic)
    world.door.delivery.queued.set_limits(WaitingMax(limit))


def test_client_with_very_many_subscriptions_waits_until_all_were_looked_at(make_world):
    world = make_world()
    come_with_many(world, AT_ONCE_COUNT + 44, limit=100)
    world.client(b"other", (b"t/7", 1))
    peer = world.connect(b"a", clean=False)
    assert len(numbers(peer)) == 100
    assert world.counts.dropped == {"queue_full": AT_ONCE_COUNT - 56}
    send(world, 1, first=1_000, topic=b"t/3")
    assert numbers(peer) == [1_000]


def test_client_that_goes_while_it_is_looked_at_finds_no_more_when_it_is_back(make_world, monkeypatch):
    world = make_world()
    come_with_many(world, AT_ONCE_COUNT + 44, limit=100)
    started = []

    def hold(work, *, is_long):
        assert is_long
        started.append(work)

    with monkeypatch.context() as patch:
        patch.setattr(world.door.delivery.queued.chores, "start", hold)
        peer = world.connect(b"a", clean=False)
        assert numbers(peer) == []
        next(started[0])
        peer.vanish()
        assert sum(1 for _ in started[0]) == 0
    assert len(numbers(world.connect(b"a", clean=False))) == 100


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


MANY = 3 * AT_ONCE_COUNT
OWN = ClientLimits(queued_count_max=100)


def leave_with_many(world, *, is_loaded):
    """Have a client with limits of its own go, by each of whose many subscriptions a message waits."""
    topics = [b"t/%d" % i for i in range(MANY)]
    peer = come_in(world, b"own", limits=OWN)
    peer.send(subscribe(1, *[(topic, 1) for topic in topics])).vanish()
    if not is_loaded:
        world.close()
        world.open()
    bodies = [(topic, b"%d" % i) for i, topic in enumerate(topics)]
    world.client(b"p").send(*[publish(topic, body, qos=1, packet_id=1) for topic, body in bodies])


def slow_down(world):
    """Have each look at the clock take as long as a turn may."""
    times = iter(range(0, 10**12, 10**6))
    world.door.delivery.queued.chores._now_ns = lambda: next(times)


def dropped(world):
    return world.counts.dropped.get("queue_full", 0)


@pytest.mark.parametrize("is_loaded", [True, False])
def test_many_subscriptions_of_a_client_that_is_away_are_looked_at_in_several_turns(make_world, is_loaded):
    world = make_world()
    leave_with_many(world, is_loaded=is_loaded)
    slow_down(world)
    world.door.tend(world.now_ms)
    assert dropped(world) == 0
    portions = []
    while world.is_turn_due:
        before = dropped(world)
        world.step()
        portions.append(dropped(world) - before)
    assert sum(portions) == MANY - 100
    assert max(portions) <= AT_ONCE_COUNT
    held = dict(world.door.sessions.held_positions())
    assert sum(held.values()) == MANY - 100
    peer = come_in(world, b"own", limits=OWN)
    assert len(numbers(peer)) == 100


@pytest.mark.parametrize("is_loaded", [True, False])
@pytest.mark.parametrize("turns", [1, 4, 9])
def test_client_that_comes_back_while_it_is_looked_at_gets_what_may_wait_for_it(make_world, is_loaded, turns):
    world = make_world()
    leave_with_many(world, is_loaded=is_loaded)
    slow_down(world)
    world.door.tend(world.now_ms)
    for _ in range(turns):
        world.step()
    peer = come_in(world, b"own", limits=OWN)
    deliveries = peer.take_deliveries()
    assert len(deliveries) == 100
    peer.send(*[puback(one.packet_id) for one in deliveries])
    assert dropped(world) == MANY - 100
    world.door.tend(world.now_ms)
    world.turn()
    assert dropped(world) == MANY - 100
    peer.vanish()
    assert numbers(come_in(world, b"own", limits=OWN)) == []


@pytest.mark.parametrize("is_loaded", [True, False])
def test_looks_that_come_before_the_last_one_is_done_let_no_more_go_than_it_does(make_world, is_loaded):
    world = make_world()
    leave_with_many(world, is_loaded=is_loaded)
    slow_down(world)
    world.door.tend(world.now_ms)
    while world.is_turn_due:
        world.step()
        world.door.tend(world.now_ms)
        if dropped(world) >= MANY - 100:
            break
    world.turn()
    assert dropped(world) == MANY - 100
    assert len(numbers(come_in(world, b"own", limits=OWN))) == 100
