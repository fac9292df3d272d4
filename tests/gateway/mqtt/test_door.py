from __future__ import annotations

import pytest

from gateway.door import Listen
from gateway.settings import GatewaySettings, MqttSettings
from tests.support import mqtt


def test_door_has_one_address(make_world):
    world = make_world(listen="127.0.0.1:1")
    assert world.door.listens() == [Listen("mqtt", "127.0.0.1:1")]
    assert [interval.interval_ms for interval in world.door.intervals()] == [1_000]


@pytest.mark.asyncio
async def test_nothing_is_to_be_known_of_what_is_bound(world):
    await world.door.on_listening({"mqtt": ("127.0.0.1", 1)})
    assert world.client().is_closed is False


def test_only_clients_that_were_let_in_are_checked_again(world):
    world.dial()
    client = world.client(b"in")
    assert [handler.identity.user for handler in world.door.handlers] == [""]
    client.vanish()
    assert list(world.door.handlers) == []


def test_stop_closes_clients_and_those_who_have_not_said_who_they_are(world):
    peers = [world.dial(), world.client(b"in")]
    world.door.stop(world.now_ms)
    assert all(peer.is_closed for peer in peers)


def test_other_settings_hold_for_clients_that_are_connected(world):
    client = world.client(b"c")
    world.door.reload(GatewaySettings(mqtt=MqttSettings(subscription_count_max=1, connections_max=3)))
    client.send(mqtt.subscribe(1, (b"a", 0), (b"b", 0)))
    assert client.take()[0][4:] == bytes((0, 0x80))
    assert world.door.limits.connections_max == 3


def test_held_publisher_whose_peer_is_gone_is_read_again(world):
    client = world.client(b"c")
    world.set_free(0)
    client.send(mqtt.publish(b"a", b"x"))
    assert world.counts.publishers_held == 1
    client.transport.fileno = lambda: -1  # the socket of a connection that is closed
    world.door.read_departed()
    client.vanish()
    assert world.counts.publishers_held == 0
