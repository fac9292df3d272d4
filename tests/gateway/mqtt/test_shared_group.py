"""Members of a group share its messages: MQTT-4.8.2."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings, strategies as st

from tests.support import mqtt
from tests.support.engines import MAKERS
from tests.support.mqtt import connack, connect_5, puback, publish, subscribe, subscribe_5, unsubscribe_5
from tests.support.mqtt_5 import P, encoded, enter, got
from tests.support.mqtt_door import World
from tests.support.mqtt_groups import FILTER, numbered, send, take


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


def test_who_unsubscribes_finishes_what_it_was_sent(world):  # MQTT-3.10.4-3, MQTT-3.3.4-9
    items = encoded((P.RECEIVE_MAX, 2))
    leaver = world.dial().send(connect_5(b"a", properties=items), subscribe_5(1, (b"$share/g/t", 1), (b"u", 1)))
    world.client(b"p").send(*[publish(b"t", b"%d" % i, qos=1, packet_id=1) for i in range(2)]).vanish()
    sent = got(leaver)
    stayer = enter(world, b"b", filters=[(b"$share/g/t", 1)])
    leaver.send(unsubscribe_5(2, b"$share/g/t"))
    world.client(b"p").send(publish(b"u", b"other", qos=1, packet_id=1)).vanish()
    assert got(leaver) == []  # two are under way, and it takes no more
    leaver.send(puback(sent[0].packet_id))
    assert [one.body for one in got(leaver)] == [b"other"]
    assert got(stayer) == []
    leaver.vanish()
    assert [one.body for one in got(stayer)] == [b"1"]


def test_last_member_that_unsubscribes_finishes_what_it_was_sent_though_the_group_is_no_more(world):
    peer = enter(world, b"a", (P.SESSION_EXPIRY, 100), filters=[(b"$share/g/t", 1)])
    world.client(b"p").send(*[publish(b"t", b"%d" % i, qos=1, packet_id=1) for i in range(2)]).vanish()
    sent = got(peer)
    peer.send(unsubscribe_5(2, b"$share/g/t"), puback(sent[0].packet_id))
    assert got(enter(world, b"b", filters=[(b"$share/g/t", 1)])) == []  # it begins at the end
    peer.vanish()
    again = enter(world, b"a", (P.SESSION_EXPIRY, 100), clean=False)
    again.send(puback(sent[1].packet_id)).vanish()
    assert got(enter(world, b"a", (P.SESSION_EXPIRY, 100), clean=False)) == []
