"""Peers that do not read: what waits, what is lost, and what it costs."""

from __future__ import annotations

from tests.support.mqtt import publish


def test_stalled_subscriber_at_qos_0_is_sent_nothing_and_catches_up(world):
    slow = world.client(b"slow", (b"t", 0))
    fast = world.client(b"fast", (b"t", 0))
    publisher = world.client(b"p")
    slow.stall()
    for i in range(20):
        publisher.send(publish(b"t", b"%d" % i))
    assert len(fast.bodies()) == 20
    assert slow.transport.sent == b""
    slow.drain()
    assert slow.bodies() == [b"%d" % i for i in range(20)]
    publisher.send(publish(b"t", b"next"))
    assert slow.bodies() == fast.bodies() == [b"next"]
    assert world.counts.dropped == {}


def test_subscriber_at_qos_0_that_is_too_far_behind_loses_messages_which_are_counted(make_world):
    world = make_world(lag_count_max=10)
    slow = world.client(b"slow", (b"t", 0))
    publisher = world.client(b"p")
    slow.stall()
    for i in range(100):
        publisher.send(publish(b"t", b"%d" % i))
    lost = world.counts.dropped["slow_subscriber"]
    assert 80 <= lost <= 100
    slow.drain()
    assert slow.bodies() == [b"%d" % i for i in range(lost, 100)]


def test_stalled_subscriber_at_qos_1_waits_at_its_place(make_world):
    world = make_world(lag_count_max=10)
    slow = world.client(b"slow", (b"t", 1))
    publisher = world.client(b"p")
    slow.stall()
    for i in range(100):
        publisher.send(publish(b"t", b"%d" % i, qos=1, packet_id=1))
    assert slow.transport.sent == b""
    slow.drain()
    assert slow.bodies() == [b"%d" % i for i in range(100)]
    assert world.counts.dropped == {}


def test_publisher_that_reads_no_acknowledgements_is_read_no_more(world):
    publisher = world.client(b"p")
    publisher.stall()
    publisher.send(publish(b"t", b"x", qos=1, packet_id=1))
    assert not publisher.transport.is_reading
    publisher.drain()
    assert publisher.transport.is_reading
