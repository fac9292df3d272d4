"""The `$SYS` tree, with mosquitto's names."""

from __future__ import annotations

import math

import pytest

from gateway.mqtt.reason_codes import ReasonCode
from gateway.mqtt.sys_tree import Load
from gateway.settings.models import GatewaySettings, MqttSettings
from tests.support import mqtt
from tests.support.logins import quick_hash
from tests.support.mqtt import publish, publish_5, subscribe, subscribe_5
from tests.support.mqtt_5 import P, enter, got

ROOT = b"$SYS/broker/"


def tick(world, seconds=10):
    world.now_ms += 1_000 * seconds
    for interval in world.door.intervals():
        interval.work(world.now_ms)
    world.turn()


def values(peer):
    return {one.topic.removeprefix(ROOT): one.body for one in peer.take_deliveries()}


def test_new_subscriber_gets_all_values_retained_and_then_those_that_changed(world):
    peer = world.connect(b"a").send(subscribe(1, (b"$SYS/#", 2)))
    first = peer.take_deliveries()
    assert {(one.retain, one.qos) for one in first} == {(1, 0)}
    names = {one.topic.removeprefix(ROOT) for one in first}
    assert {b"version", b"uptime", b"clients/maximum", b"retained messages/count", b"load/bytes/sent/15min"} <= names
    tick(world, 9)
    assert peer.take() == []
    world.client(b"p", (b"t", 1)).send(publish(b"t", b"four", retain=True))
    tick(world, 1)
    later = peer.take_deliveries()
    assert {one.retain for one in later} == {0}
    told = {one.topic.removeprefix(ROOT): one.body for one in later}
    assert b"version" not in told
    assert told[b"uptime"] == b"10 seconds"
    expected = {
        b"clients/connected": b"2",
        b"clients/maximum": b"2",
        b"messages/received": b"1",
        b"publish/bytes/sent": b"4",
        b"messages/stored": b"1",
        b"subscriptions/count": b"2",
        b"retained messages/count": b"1",
    }
    assert expected.items() <= told.items()
    assert told[b"load/messages/received/1min"] == b"%.2f" % (6 * (1 - math.exp(-1 / 6)))


def test_one_value_by_its_name_and_none_by_wildcards_that_lead(world):
    peer = world.connect(b"a").send(subscribe(1, (ROOT + b"clients/+", 0)))
    assert values(peer)[b"clients/connected"] == b"0"  # of when the gateway started
    others = world.connect(b"b").send(subscribe(1, (b"#", 0), (b"+/broker/version", 0)))
    tick(world)
    assert others.take_deliveries() == []
    assert values(peer)[b"clients/connected"] == b"2"


def test_durable_session_that_comes_back_is_told_again_and_counted_while_it_is_away(world):
    world.client(b"a", (b"$SYS/#", 1), clean=False).vanish()
    peer = world.client(b"o", (ROOT + b"clients/#", 0))
    tick(world)
    told = values(peer)
    assert (told[b"clients/disconnected"], told[b"clients/total"]) == (b"1", b"2")
    again = world.connect(b"a", clean=False)
    tick(world)
    assert values(again)[b"clients/connected"] == b"2"


def test_options_and_identifiers_of_version_5(world):
    peer = enter(world, b"s")
    peer.send(subscribe_5(1, (ROOT + b"uptime", 0x08), properties=b"\x02\x0b\x09"))
    tick(world)
    assert [(one.retain, one.properties.number(P.SUBSCRIPTION_ID, 0)) for one in got(peer)] == [(1, 9), (1, 9)]
    peer.send(subscribe_5(2, (ROOT + b"version", 0x20)))
    assert got(peer) == []


def test_unsubscribed_stalled_and_gone_ones_are_not_told(world):
    peers = [world.client(b"%d" % i, (ROOT + b"uptime", 0)) for i in range(3)]
    for peer in peers:
        peer.take()
    peers[0].send(mqtt.unsubscribe(2, ROOT + b"uptime"))
    peers[0].take()
    peers[1].stall()
    peers[2].vanish()
    tick(world)
    assert all(peer.take() == [] for peer in peers[:2])
    peers[1].drain()
    tick(world)
    assert values(peers[1]) == {b"uptime": b"20 seconds"}


@pytest.mark.parametrize("interval_s", [0, 1])
def test_interval_can_be_changed(world, interval_s):
    peer = world.client(b"a", (ROOT + b"uptime", 0))
    peer.take()
    world.door.reload(GatewaySettings(mqtt=MqttSettings(sys_interval_s=interval_s)))
    tick(world, 1)
    assert len(peer.take()) == interval_s


def test_clients_publish_nothing_there(world):
    watcher = world.client(b"a", (b"$SYS/#", 0))
    watcher.take()
    peer = enter(world, b"p")
    for topic in (b"version", b"connection/edge/version", b"connection/a/b/state", b"connection//state"):
        peer.send(publish_5(ROOT + topic, b"x", qos=1, packet_id=1))
        (ack,) = peer.take()
        assert ack[4] == ReasonCode.NOT_AUTHORIZED
    world.client(b"w", will=(ROOT + b"version", b"x", 0, False)).vanish()
    assert watcher.take() == []


def test_rights_are_asked(make_world):
    world = make_world(auth={"users": {"alice": {"password_hash": quick_hash("secret"), "may_subscribe": False}}})
    peer = world.connect(b"a", user=b"alice", password=b"secret")
    assert peer.send(subscribe(1, (b"$SYS/#", 1))).take()[-1] == mqtt.suback(1, 0x80)


def test_load_weighs_newer_growth_more():
    load = Load(100)
    for _ in range(600):
        load.note(load._before + 10, 10)
    assert load.averages == pytest.approx([60.0, 60.0, 60.0], rel=0.01)
    load.note(load._before, 60)
    assert load.averages == pytest.approx([60 * math.exp(-1 / minutes) for minutes in (1, 5, 15)], rel=0.01)


@pytest.mark.parametrize("topic_filter", [b"$SYS/#", ROOT + b"connection/+/state"])
def test_bridges_of_mosquitto_say_whether_they_are_connected(world, topic_filter):
    state = ROOT + b"connection/edge/state"

    def told(peer):
        return [(one.body, one.retain) for one in peer.take_deliveries() if one.topic == state]

    before = world.client(b"before", (topic_filter, 0))
    bridge = world.client(b"edge", will=(state, b"0", 1, True))
    bridge.send(publish(state, b"1", qos=1, packet_id=1, retain=True))
    assert told(before) == [(b"1", 0)]
    assert told(world.connect(b"after").send(subscribe(1, (topic_filter, 0)))) == [(b"1", 1)]
    bridge.vanish()
    assert told(before) == [(b"0", 0)]
    assert told(world.connect(b"later").send(subscribe(1, (topic_filter, 0)))) == [(b"0", 1)]
