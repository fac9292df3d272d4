"""Shared subscriptions: MQTT-4.8.2."""

from __future__ import annotations

import shutil
import zlib
from collections import Counter

import pytest
from hypothesis import given, settings, strategies as st

from gateway.mqtt import assignment
from gateway.mqtt.sharing import SharedGroup
from tests.support import mqtt
from tests.support.engines import MAKERS
from tests.support.mqtt import connack, puback, pubcomp, publish, pubrec, pubrel, subscribe, unsubscribe
from tests.support.mqtt_5 import enter, got
from tests.support.mqtt_door import World

FILTER = b"$share/g/t/#"


def send(world, *bodies, qos=1):
    publisher = world.client(b"p")
    publisher.send(*[publish(b"t/1", body, qos=qos, packet_id=i + 1) for i, body in enumerate(bodies)])


def numbered(count, start=0):
    return [b"%d" % i for i in range(start, start + count)]


def take(peer, *, acks=True):
    got = peer.take_deliveries()
    if acks:
        peer.send(*[puback(one.packet_id) for one in got if one.qos])
    return [one.body for one in got]


def test_each_message_goes_to_one_member_in_turn(world):
    first, second = (world.client(name, (FILTER, 1)) for name in (b"a", b"b"))
    other = world.client(b"o", (b"$share/h/t/#", 1))
    plain = world.client(b"s", (b"t/#", 0))
    for body in numbered(10):
        send(world, body)
    shares = [take(first), take(second)]
    assert sorted(shares[0] + shares[1]) == numbered(10)
    assert [len(share) for share in shares] == [5, 5]
    assert take(other) == plain.bodies() == numbered(10)


@pytest.mark.at_once(reason="what is on its way comes in other portions than it was published in")
@pytest.mark.parametrize("qos", [0, 1])
def test_members_that_keep_up_get_as_many_however_messages_come_together(world, qos):
    members = [world.client(b"m%d" % i, (FILTER, qos)) for i in range(4)]
    counts, sent = [0] * 4, 0
    for burst in (13, 9, 6, 22, 1, 49, 3, 97):
        send(world, *numbered(burst, sent))
        sent += burst
        counts = [count + len(take(member)) for count, member in zip(counts, members, strict=True)]
        assert sum(counts) == sent
        assert max(counts) - min(counts) <= 1
    assert counts == [50] * 4


def test_each_filter_is_granted_the_qos_that_was_asked_for(world):
    peer = world.connect(b"a").send(subscribe(1, (FILTER, 2), (b"$share/x/u", 0), (b"$share/x/v", 1)))
    assert peer.take()[1] == mqtt.suback(1, 2, 0, 1)
    send(world, b"two", qos=2)
    assert [one.qos for one in peer.take_deliveries()] == [2]


def test_what_a_member_did_not_acknowledge_goes_to_another_when_it_is_gone(world):
    first = world.client(b"a", (FILTER, 1))
    send(world, *numbered(4))
    got = first.take_deliveries()
    first.send(puback(got[0].packet_id))
    second = world.client(b"b", (FILTER, 1))
    assert take(second) == []
    first.vanish()
    assert take(second) == numbered(3, 1)
    send(world, b"next")
    assert take(second) == [b"next"]


def test_group_collects_while_no_member_is_there(world):
    world.client(b"a", (FILTER, 1), clean=False).vanish()
    send(world, *numbered(3))
    again = world.connect(b"a", clean=False)
    assert take(again) == numbered(3)


@pytest.mark.parametrize("is_acked", [True, False])
def test_place_of_a_group_outlives_a_kill(world, is_acked):
    peer = world.client(b"a", (FILTER, 1), clean=False)
    send(world, *numbered(3))
    assert take(peer, acks=is_acked) == numbered(3)
    world.close()
    world.open()
    send(world, b"next")
    again = world.connect(b"a", clean=False)
    assert take(again) == ([] if is_acked else numbered(3)) + [b"next"]


