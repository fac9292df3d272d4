from __future__ import annotations

import pytest

from gateway.mqtt.session import ABREAST, AHEAD, BEHIND
from gateway.settings.models import GatewaySettings, MqttSettings
from tests.support import mqtt
from tests.support.store import retire


def subscription(world, client_id, topic_filter=b"t"):
    return world.door.sessions.find(client_id).subscriptions[topic_filter]


def publish(world, peer, start, end, qos=0):
    peer.handler.on_data(b"".join(mqtt.publish(b"t", b"%d" % i, qos=qos, packet_id=1) for i in range(start, end)), 0)


def come_ahead(world):
    """Return a second subscriber that came while the feed has messages from before it, with no turn yet."""
    second = world.dial()
    second.handler.on_data(mqtt.connect(b"second") + mqtt.subscribe(1, (b"t", 0)), 0)
    assert subscription(world, b"second").state == AHEAD
    return second


def bodies(start, end):
    return [b"%d" % i for i in range(start, end)]


def test_subscribers_that_keep_up_are_sent_the_same_bytes(world):
    peers = [world.client(b"s%d" % i, (b"t", 0)) for i in range(3)]
    written = []
    for peer in peers:
        peer.transport.write = written.append
    world.client(b"p").send(mqtt.publish(b"t", b"x") * 5)
    assert len(written) == 3
    assert written[0] is written[1] is written[2]


@pytest.mark.at_once(reason="a feed is late while no turn goes by, and turns bring the answers")
def test_subscriber_that_comes_while_the_feed_is_late_waits_for_it(world):
    first = world.client(b"first", (b"t", 0))
    publisher = world.client(b"p")
    publish(world, publisher, 0, 5)  # no turn yet
    second = come_ahead(world)
    publish(world, publisher, 5, 8)
    world.turn()
    assert first.bodies() == bodies(0, 8)
    assert second.bodies() == bodies(5, 8)
    assert subscription(world, b"second").state == ABREAST


@pytest.mark.at_once(reason="a feed is late while no turn goes by, and turns bring the answers")
def test_late_feed_is_left_by_the_only_one_abreast(world):
    first = world.client(b"first", (b"t", 0))
    publisher = world.client(b"p")
    publish(world, publisher, 0, 5)
    second = come_ahead(world)
    first.vanish()
    publish(world, publisher, 5, 8)
    world.turn()
    assert second.bodies() == bodies(5, 8)


def test_stalled_one_falls_behind_and_comes_abreast_again(world):
    slow = world.client(b"slow", (b"t", 0))
    fast = world.client(b"fast", (b"t", 0))
    publisher = world.client(b"p")
    slow.stall()
    publisher.send(*[mqtt.publish(b"t", b"%d" % i) for i in range(3000)])
    assert subscription(world, b"slow").state == BEHIND
    slow.drain()
    assert subscription(world, b"slow").state == ABREAST
    assert slow.bodies() == fast.bodies() == bodies(0, 3000)


def test_each_of_many_that_come_and_go_is_sent_what_came_meanwhile(world):
    publisher = world.client(b"p")
    here: dict[int, object] = {}
    since: dict[int, int] = {}
    for step in range(60):
        number = step * 7 % 11
        if number in here:
            assert here[number].bodies() == bodies(since[number], step)
            here.pop(number).vanish()
        else:
            here[number] = world.client(b"s%d" % number, (b"t", 0))
            since[number] = step
        publisher.send(mqtt.publish(b"t", b"%d" % step))
    assert len(here) > 3
    for number, peer in here.items():
        assert peer.bodies() == bodies(since[number], 60)


def test_window_without_room_falls_behind_and_holds_nobody_up(make_world):
    world = make_world(inflight_max=10)
    small = world.client(b"small", (b"t", 1))
    others = [world.client(b"o%d" % i, (b"t", 0)) for i in range(2)]
    world.client(b"p").send(*[mqtt.publish(b"t", b"%d" % i, qos=1, packet_id=1) for i in range(100)])
    assert [peer.bodies() for peer in others] == [bodies(0, 100)] * 2
    got = small.take_deliveries()
    assert [d.body for d in got] == bodies(0, 10)
    while got[-10:]:
        small.send(*[mqtt.puback(d.packet_id) for d in got[-10:]])
        more = small.take_deliveries()
        if not more:
            break
        got += more
    assert [d.body for d in got] == bodies(0, 100)
    assert subscription(world, b"small").state == ABREAST


