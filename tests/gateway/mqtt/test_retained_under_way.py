"""Retained messages on their way: at QoS 2 over kills, and those that several subscribes asked for."""

from __future__ import annotations

import pytest

from tests.support import mqtt
from tests.support.mqtt import (
    connack,
    puback,
    pubcomp,
    publish,
    pubrec,
    pubrel,
    subscribe,
)


def test_retained_messages_at_qos_2_come_once_whatever_is_killed(make_world):
    world = make_world(inflight_max=4)
    names = [b"r/%d" % i for i in range(6)]
    world.client(b"p").send(*[publish(name, name, qos=2, packet_id=i + 1, retain=True) for i, name in enumerate(names)])
    subscriber = world.client(b"s", clean=False)
    first = subscriber.send(subscribe(1, (b"r/#", 2))).take_deliveries()
    assert [(d.body, d.qos) for d in first] == [(name, 2) for name in names[:4]]
    subscriber.send(pubrec(first[1].packet_id), pubrec(first[2].packet_id), pubcomp(first[2].packet_id))
    for _ in range(2):
        world.close()
        world.open()
        again = world.connect(b"s", clean=False)
        packets = again.take()
        sent = [mqtt.parse_publish(one) for one in packets if one[0] >> 4 == 3]
        known = [(d.body, d.packet_id, d.dup) for d in sent if d.body in names[:4]]
        assert known == [(d.body, d.packet_id, True) for d in (first[0], first[3])]
        assert pubrel(first[1].packet_id) in packets
    rest = [d for d in sent if d.body in names[4:]]
    again.send(pubcomp(first[1].packet_id), *[pubrec(d.packet_id) for d in sent])
    again.send(*[pubcomp(d.packet_id) for d in sent])
    rest += (more := again.take_deliveries())
    again.send(*[pubrec(d.packet_id) for d in more]).send(*[pubcomp(d.packet_id) for d in more])
    assert sorted({d.body for d in rest}) == names[4:]
    world.close()
    world.open()
    assert world.connect(b"s", clean=False).take() == [connack(session_present=True)]


def test_retained_message_at_qos_2_that_was_completed_comes_again_with_another_subscribe(world):
    world.client(b"p").send(publish(b"r", b"x", qos=2, packet_id=1, retain=True))
    subscriber = world.client(b"s", clean=False)
    for qos in (2, 1, 2):
        (one,) = subscriber.send(subscribe(1, (b"r", qos))).take_deliveries()
        world.close()
        world.open()
        subscriber = world.connect(b"s", clean=False)
        (again,) = subscriber.take_deliveries()
        assert (again.body, again.qos, again.dup) == (b"x", qos, True)
        assert qos == 1 or again.packet_id == one.packet_id
        acks = (pubrec(again.packet_id), pubcomp(again.packet_id)) if qos == 2 else (puback(again.packet_id),)
        subscriber.send(*acks)
        subscriber.take()


@pytest.mark.parametrize("restarts", [1, 2])
def test_retained_message_on_its_way_for_several_subscribes_is_brought_to_its_end_for_each(world, restarts):
    world.client(b"p").send(publish(b"t", b"x", qos=2, packet_id=1, retain=True), pubrel(1))
    peer = world.client(b"s", clean=False)
    for _ in range(3):
        peer.send(subscribe(1, (b"t", 2)))
    first, second, third = (one.packet_id for one in peer.take_deliveries())
    peer.send(pubrec(second))
    for _ in range(restarts):
        world.close()
        world.open()
        peer = world.connect(b"s", clean=False)
        packets = peer.take()[1:]
        assert packets[1] == pubrel(second)
        again = [mqtt.parse_publish(packets[i]) for i in (0, 2)]
        assert [(one.packet_id, one.body, one.dup) for one in again] == [(first, b"x", True), (third, b"x", True)]
    peer.send(pubrec(third), pubcomp(second), pubrec(first), pubcomp(third), pubcomp(first))
    assert sorted(peer.take()) == [pubrel(first), pubrel(third)]
    world.close()
    world.open()
    assert world.connect(b"s", clean=False).take() == [connack(session_present=True)]


def test_retained_message_at_qos_1_that_several_subscribes_asked_for_comes_again_once(world):
    world.client(b"p").send(publish(b"t", b"x", qos=1, packet_id=1, retain=True))
    peer = world.client(b"s", clean=False)
    for _ in range(2):
        peer.send(subscribe(1, (b"t", 1)))
    assert len(peer.take_deliveries()) == 2
    for _ in range(2):
        world.close()
        world.open()
        peer = world.connect(b"s", clean=False)
        (again,) = peer.take_deliveries()
    peer.send(puback(again.packet_id))
    world.close()
    world.open()
    assert world.connect(b"s", clean=False).take() == [connack(session_present=True)]


def test_retained_message_that_was_completed_for_one_subscribe_is_still_owed_for_the_next(world):
    world.client(b"p").send(publish(b"t", b"x", qos=2, packet_id=1, retain=True), pubrel(1))
    peer = world.client(b"s", clean=False)
    for _ in range(2):
        peer.send(subscribe(1, (b"t", 2)))
    first, second = (one.packet_id for one in peer.take_deliveries())
    for done, left in ((first, second), (second, first)):
        peer.send(pubrec(done)).send(pubcomp(done))
        world.close()
        world.open()
        peer = world.connect(b"s", clean=False)
        assert [one.packet_id for one in peer.take_deliveries()] == ([left] if done == first else [])