def test_group_ends_with_its_last_subscription(world):
    peer = world.client(b"a", (FILTER, 1))
    peer.send(unsubscribe(2, FILTER))
    send(world, b"nobody's")
    peer.take()
    peer.send(subscribe(3, (FILTER, 1)))
    send(world, b"new")
    assert take(peer) == [b"new"]


@pytest.mark.parametrize("how", ["unsubscribe", "clean"])
def test_group_whose_end_was_not_answered_is_there_as_it_was_after_a_kill(tmp_path, how):
    world = World(tmp_path / "before")
    peer = world.client(b"a", (FILTER, 1), clean=False)
    send(world, *numbered(3))
    got = peer.take_deliveries()
    peer.send(puback(got[0].packet_id)).vanish()
    send(world, b"waits")
    world.flushes_by_itself = False
    if how == "clean":
        peer = world.connect(b"a")
    else:
        peer = world.connect(b"a", clean=False)
        peer.take()
        peer.send(unsubscribe(1, FILTER))
    assert peer.take() == []
    world.data_dir = shutil.copytree(world.data_dir, tmp_path / "after")
    world.close()
    world.flushes_by_itself = True
    world.open()
    again = world.connect(b"a", clean=False)
    assert take(again) == [*numbered(2, 1), b"waits"]
    world.close()


@pytest.mark.parametrize("who", [b"a", b"b"])
def test_group_that_begins_behind_an_unanswered_end_takes_nothing_from_the_one_before_after_a_kill(tmp_path, who):
    world = World(tmp_path / "before")
    peer = world.client(b"a", (FILTER, 1), clean=False)
    send(world, *numbered(2))
    peer.send(puback(peer.take_deliveries()[0].packet_id))
    other = peer if who == b"a" else world.connect(who, clean=False)
    other.take()
    world.flushes_by_itself = False
    peer.send(unsubscribe(2, FILTER))
    other.send(subscribe(3, (FILTER, 1)))
    assert peer.take() == other.take() == []
    world.data_dir = shutil.copytree(world.data_dir, tmp_path / "after")
    world.close()
    world.flushes_by_itself = True
    world.open()
    assert take(world.connect(b"a", clean=False)) == numbered(1, 1)
    world.close()


def test_group_begins_once_the_end_of_the_last_one_is_durable(world):
    peer = world.client(b"a", (FILTER, 1), clean=False)
    other = world.client(b"b")
    world.flushes_by_itself = False
    peer.send(unsubscribe(2, FILTER))
    other.send(subscribe(3, (FILTER, 1)))
    assert other.take() == []
    world.flushes_by_itself = True
    world.flush()
    world.turn()
    assert other.take() == [mqtt.suback(3, 1)]
    send(world, *numbered(2))
    assert take(other) == numbered(2)


def test_group_that_was_left_for_good_begins_anew_also_after_a_kill(world):
    peer = world.client(b"a", (FILTER, 1), clean=False)
    send(world, *numbered(3))
    peer.take()
    peer.send(unsubscribe(1, FILTER)).take()
    send(world, b"to nobody")
    peer.send(subscribe(1, (FILTER, 1))).take()
    peer.vanish()
    send(world, b"waits")
    world.close()
    world.open()
    assert take(world.connect(b"a", clean=False)) == [b"waits"]


def test_group_of_sessions_that_a_kill_ended_is_forgotten(world):
    peer = world.client(b"a", (FILTER, 1))
    send(world, *numbered(2))
    peer.take()
    world.close()
    world.open()
    assert take(world.client(b"a", (FILTER, 1))) == []
    assert not list(world.door.subscribing.sharing.held_positions())[1:]


def test_no_retained_messages_come_to_a_group(world):  # MQTT-4.8 of MQTT 5
    world.client(b"p").send(publish(b"t/1", b"kept", retain=True))
    peer = world.connect(b"a").send(subscribe(1, (FILTER, 1)))
    assert peer.take() == [connack(), mqtt.suback(1, 1)]


