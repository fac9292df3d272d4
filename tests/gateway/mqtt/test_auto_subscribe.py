"""Filters that clients have without asking."""

from __future__ import annotations

from gateway.settings.topic_rules import AutoSubscription
from tests.support.logins import quick_hash
from tests.support.mqtt import connect_5, puback, publish, publish_5, unsubscribe
from tests.support.mqtt_5 import got

MINE = AutoSubscription(filter="cmd/${clientid}/+", qos=1)


def test_each_client_has_its_own_from_the_connect_on(make_world):
    world = make_world(auto_subscribe=(MINE, AutoSubscription(filter="user/${username}/x")))
    peers = [world.client(name) for name in (b"a", b"b")]
    world.client(b"p").send(
        publish(b"cmd/a/1", b"to a", qos=1, packet_id=1), publish(b"cmd/b/1", b"to b", qos=1, packet_id=2)
    )
    assert [peer.bodies() for peer in peers] == [[b"to a"], [b"to b"]]


def test_options_hold(make_world):
    wanted = AutoSubscription(filter="t", no_local=True, retain_as_published=True, retain_handling=1)
    world = make_world(auto_subscribe=(wanted,))
    world.client(b"p").send(publish(b"t", b"kept", retain=True))
    peer = world.dial()
    peer.send(connect_5(b"s", clean=True))
    assert [(one.body, one.retain) for one in got(peer)] == [(b"kept", 1)]
    peer.send(publish_5(b"t", b"own"))
    assert got(peer) == []


def test_durable_session_keeps_its_place_and_may_give_one_up(make_world):
    world = make_world(auto_subscribe=(MINE,))
    peer = world.client(b"a", clean=False)
    peer.vanish()
    world.client(b"p").send(publish(b"cmd/a/1", b"1", qos=1, packet_id=1))
    again = world.connect(b"a", clean=False)
    (one,) = again.take_deliveries()
    assert one.body == b"1"
    again.send(puback(one.packet_id), unsubscribe(1, b"cmd/a/+"))
    again.take()
    world.client(b"p2").send(publish(b"cmd/a/1", b"2", qos=1, packet_id=1))
    assert again.bodies() == []


def test_rights_and_impossible_names(make_world):
    world = make_world(
        auto_subscribe=(MINE,), auth={"users": {"alice": {"password_hash": quick_hash("s"), "may_subscribe": False}}}
    )
    world.connect(b"a", user=b"alice", password=b"s")
    assert world.counts.refused == {"subscription": 1}
    odd = world.client(b"x#y")
    world.client(b"p").send(publish(b"cmd/x", b"1"))
    assert odd.bodies() == []
    assert world.door.sessions.find(b"x#y").subscriptions == {}
