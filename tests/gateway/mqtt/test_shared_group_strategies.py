"""Which member of a group gets a message, by each strategy."""

from __future__ import annotations

import zlib

import pytest

from gateway.mqtt import assignment
from tests.support.mqtt import puback, publish
from tests.support.mqtt_groups import FILTER, numbered, send, take


def publish_from(world, client_id, *topics):
    publisher = world.client(client_id)
    publisher.send(*[publish(topic, client_id, qos=1, packet_id=i + 1) for i, topic in enumerate(topics)])
    publisher.vanish()


def test_sticky_group_gives_all_to_one_until_it_is_gone(make_world):
    world = make_world(shared_strategy="sticky")
    first, second = (world.client(name, (FILTER, 1)) for name in (b"z", b"b"))
    send(world, *numbered(20))
    assert take(first) == numbered(20)
    first.vanish()
    send(world, *numbered(5))
    assert take(second) == numbered(5)


def test_sticky_group_waits_for_its_member(make_world):
    world = make_world(shared_strategy="sticky", inflight_max=3)
    first, second = (world.client(name, (FILTER, 1)) for name in (b"a", b"b"))
    send(world, *numbered(6))
    one = first.take_deliveries()
    assert [each.body for each in one] == numbered(3)
    assert take(second) == []
    first.send(*[puback(each.packet_id) for each in one])
    assert take(first) == numbered(3, 3)


@pytest.mark.parametrize("qos", [0, 1])
def test_topic_decides_on_the_member_and_keeps_its_order(make_world, qos):
    world = make_world(shared_strategy="hash_topic")
    members = [world.client(name, (FILTER, qos)) for name in (b"a", b"b", b"c")]
    topics = [b"t/%d" % (i % 12) for i in range(120)]
    packets = [publish(topic, b"%d" % i, qos=1, packet_id=i + 1) for i, topic in enumerate(topics)]
    publisher = world.client(b"p")
    for start in range(0, 120, 24):
        publisher.send(*packets[start : start + 24])
    seen = {}
    for number, member in enumerate(members):
        deliveries = member.take_deliveries()
        assert deliveries
        for topic in {one.topic for one in deliveries}:
            assert seen.setdefault(topic, number) == number
            bodies = [int(one.body) for one in deliveries if one.topic == topic]
            assert bodies == sorted(bodies)
            assert len(bodies) == 10
    assert len(seen) == 12


def test_publisher_decides_on_the_member(make_world):
    world = make_world(shared_strategy="hash_client_id")
    members = [world.client(name, (FILTER, 1)) for name in (b"a", b"b", b"c")]
    for number in range(12):
        publish_from(world, b"p%d" % number, *[b"t/%d" % i for i in range(4)])
    shares = [take(member) for member in members]
    assert all(shares)
    assert [len(share) % 4 for share in shares] == [0, 0, 0]
    assert len({body for share in shares for body in share}) == 12
    assert sum(len(set(share)) for share in shares) == 12


def test_messages_of_a_member_without_room_wait_for_it_or_go_to_others_when_it_is_gone(make_world):
    world = make_world(shared_strategy="hash_topic", inflight_max=2)
    first, second = (world.client(name, (FILTER, 1)) for name in (b"a", b"b"))
    topics = [b"t/%d" % i for i in range(12)]
    publish_from(world, b"p", *topics)
    mine, others = first.take_deliveries(), second.take_deliveries()
    assert len(mine) == len(others) == 2
    first.vanish()
    got_topics = {one.topic for one in others}
    while others:
        others = second.send(*[puback(one.packet_id) for one in others]).take_deliveries()
        got_topics |= {one.topic for one in others}
    assert got_topics == set(topics)


def test_member_that_never_goes_on_bounds_what_is_taken(make_world, monkeypatch):
    monkeypatch.setattr(assignment, "PENDING_MAX", 10)
    world = make_world(shared_strategy="hash_topic", inflight_max=2)
    member = world.client(b"a", (FILTER, 1))
    publish_from(world, b"p", *[b"t/%d" % i for i in range(40)])
    group = world.door.sessions.find(b"a").subscriptions[FILTER].group
    assert group._assigned.count <= 10
    got_all = []
    while True:
        deliveries = member.take_deliveries()
        if not deliveries:
            break
        got_all += [one.topic for one in deliveries]
        member.send(*[puback(one.packet_id) for one in deliveries])
    assert got_all == [b"t/%d" % i for i in range(40)]


def test_stalled_member_of_a_hash_group_is_passed_by_until_it_goes_on(make_world, monkeypatch):
    monkeypatch.setattr(assignment, "PENDING_MAX", 10)
    world = make_world(shared_strategy="hash_topic", inflight_max=2)
    names = (b"a", b"b", b"c")
    peers = [world.client(name, (FILTER, 1)) for name in names]
    topics = [b"t/%d" % i for i in range(60)]
    owners = {topic: zlib.crc32(topic) % 3 for topic in topics}
    publish_from(world, b"p", *topics)
    got = [[], [], []]

    def go_on(*numbers):
        is_moving = True
        while is_moving:
            is_moving = False
            for number in numbers:
                came = peers[number].take_deliveries()
                is_moving |= bool(came)
                got[number] += [one.topic for one in came]
                peers[number].send(*[puback(one.packet_id) for one in came])

    go_on(0, 2)  # the second never acknowledges
    assert len(got[0] + got[2]) < 40
    world.now_ms += assignment.STALLED_MS - 1
    world.door._do_due(world.now_ms)
    world.turn()
    go_on(0, 2)
    assert all(owners[topic] == 0 for topic in got[0])
    world.now_ms += 1
    world.door._do_due(world.now_ms)
    world.turn()
    go_on(0, 2)
    mine = peers[1].take_deliveries()
    assert sorted(got[0] + got[2] + [one.topic for one in mine]) == sorted(topics)
    assert len(mine) == 2
    assert [topic for topic in got[0] if owners[topic] == 0] == [topic for topic in topics if owners[topic] == 0]
    peers[1].send(*[puback(one.packet_id) for one in mine])
    publish_from(world, b"p", *topics)
    got = [[], [], []]
    go_on(0, 1, 2)
    assert got == [[topic for topic in topics if owners[topic] == number] for number in range(3)]


def test_nobody_is_passed_by_where_nobody_has_room(make_world, monkeypatch):
    monkeypatch.setattr(assignment, "PENDING_MAX", 4)
    world = make_world(shared_strategy="hash_topic", inflight_max=2)
    peers = [world.client(name, (FILTER, 1)) for name in (b"a", b"b")]
    publish_from(world, b"p", *[b"t/%d" % i for i in range(20)])
    for _ in range(3):
        world.now_ms += assignment.STALLED_MS
        world.door._do_due(world.now_ms)
        world.turn()
    assert [len(peer.take_deliveries()) for peer in peers] == [2, 2]


def test_other_strategy_goes_on_with_what_waited(make_world):
    world = make_world(shared_strategy="hash_topic", inflight_max=2)
    first, second = (world.client(name, (FILTER, 1)) for name in (b"a", b"b"))
    publish_from(world, b"p", *[b"t/%d" % i for i in range(8)])
    world.door.subscribing.sharing.strategy = "sticky"
    bodies = first.take_deliveries()
    while bodies:
        seen = bodies
        bodies = first.send(*[puback(one.packet_id) for one in seen]).take_deliveries()
    assert len(second.take_deliveries()) == 2
    assert seen