def test_member_that_takes_no_more_leaves_the_rest_to_others(make_world):
    world = make_world(inflight_max=2)
    first, second = (world.client(name, (FILTER, 1)) for name in (b"a", b"b"))
    send(world, *numbered(8))
    slow = take(first, acks=False)
    got = []
    while more := take(second):
        got += more
    assert len(slow) == 2
    assert sorted(slow + got) == numbered(8)


def test_messages_at_qos_0_are_done_when_they_are_sent(world):
    first = world.client(b"a", (FILTER, 0))
    send(world, *numbered(3))
    assert take(first) == numbered(3)
    first.vanish()
    assert take(world.client(b"a", (FILTER, 0))) == []


@pytest.mark.parametrize("make_engine", MAKERS.values(), ids=MAKERS)
@settings(max_examples=30, deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["send", "send", "take", "lose", "come", "kill"]), st.integers(0, 2)), max_size=25
    )
)
def test_nothing_is_lost_whatever_happens_to_members(tmp_path_factory, make_engine, steps):
    world = World(tmp_path_factory.mktemp("sharing"), make_engine=make_engine)
    try:
        members = {0: world.client(b"m0", (FILTER, 1), clean=False)}
        acked = Counter()
        sent = 0
        for action, which in [*steps, ("come", 0), ("take", 0), ("take", 1), ("take", 2), ("take", 0)]:
            if action == "send":
                send(world, b"%d" % sent)
                sent += 1
            elif action == "kill":
                world.close()
                world.open()
                members.clear()
            elif action == "come" and which not in members:
                members[which] = world.connect(b"m%d" % which, clean=False)
                members[which].send(subscribe(1, (FILTER, 1)))
            elif action == "lose" and which in members:
                members.pop(which).vanish()
            elif action == "take" and which in members:
                acked.update(take(members[which]))
        assert set(acked) == set(numbered(sent))
    finally:
        world.close()


def test_queue_is_the_old_form_of_a_group_without_a_name(world):
    first = world.client(b"a", (b"$queue/t/#", 1))
    second = world.client(b"b", (b"$share/$queue/t/#", 2))
    for body in numbered(4):
        send(world, body)
    shares = [take(first), take(second)]
    assert sorted(shares[0] + shares[1]) == numbered(4)
    assert [len(share) for share in shares] == [2, 2]
    first.send(unsubscribe(9, b"$queue/t/#"))
    first.take()
    send(world, b"next")
    assert take(second) == [b"next"]
    assert world.connect(b"c").send(subscribe(1, (b"$queue/", 1))).take()[-1] == mqtt.suback(1, 0x80)


# QoS 2


def finish(peer, deliveries):
    """Go through the rest of QoS 2 for what a member was sent."""
    for one in deliveries:
        assert peer.send(pubrec(one.packet_id)).take() == [pubrel(one.packet_id)]
        assert peer.send(pubcomp(one.packet_id)).take() == []


def test_message_at_qos_2_is_given_to_its_member_only(world):  # MQTT-4.8.2-4, MQTT-4.8.2-5
    first = world.client(b"a", (FILTER, 2), clean=False)
    send(world, *numbered(3), qos=2)
    given = first.take_deliveries()
    first.send(pubrec(given[0].packet_id)).take()
    second = world.client(b"b", (FILTER, 2))
    first.vanish()
    assert second.take_deliveries() == []
    send(world, b"new", qos=2)
    assert [one.body for one in second.take_deliveries()] == [b"new"]
    again = world.connect(b"a", clean=False)
    packets = again.take()
    assert pubrel(given[0].packet_id) in packets
    deliveries = [mqtt.parse_publish(one) for one in packets if one[0] >> 4 == 3]
    assert [(one.body, one.dup, one.packet_id) for one in deliveries] == [
        (one.body, True, one.packet_id) for one in given[1:]
    ]
    again.send(pubcomp(given[0].packet_id))
    finish(again, deliveries)
    again.vanish()
    assert world.connect(b"a", clean=False).take_deliveries() == []


