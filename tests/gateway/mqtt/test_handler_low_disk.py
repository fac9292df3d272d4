"""Publishers while the disk is low on room."""

from __future__ import annotations

from tests.support import mqtt
from tests.support.mqtt import publish

LOW, ENOUGH = 0, 1 << 40


def test_publisher_is_acknowledged_what_was_read_and_then_not_read(world):
    subscriber = world.client(b"s", (b"#", 1))
    world.set_free(LOW)
    peer = world.client(b"p")
    assert not peer.transport.is_held
    peer.send(publish(b"a", b"1", qos=1, packet_id=1), publish(b"a", b"2", qos=1, packet_id=2))
    assert [mqtt.puback(1), mqtt.puback(2)] == peer.take()
    assert peer.transport.is_held
    assert world.counts.publishers_held == world.counts.holds == 1
    assert subscriber.bodies() == [b"1", b"2"]
    world.set_free(ENOUGH)
    assert not peer.transport.is_held
    assert world.counts.publishers_held == 0
    peer.send(publish(b"a", b"3", qos=1, packet_id=3))
    assert not peer.transport.is_held
    assert subscriber.bodies() == [b"3"]


def test_publisher_at_qos_0_is_held_too(world):
    world.set_free(LOW)
    peer = world.client(b"p").send(publish(b"a", b"1"))
    assert peer.transport.is_held


def test_keep_alive_ends_no_held_connection_and_starts_anew_afterwards(world):
    peer = world.client(b"p", keep_alive_s=10)
    world.set_free(LOW)
    peer.send(publish(b"a", b"1"))
    assert peer.handler.next_deadline_ms() is None
    world.now_ms += 3_600_000
    peer.handler.on_timer(world.now_ms)
    assert not peer.is_closed
    world.set_free(ENOUGH)
    assert peer.handler.next_deadline_ms() == world.now_ms + 15_000
    world.now_ms += 15_000
    peer.handler.on_timer(world.now_ms)
    assert peer.is_closed


def test_deliveries_to_a_held_connection_go_on(world):
    world.set_free(LOW)
    peer = world.client(b"p", (b"#", 0)).send(publish(b"a", b"1"))
    assert peer.bodies() == [b"1"]
    world.client(b"q").send(publish(b"a", b"2"))
    assert peer.bodies() == [b"2"]


def test_output_that_has_room_again_does_not_let_a_held_publisher_go_on(world):
    world.set_free(LOW)
    peer = world.client(b"p")
    peer.stall()
    peer.send(publish(b"a", b"1", qos=1, packet_id=1))
    assert not peer.transport.is_reading
    peer.drain()
    assert peer.transport.is_reading
    assert peer.transport.is_held


def test_will_is_published_while_the_disk_is_low(world):
    watcher = world.client(b"s", (b"w/#", 1))
    peer = world.client(b"c", will=(b"w/t", b"gone", 1, False))
    world.set_free(LOW)
    peer.send(publish(b"a", b"1")).vanish()
    assert watcher.bodies() == [b"gone"]
    assert world.counts.publishers_held == 0


def test_held_connection_gives_way_to_a_newer_one_of_its_client(world):
    world.set_free(LOW)
    peer = world.client(b"p").send(publish(b"a", b"1"))
    world.client(b"p")
    assert peer.is_closed
    peer.handler.on_closed(world.now_ms)
    assert world.counts.publishers_held == 0
