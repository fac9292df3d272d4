"""Offline sessions of MQTT over power cuts that keep their places, and lose the messages that these passed."""

from __future__ import annotations

import pytest

from tests.support import mqtt
from tests.support.mqtt_door import World
from tests.support.simulated_disk import SimulatedDisk, cut_power


def receive_what_is_lost(tmp_path):
    """Have a session that acknowledged messages which a power cut took; return its folder."""
    (tmp_path / "before").mkdir()
    disk = SimulatedDisk(tmp_path / "before")
    with disk.watching():
        world = World(disk.root / "data", is_sync=True)
        subscriber = world.connect(b"subscriber", clean=False).send(mqtt.subscribe(1, (b"a", 1)))
        publisher = world.client(b"publisher")
        world.flushes_by_itself = False
        for number in (1, 2):
            publisher.send(mqtt.publish(b"a", b"lost", qos=1, packet_id=number))
            subscriber.send(mqtt.puback(number))
        cut_power(world, disk, tmp_path / "after", ("places/",))
    return tmp_path / "after"


def confirm(world, *bodies):
    packets = [mqtt.publish(b"a", body, qos=1, packet_id=1 + number) for number, body in enumerate(bodies)]
    acks = world.client(b"publisher").send(*packets).take()
    assert acks == [mqtt.puback(1 + number) for number in range(len(bodies))]


@pytest.mark.parametrize("is_cut_again", [False, True])
def test_session_gets_messages_that_have_the_places_of_those_that_were_lost(tmp_path, is_cut_again):
    disk = SimulatedDisk(receive_what_is_lost(tmp_path))
    root = disk.root
    with disk.watching():
        world = World(root / "data", is_sync=True)
        confirm(world, b"1", b"2")
        if is_cut_again:
            root = tmp_path / "again"
            cut_power(world, disk, root, ())
        else:
            world.close()
    world = World(root / "data", is_sync=True)
    assert world.connect(b"subscriber", clean=False).bodies() == [b"1", b"2"]
    world.close()
