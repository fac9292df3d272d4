"""Shared subscriptions: MQTT-4.8.2."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings, strategies as st

from tests.support import mqtt
from tests.support.mqtt import connack, puback, publish, subscribe, unsubscribe
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


def test_qos_is_1_at_most(world):
    peer = world.connect(b"a").send(subscribe(1, (FILTER, 2), (b"$share/x/u", 0)))
    assert peer.take()[1] == mqtt.suback(1, 1, 0)
    send(world, b"two", qos=2)
    assert [one.qos for one in peer.take_deliveries()] == [1]


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


@settings(max_examples=30, deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["send", "send", "take", "lose", "come", "kill"]), st.integers(0, 2)), max_size=25
    )
)
def test_nothing_is_lost_whatever_happens_to_members(tmp_path_factory, steps):
    world = World(tmp_path_factory.mktemp("sharing"))
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
