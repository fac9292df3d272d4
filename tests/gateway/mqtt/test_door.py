from __future__ import annotations

import pytest

from gateway.door import ClientLimits, Listen
from gateway.mqtt.properties import Property
from gateway.settings.models import GatewaySettings, MqttSettings
from tests.support import mqtt
from tests.support.mqtt_5 import connack_of
from tests.support.mqtt_door import MemoryTransport, Peer


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


@pytest.mark.parametrize("is_5", [False, True])
def test_address_may_have_limits_of_its_own(world, is_5):
    def come_in(client_id, limits):
        transport = MemoryTransport(100 + len(world.peers))
        connect = world.door.connect_at(Listen("mqtt", "127.0.0.1:1883", clients=limits))
        peer = Peer(world, transport, connect(transport))
        peer.send(mqtt.connect_5(client_id) if is_5 else mqtt.connect(client_id))
        told = connack_of(peer.take()[0])[2].numbers if is_5 else {}
        peer.send(mqtt.subscribe_5(1, (b"t", 1)) if is_5 else mqtt.subscribe(1, (b"t", 1)))
        peer.take()
        return peer, told.get(Property.PACKET_BYTES_MAX)

    near, near_told = come_in(b"near", ClientLimits(packet_bytes_max=5_000_000, inflight_max=3))
    far, far_told = come_in(b"far", ClientLimits(packet_bytes_max=1_024))
    assert (near_told, far_told) == ((5_000_000, 1_024) if is_5 else (None, None))
    publish = mqtt.publish_5 if is_5 else mqtt.publish
    far.send(*[publish(b"t", b"%d" % i) for i in range(5)])
    world.client(b"p").send(*[mqtt.publish(b"t", b"%d" % i, qos=1, packet_id=i + 1) for i in range(5)])
    sent = [one for one in near.take() if one[0] >> 4 == 3]
    assert sum(one[0] & 6 > 0 for one in sent) == 3
    assert sum(one[0] & 6 > 0 for one in far.take()) == 5
    near.send(publish(b"u", b"x" * 100_000))
    far.send(publish(b"u", b"x" * 1_024))
    assert (near.is_closed, far.is_closed) == (False, True)
