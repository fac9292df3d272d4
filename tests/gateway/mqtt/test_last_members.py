"""What the last member of a shared subscription has under way as it unsubscribes: nobody else is going to get it."""

from __future__ import annotations

import shutil

import pytest

from tests.support import mqtt
from tests.support.exactly_once import restart
from tests.support.mqtt import connack, puback
from tests.support.mqtt_groups import FILTER, numbered, send


def leave(peer):
    peer.send(mqtt.unsubscribe(2, FILTER)).take()


def rows(world):
    return list(world.broker.table("mqtt_ended").items())


def come_back(world, client_id=b"a"):
    """Return a client that goes on with its session, and what it was sent: bodies, QoS and DUP."""
    peer = world.connect(client_id, clean=False)
    packets = peer.take()
    assert packets[0] == connack(session_present=True)
    got = mqtt.deliveries(b"".join(packets[1:]))
    return peer, got, [(one.body, one.qos, one.dup) for one in got]


@pytest.mark.parametrize("qos", [1, 2])
@pytest.mark.parametrize("is_at_qos_0", [False, True])
def test_last_member_gets_again_after_a_start_what_it_has_at_qos_1(world, qos, is_at_qos_0):
    peer = world.client(b"a", (FILTER, qos), clean=False)
    send(world, *numbered(4))
    sent = peer.take_deliveries()
    peer.send(puback(sent[1].packet_id))
    if is_at_qos_0:
        peer.send(mqtt.subscribe(3, (FILTER, 0))).take()
    leave(peer)
    left = [(one.body, 1, True) for one in (sent[0], sent[2], sent[3])]
    for _ in range(2):
        restart(world)
        assert [position for _, position in world.door.sessions.held_positions()] == [0]
        peer, got, said = come_back(world)
        assert said == left
    peer.send(*[puback(one.packet_id) for one in got])
    assert rows(world) == []
    assert list(world.door.sessions.held_positions()) == []
    restart(world)
    assert come_back(world)[2] == []


def test_last_member_gets_it_again_without_a_start_too(world):
    peer = world.client(b"a", (FILTER, 1), clean=False)
    send(world, *numbered(2))
    sent = peer.take_deliveries()
    leave(peer)
    peer.vanish()
    peer, got, said = come_back(world)
    assert said == [(one.body, 1, True) for one in sent]
    peer.send(*[puback(one.packet_id) for one in got])
    assert rows(world) == []


def test_member_that_left_before_the_last_one_gets_it_again(world):
    first = world.client(b"a", (FILTER, 1), clean=False)
    send(world, b"one")
    assert len(first.take_deliveries()) == 1
    last = world.client(b"b", (FILTER, 1), clean=False)
    leave(first)
    assert rows(world) == []
    leave(last)
    restart(world)
    assert come_back(world)[2] == [(b"one", 1, True)]
    assert come_back(world, b"b")[2] == []


def test_member_that_left_others_gets_nothing_again_after_a_start(world):
    first = world.client(b"a", (FILTER, 1), clean=False)
    send(world, b"one")
    assert len(first.take_deliveries()) == 1
    world.client(b"b", (FILTER, 1), clean=False)
    leave(first)
    restart(world)
    assert come_back(world)[2] == []
    assert [body for body, _, _ in come_back(world, b"b")[2]] == [b"one"]


def test_group_that_begins_anew_is_not_handed_what_its_last_member_has(world):
    peer = world.client(b"a", (FILTER, 1), clean=False)
    send(world, b"one")
    assert len(peer.take_deliveries()) == 1
    leave(peer)
    other = world.client(b"b", (FILTER, 1), clean=False)
    send(world, b"two")
    assert other.bodies() == [b"two"]
    restart(world)
    assert come_back(world)[2] == [(b"one", 1, True)]
    assert [body for body, _, _ in come_back(world, b"b")[2]] == [b"two"]


@pytest.mark.parametrize("qos", [1, 2])
def test_no_commit_has_the_end_of_the_last_member_without_what_members_have_under_way(world, tmp_path, qos):
    first = world.client(b"a", (FILTER, qos), clean=False)
    send(world, b"one")
    assert first.bodies() == [b"one"]
    second = world.client(b"b", (FILTER, qos), clean=False)
    leave(first)
    send(world, b"two")
    assert second.bodies() == [b"two"]
    killed = tmp_path / "killed"

    def commit():
        if not killed.exists():
            world.store.flush()
            shutil.copytree(world.data_dir, killed)

    world.engine.durability.request_flush = commit  # as the gateway's, which begins at once
    leave(second)
    world.close()
    world.data_dir = killed
    world.open()
    assert [come_back(world, name)[2] for name in (b"a", b"b")] == [[(b"one", 1, True)], [(b"two", 1, True)]]