def test_message_at_qos_2_ends_with_the_session_it_was_sent_to(world):  # MQTT-4.8.2-5
    first = world.client(b"a", (FILTER, 2))
    second = world.client(b"b", (FILTER, 2))
    send(world, *numbered(4), qos=2)
    mine = second.take_deliveries()
    first.vanish()
    assert second.take_deliveries() == []
    finish(second, mine)
    send(world, b"last", qos=2)
    assert [one.body for one in second.take_deliveries()] == [b"last"]


def test_member_that_refuses_a_message_is_the_last_to_see_it(world):  # MQTT-4.8.2-6
    first = enter(world, b"a", filters=[(FILTER, 2)])
    send(world, *numbered(2), qos=2)
    for one in got(first):
        first.send(b"\x50\x04" + one.packet_id.to_bytes(2, "big") + b"\x97\0")
    second = enter(world, b"b", filters=[(FILTER, 2)])
    first.vanish()
    assert got(second) == []


def test_messages_at_qos_1_and_2_of_one_member_go_their_own_ways(world):
    first = world.client(b"a", (FILTER, 2), clean=False)
    send(world, b"one", qos=1)
    send(world, b"two", qos=2)
    assert [one.body for one in first.take_deliveries()] == [b"one", b"two"]
    second = world.client(b"b", (FILTER, 2))
    first.vanish()
    assert [one.body for one in second.take_deliveries()] == [b"one"]
    assert [one.body for one in world.connect(b"a", clean=False).take_deliveries()] == [b"two"]


@pytest.mark.parametrize("how_far", [0, 1, 2])
def test_message_at_qos_2_is_given_once_also_over_a_kill(world, how_far):
    first = world.client(b"a", (FILTER, 2), clean=False)
    send(world, *numbered(2), qos=2)
    (one, other) = first.take_deliveries()
    if how_far:
        first.send(pubrec(one.packet_id))
    if how_far > 1:
        first.send(pubcomp(one.packet_id))
    world.close()
    world.open()
    second = world.client(b"b", (FILTER, 2))
    send(world, b"new", qos=2)
    assert [each.body for each in second.take_deliveries()] == [b"new"]
    again = world.connect(b"a", clean=False)
    packets = again.take()
    bodies = [mqtt.parse_publish(each).body for each in packets if each[0] >> 4 == 3]
    assert bodies == [[b"0", b"1"], [b"1"], [b"1"]][how_far]
    assert (pubrel(one.packet_id) in packets) is (how_far == 1)
    again.send(pubcomp(one.packet_id)) if how_far == 1 else None
    assert other.packet_id


def test_kill_between_two_journals_gives_nothing_twice(world, monkeypatch):
    first = world.client(b"a", (FILTER, 2), clean=False)
    monkeypatch.setattr(SharedGroup, "_finish", lambda _group, _offsets: None)  # the kill comes before the group knows
    send(world, *numbered(3), qos=2)
    assert len(first.take_deliveries()) == 3
    monkeypatch.undo()
    world.close()
    world.open()
    second = world.client(b"b", (FILTER, 2))
    send(world, b"new", qos=2)
    assert [each.body for each in second.take_deliveries()] == [b"new"]
    assert [one.body for one in world.connect(b"a", clean=False).take_deliveries()] == numbered(3)


def test_what_is_on_its_way_at_qos_2_is_kept_from_retention(world):
    def held():
        return [position for _, position in world.door.sessions.held_positions()]

    first = world.client(b"a", (FILTER, 2), clean=False)
    assert held() == []
    send(world, *numbered(5), qos=2)
    deliveries = first.take_deliveries()
    assert held() == [0]
    finish(first, deliveries[:2])
    assert held() == [2]
    finish(first, deliveries[2:])
    assert held() == []


# Strategies


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
