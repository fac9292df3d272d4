"""Publishers while the disk is low on room."""

from __future__ import annotations

import pytest

from tests.support import mqtt
from tests.support.mqtt import publish

LOW, ENOUGH = 0, 1 << 40


def test_publisher_is_acknowledged_what_was_read_and_then_waits(world):
    subscriber = world.client(b"s", (b"#", 1))
    world.set_free(LOW)
    peer = world.client(b"p")
    assert world.counts.publishers_held == 0
    peer.send(publish(b"a", b"1", qos=1, packet_id=1), publish(b"a", b"2", qos=1, packet_id=2))
    assert [mqtt.puback(1), mqtt.puback(2)] == peer.take()
    assert world.counts.publishers_held == world.counts.holds == 1
    peer.send(publish(b"a", b"3", qos=1, packet_id=3))
    assert peer.take() == []
    assert subscriber.bodies() == [b"1", b"2"]
    world.set_free(ENOUGH)
    assert world.counts.publishers_held == 0
    assert peer.take() == [mqtt.puback(3)]
    peer.send(publish(b"a", b"4", qos=1, packet_id=4))
    assert peer.take() == [mqtt.puback(4)]
    assert subscriber.bodies() == [b"3", b"4"]


def test_publisher_at_qos_0_is_held_too(world):
    subscriber = world.client(b"s", (b"#", 0))
    world.set_free(LOW)
    peer = world.client(b"p").send(publish(b"a", b"1")).send(publish(b"a", b"2"))
    assert subscriber.bodies() == [b"1"]
    peer.send(publish(b"a", b"3"))
    world.set_free(ENOUGH)
    assert subscriber.bodies() == [b"2", b"3"]


@pytest.mark.parametrize("version", [{}, {"protocol": b"MQIsdp", "level": 3}])
def test_ping_of_a_held_publisher_is_answered_behind_what_waits(world, version):
    world.set_free(LOW)
    peer = world.client(b"p", **version).send(publish(b"a", b"1"))
    second = publish(b"a", b"2", qos=1, packet_id=2)
    peer.send(second[:3])
    peer.send(second[3:] + mqtt.PINGREQ)
    assert peer.take() == [mqtt.PINGRESP]
    peer.send(mqtt.PINGREQ, mqtt.PINGREQ[:1])
    peer.send(mqtt.PINGREQ[1:])
    assert peer.take() == [mqtt.PINGRESP] * 2
    world.set_free(ENOUGH)
    assert peer.take() == [mqtt.puback(2)]


def test_held_publisher_acknowledges_what_it_is_sent(make_world):
    world = make_world(inflight_max=2)
    world.set_free(LOW)
    peer = world.client(b"p", (b"#", 1)).send(publish(b"a", b"1"))
    world.client(b"q").send(*[publish(b"a", b"%d" % i) for i in (2, 3)])
    world.client(b"r").send(*[publish(b"a", b"%d" % i) for i in (4, 5)])
    got = []
    for _ in range(5):
        came = peer.take_deliveries()
        got += [one.body for one in came]
        peer.send(*[mqtt.puback(one.packet_id) for one in came])
    assert got == [b"1", b"2", b"3", b"4", b"5"]


def test_messages_at_qos_0_are_dropped_where_too_much_waits_and_counted(world):
    subscriber = world.client(b"s", (b"#", 0))
    world.set_free(LOW)
    peer = world.client(b"p").send(publish(b"a", b"0"))
    for _ in range(100):
        peer.send(publish(b"a", b"x" * 1_000), mqtt.PINGREQ)
    assert peer.take() == [mqtt.PINGRESP] * 100
    dropped = world.counts.refused["quota_exceeded"]
    assert 0 < dropped < 100
    world.set_free(ENOUGH)
    assert len(subscriber.bodies()) == 101 - dropped
    assert world.door.aside.used_bytes == 0


def test_no_more_is_read_where_too_much_waits_that_must_not_be_lost(world):
    subscriber = world.client(b"s", (b"#", 0))
    world.set_free(LOW)
    peer = world.client(b"p").send(publish(b"a", b"0"))
    sent = 0
    while not peer.transport.is_held:
        sent += 1
        peer.send(publish(b"a", b"x" * 1_000, qos=1, packet_id=sent))
    assert sent < 100
    world.set_free(ENOUGH)
    assert not peer.transport.is_held
    assert peer.take() == [mqtt.puback(i) for i in range(1, sent + 1)]
    assert len(subscriber.bodies()) == sent + 1


def hold_unread(world, **options):
    """Return a client of which so much waits that nothing more is read."""
    peer = world.client(b"p", **options)
    world.set_free(LOW)
    peer.send(publish(b"a", b"0"))
    sent = 0
    while not peer.transport.is_held:
        sent += 1
        peer.send(publish(b"a", b"x" * 1_000, qos=1, packet_id=sent))
    return peer, sent


def pass_time(world, peer, secs):
    for _ in range(4 * secs):
        world.now_ms += 250
        deadline_ms = peer.handler.next_deadline_ms()
        if deadline_ms is not None and world.now_ms >= deadline_ms:
            peer.handler.on_timer(world.now_ms)


@pytest.mark.parametrize(("keep_alive_s", "count"), [(60, 6), (4, 15), (1, 60), (0, 0)])
def test_client_whose_pings_are_not_read_gets_its_answers_all_the_same(world, keep_alive_s, count):
    peer, sent = hold_unread(world, keep_alive_s=keep_alive_s)
    pass_time(world, peer, 30)
    assert peer.take() == [mqtt.PINGRESP] * count
    assert not peer.is_closed
    world.set_free(ENOUGH)
    assert peer.take() == [mqtt.puback(i) for i in range(1, sent + 1)]
    pass_time(world, peer, 1)
    assert peer.take() == []
    pass_time(world, peer, 90)
    assert peer.is_closed == (keep_alive_s > 0)  # it is heard again, and said nothing


def test_client_that_leaves_while_it_is_not_read_is_sent_nothing_more(world):
    peer, _ = hold_unread(world)
    peer.end()
    peer.take()
    pass_time(world, peer, 30)
    assert peer.take() == []


@pytest.mark.parametrize("last", [b"", mqtt.DISCONNECT])
def test_what_a_held_client_sent_before_it_left_is_stored(world, last):
    watcher = world.client(b"s", (b"#", 0))
    peer = world.client(b"p", will=(b"w", b"gone", 0, False))
    world.set_free(LOW)
    peer.send(publish(b"a", b"1")).send(publish(b"a", b"2", qos=1, packet_id=2))
    peer.end(last) if not last else peer.send(last)
    assert watcher.bodies() == [b"1", b"2"] + ([] if last else [b"gone"])
    assert peer.is_closed
    assert peer.take() == [mqtt.puback(2)]
    peer.vanish()
    assert world.counts.publishers_held == 0
    assert world.door.aside.used_bytes == 0


def test_what_was_set_aside_of_a_lost_connection_takes_no_room(world):
    world.set_free(LOW)
    peer = world.client(b"p").send(publish(b"a", b"1")).send(publish(b"a", b"2"))
    assert world.door.aside.used_bytes
    peer.vanish()
    assert world.door.aside.used_bytes == 0


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
    peer.send(publish(b"a", b"2", qos=1, packet_id=2))
    assert peer.take() == [mqtt.puback(1)]


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
