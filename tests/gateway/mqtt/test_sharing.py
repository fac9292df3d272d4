"""Groups of shared subscriptions begin and end with their subscriptions, also over a kill: MQTT-4.8.2."""

from __future__ import annotations

import shutil

import pytest

from tests.support import mqtt
from tests.support.mqtt import puback, subscribe, unsubscribe
from tests.support.mqtt_door import World
from tests.support.mqtt_groups import FILTER, numbered, send, take


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
    peer = world.connect(b"a", clean=False)
    got = peer.take_deliveries()
    assert [(one.body, one.dup) for one in got] == [*[(body, True) for body in numbered(3)], (b"waits", False)]
    peer.send(*[puback(one.packet_id) for one in got]).vanish()
    assert take(world.connect(b"a", clean=False)) == []


def test_group_of_sessions_that_a_kill_ended_is_forgotten(world):
    peer = world.client(b"a", (FILTER, 1))
    send(world, *numbered(2))
    peer.take()
    world.close()
    world.open()
    assert take(world.client(b"a", (FILTER, 1))) == []
    assert not list(world.door.subscribing.sharing.held_positions())[1:]


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
