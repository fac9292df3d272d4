"""Bytes that may wait for a session: the oldest messages give way, and no more of them than must."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from gateway.door import ClientLimits, Listen
from gateway.mqtt.queued import SUMS, Newest
from gateway.settings.models import GatewaySettings, MqttSettings
from tests.support.mqtt import connect, puback, publish, subscribe
from tests.support.mqtt_door import MemoryTransport, Peer

BODY = 100


def send(world, count, first=0, topic=b"t"):
    bodies = [(b"%d" % number).ljust(BODY) for number in range(first, first + count)]
    world.client(b"p").send(*[publish(topic, body, qos=1, packet_id=i + 1) for i, body in enumerate(bodies)])


def look(world):
    world.door.tend(world.now_ms)
    world.turn()


def numbers(peer):
    return [int(body) for body in peer.bodies()]


@pytest.mark.parametrize("qos", [1, 2])
def test_oldest_give_way_where_too_many_bytes_wait(make_world, qos):
    world = make_world(queued_bytes_max=SUMS * BODY)
    world.client(b"a", (b"t", qos), clean=False).vanish()
    send(world, 1000)
    look(world)
    queue_ref = world.door.sessions.find(b"a").subscriptions[b"t"].queue_ref
    assert dict(world.door.sessions.held_positions())[queue_ref] == 1000 - SUMS
    assert numbers(world.connect(b"a", clean=False)) == list(range(1000 - SUMS, 1000))
    assert world.counts.dropped == {"queue_full": 1000 - SUMS}


def test_nothing_gives_way_while_less_waits_and_what_was_delivered_does_not_count(make_world):
    world = make_world(queued_bytes_max=SUMS * BODY)
    peer = world.client(b"a", (b"t", 1), clean=False)
    send(world, 1000)
    assert numbers(peer) == list(range(1000))
    peer.send(*[puback(i + 1) for i in range(1000)]).vanish()
    send(world, 10, first=1000)
    look(world)
    assert numbers(world.connect(b"a", clean=False)) == list(range(1000, 1010))
    assert world.counts.dropped == {}


def test_each_look_goes_on_where_the_last_one_was(make_world):
    world = make_world(queued_bytes_max=SUMS * BODY)
    world.client(b"a", (b"t", 1), (b"#", 1), clean=False).vanish()
    for first in range(0, 200, 10):
        send(world, 10, first)
        look(world)
    send(world, 5, 200, topic=b"other")
    look(world)
    again = world.connect(b"a", clean=False)
    came = numbers(again)
    assert came.count(199) == 2
    assert sorted(came) == sorted([*range(192, 200), *range(197, 205)])  # half of the limit each


def test_a_session_that_is_further_behind_has_its_part_counted_too(make_world):
    world = make_world(queued_bytes_max=SUMS * BODY)
    world.client(b"a", (b"t", 1), clean=False).vanish()
    send(world, 100)
    world.client(b"b", (b"t", 1), clean=False).vanish()
    send(world, 2, 100)
    assert world.door.delivery.queued.limits.general.size
    look(world)
    assert numbers(world.connect(b"b", clean=False)) == [100, 101]
    assert numbers(world.connect(b"a", clean=False)) == list(range(102 - SUMS, 102))


def test_other_limits_count_at_once(make_world):
    world = make_world()
    world.client(b"a", (b"t", 1), clean=False).vanish()
    send(world, 100)
    for bytes_max in (50 * BODY, SUMS * BODY, 0):
        world.door.reload(GatewaySettings(mqtt=MqttSettings(queued_bytes_max=bytes_max)))
        look(world)
        first = world.door.delivery.queued.find_first(world.door.sessions.find(b"a").subscriptions[b"t"].queue_ref)
        assert first == (0 if not bytes_max else pytest.approx(100 - bytes_max / BODY, abs=4))
    assert numbers(world.connect(b"a", clean=False)) == list(range(100))


def test_queues_in_which_nothing_waits_are_forgotten(make_world):
    world = make_world(queued_bytes_max=SUMS * BODY)
    world.client(b"a", (b"t", 1), clean=False).vanish()
    send(world, 100)
    look(world)
    again = world.connect(b"a", clean=False)
    again.send(*[puback(i + 1) for i in range(len(again.bodies()))])
    look(world)
    assert world.door.delivery.queued.queue_count == 0


def come_in(world, client_id, *subscriptions, limits, clean=False):
    """Return a client that came in by an address with limits of its own."""
    world.conn_id += 1
    transport = MemoryTransport(world.conn_id)
    listen = Listen("mqtt", "127.0.0.1:1884", clients=limits)
    peer = Peer(world, transport, world.door.connect_at(listen)(transport))
    peer.send(connect(client_id, clean=clean), *[subscribe(1, one) for one in subscriptions])
    return peer


def held_from(world, client_id):
    queue_ref = world.door.sessions.find(client_id).subscriptions[b"t"].queue_ref
    return dict(world.door.sessions.held_positions())[queue_ref]


OWN = [ClientLimits(queued_count_max=SUMS), ClientLimits(queued_bytes_max=SUMS * BODY)]


@pytest.mark.parametrize("limits", OWN)
def test_less_may_wait_for_clients_of_one_address_than_for_others(make_world, limits):
    world = make_world(queued_count_max=500, queued_bytes_max=500 * BODY)
    come_in(world, b"own", (b"t", 1), limits=limits).vanish()
    world.client(b"other", (b"t", 1), clean=False).vanish()
    send(world, 600)
    look(world)
    assert len(world.connect(b"other", clean=False).bodies()) == pytest.approx(500, abs=500 // SUMS + 1)
    assert numbers(come_in(world, b"own", limits=limits)) == list(range(600 - SUMS, 600))


@pytest.mark.parametrize("limits", OWN)
def test_log_need_not_keep_what_is_over_the_limit_of_an_address(make_world, limits):
    world = make_world()
    come_in(world, b"own", (b"t", 1), limits=limits).vanish()
    send(world, 100)
    look(world)
    look(world)
    assert held_from(world, b"own") == 100 - SUMS
    assert world.counts.dropped == {"queue_full": 100 - SUMS}


@pytest.mark.parametrize("limits", OWN)
def test_log_need_not_keep_it_for_a_session_that_is_not_loaded(make_world, limits):
    world = make_world()
    come_in(world, b"own", (b"t", 1), limits=limits).vanish()
    world.close()
    world.open()
    send(world, 100)
    look(world)
    look(world)
    assert [one.client_id for one in world.door.sessions.loaded() if one.is_persistent] == []
    (held,) = world.door.sessions.held_positions()
    assert held[1] == 100 - SUMS
    assert world.counts.dropped == {"queue_full": 100 - SUMS}
    assert numbers(come_in(world, b"own", limits=limits)) == list(range(100 - SUMS, 100))


@pytest.mark.parametrize("limits", OWN)
def test_limit_of_an_address_outlives_a_restart_and_ends_where_the_client_comes_in_by_another(make_world, limits):
    world = make_world()
    come_in(world, b"own", (b"t", 1), limits=limits).vanish()
    world.close()
    world.open()
    send(world, 100)
    look(world)
    assert numbers(come_in(world, b"own", limits=limits)) == list(range(100 - SUMS, 100))
    world.connect(b"own", clean=False).vanish()
    send(world, 100, first=100)
    look(world)
    assert len(numbers(world.connect(b"own", clean=False))) == SUMS + 100  # some of them in flight before
    assert len(world.store.table("mqtt_queued_limits")) == 0


def test_limit_of_an_address_is_forgotten_with_its_session(make_world):
    world = make_world()
    come_in(world, b"own", (b"t", 1), limits=OWN[0]).vanish()
    assert len(world.store.table("mqtt_queued_limits")) == 1
    world.client(b"own")
    assert len(world.store.table("mqtt_queued_limits")) == 0


def test_clean_session_that_is_slow_is_limited_and_nothing_is_written_down(make_world):
    world = make_world()
    peer = come_in(world, b"own", (b"t", 1), limits=ClientLimits(queued_count_max=3), clean=True)
    peer.stall()
    send(world, 10)
    assert len(world.store.table("mqtt_queued_limits")) == 0
    peer.drain()
    assert numbers(peer) == [7, 8, 9]


@given(st.lists(st.integers(0, 400), max_size=300), st.integers(16, 2_000))
def test_what_is_left_is_under_the_limit_and_not_much_less(sizes, bytes_max):
    newest = Newest(7, bytes_max)
    for number, size in enumerate(sizes):
        newest.add(7 + number, size)
        kept = sum(sizes[newest.first - 7 : number + 1])
        assert kept <= bytes_max or len(newest._sums) == 1
        if newest.is_over:  # one sum more would have been too much
            assert kept + bytes_max // SUMS + 2 * max(sizes) >= bytes_max
        else:
            assert newest.first == 7
        assert len(newest._sums) <= 2 * SUMS + 2


@given(st.lists(st.integers(1, 400), min_size=1, max_size=300), st.integers(1, 10_000), st.integers(0, 300))
def test_sizes_are_told_to_a_part_of_a_sum(sizes, size, skipped):
    newest = Newest(7, 1_000_000)
    for number, each in enumerate(sizes):
        newest.add(7 + number, each)
    end = 7 + len(sizes)
    sum_max = 1_000_000 // SUMS + max(sizes)
    start = min(7 + skipped, end)
    assert newest.size_from(start, end) == pytest.approx(sum(sizes[start - 7 :]), abs=sum_max)
    assert (newest.size_from(7, end), newest.size_from(end, end)) == (sum(sizes), 0)
    first = newest.find_within(size, end)
    assert 7 <= first <= end
    assert newest.find_within(sum(sizes), end) == 7
    assert newest.find_within(0, end) == end
    assert newest.size_from(first, end) <= size