def retire_all(world):
    """Let retention take all but the newest segment, needed or not."""
    world.store.flush()
    world.store.prepare()
    assert retire(world.store, world.now_ms + 1000 * 3_600_000) > 0


def fill_log(world):
    publisher = world.client(b"filler")
    for _ in range(30):
        publisher.send(mqtt.publish(b"other", b"x" * 50_000))


def test_place_that_was_retired_leads_on_to_what_comes(world):
    slow = world.client(b"slow", (b"t", 1))
    slow.stall()
    publisher = world.client(b"p")
    publish(world, publisher, 0, 7)
    world.turn()
    fill_log(world)
    retire_all(world)
    slow.drain()  # ends: nobody asks for a turn any more
    assert subscription(world, b"slow").state == ABREAST
    publish(world, publisher, 7, 9)
    world.turn()
    assert slow.bodies() == bodies(7, 9)


@pytest.mark.at_once(reason="a feed is late while no turn goes by, and turns bring the answers")
def test_feed_whose_next_messages_were_retired_meets_those_ahead_first(world):
    first = world.client(b"first", (b"t", 0))
    publisher = world.client(b"p")
    publish(world, publisher, 0, 5)  # no turn yet
    second = come_ahead(world)
    publish(world, publisher, 5, 9)
    filler = b"".join([mqtt.publish(b"other", b"x" * 50_000)] * 30)
    publisher.handler.on_data(filler, 0)
    publish(world, publisher, 9, 20)
    retire_all(world)
    world.turn()
    assert first.bodies() == second.bodies() == bodies(9, 20)


def test_feed_without_subscriptions_is_not_parked(world):
    peer = world.client(b"s", (b"t", 0))
    queue_ref = subscription(world, b"s").queue_ref
    assert len(world.broker._waiters.parked(queue_ref)) == 1
    peer.vanish()
    assert len(world.broker._waiters.parked(queue_ref)) == 0
    assert world.door.delivery._feeds == {}


def test_change_of_qos_of_one_that_is_behind_decides_whether_it_may_lose_messages(make_world):
    world = make_world(lag_count_max=5)
    slow = world.client(b"slow", (b"t", 0))
    publisher = world.client(b"p")
    slow.stall()
    publisher.send(mqtt.publish(b"t", b"0", qos=1, packet_id=1))
    slow.send(mqtt.subscribe(2, (b"t", 1)))
    for i in range(1, 30):
        publisher.send(mqtt.publish(b"t", b"%d" % i, qos=1, packet_id=1))
    slow.drain()
    assert slow.bodies() == bodies(0, 30)
    assert world.counts.dropped == {}


def test_disconnect_of_a_slow_one_counts_what_it_lost(world):
    slow = world.client(b"slow", (b"t", 0))
    slow.stall()
    world.client(b"p").send(*[mqtt.publish(b"t", b"x")] * 7)
    slow.vanish()
    assert world.counts.dropped == {"slow_subscriber": 7}


def test_lag_that_gets_less_is_taken_from_who_is_further_behind(make_world):
    world = make_world(lag_count_max=100)
    slow = world.client(b"slow", (b"t", 0))
    publisher = world.client(b"p")
    slow.stall()
    for i in range(30):
        publisher.send(mqtt.publish(b"t", b"%d" % i, qos=1, packet_id=1))
    assert world.counts.dropped == {}
    world.door.reload(GatewaySettings(mqtt=MqttSettings(lag_count_max=5)))
    publisher.send(mqtt.publish(b"t", b"30", qos=1, packet_id=1))
    assert world.counts.dropped == {"slow_subscriber": 31}
