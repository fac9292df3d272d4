"""However much one client sends at once, the others are served in between, and it is answered whole and in order."""

from __future__ import annotations

import pytest

from core.message import RETAINED_DISPATCHES, STEP_DISPATCHES
from gateway.mqtt.delivery import STARTED_AT_ONCE, TURN_RUNS_MAX
from gateway.runtime.chores import AT_ONCE
from tests.support import mqtt

COUNT = 300

FLOODS = {
    "SUBSCRIBE": lambda i: mqtt.subscribe(1 + i, (b"f/%d" % i, 1)),
    "SUBSCRIBE to one filter": lambda i: mqtt.subscribe(1 + i, (b"f", i % 2)),
    "UNSUBSCRIBE": lambda i: mqtt.unsubscribe(1 + i, b"f/%d" % i),
    "PUBLISH to new topics": lambda i: mqtt.publish(b"new/%d" % i, b"x"),
    "PUBLISH at QoS 1 to new topics": lambda i: mqtt.publish(b"new/%d" % i, b"x", qos=1, packet_id=1 + i),
    "retained PUBLISH": lambda i: mqtt.publish(b"kept/%d" % i, b"x", retain=True),
    "PINGREQ and PUBACK": lambda i: mqtt.PINGREQ + mqtt.puback(7),
}


@pytest.mark.here(reason="looks at the turn in which a message came, for each")
@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("kind", FLOODS)
def test_others_are_served_before_a_flood_is_through(world, kind, clean):
    receiver = world.client(b"receiver", (b"live", 0))
    sender = world.client(b"sender")
    flooder = world.client(b"flooder", clean=clean)
    flooder.transport.share = 10
    flooder.begin(*map(FLOODS[kind], range(COUNT)))
    turns = 0
    while flooder in world.waiting or world.is_awaiting(flooder):
        sender.begin(mqtt.publish(b"live", b"%d" % turns))
        world.step()
        assert receiver.bodies() == [b"%d" % turns]
        turns += 1
    assert turns >= COUNT // 20
    world.turn()
    flooder.send(mqtt.PINGREQ)
    assert flooder.take()[-1] == mqtt.PINGRESP


@pytest.mark.parametrize("clean", [True, False])
def test_answers_of_a_flood_come_whole_and_in_order(world, clean):
    flooder = world.client(b"flooder", clean=clean)
    flooder.transport.share = 7
    for packet, answer in (
        (lambda i: mqtt.subscribe(1 + i, (b"f/%d" % i, 1)), lambda i: mqtt.suback(1 + i, 1)),
        (lambda i: mqtt.publish(b"f/%d" % i, b"x", qos=1, packet_id=1 + i), lambda i: mqtt.puback(1 + i)),
        (lambda i: mqtt.unsubscribe(1 + i, b"f/%d" % i), lambda i: mqtt.unsuback(1 + i)),
    ):
        flooder.send(*map(packet, range(COUNT)))
        assert [one for one in flooder.take() if one[0] >> 4 != 3] == [answer(i) for i in range(COUNT)]


def test_a_run_of_pings_is_answered_by_one_write(world):
    peer = world.client()
    writes = []
    peer.transport.write = lambda data: writes.append(bytes(data))
    peer.send(mqtt.PINGREQ * 100_000)
    assert writes == [mqtt.PINGRESP * 100_000]


@pytest.mark.here(reason="looks at the order of queues")
@pytest.mark.parametrize("clean", [True, False])
def test_subscribe_of_thousands_of_filters_lets_others_be_served_and_is_answered_whole(make_world, clean):
    count = 2_000
    world = make_world(subscription_count_max=count)
    world.client(b"p").send(mqtt.publish(b"f/1999", b"kept", retain=True))
    receiver, sender = world.client(b"r", (b"live", 0)), world.client(b"s")
    peer = world.client(b"flooder", clean=clean)
    peer.transport.share = 20
    peer.begin(mqtt.subscribe(9, *((b"f/%d" % i, i % 3) for i in range(count))), mqtt.PINGREQ)
    sender.send(mqtt.publish(b"live", b"x"))
    while peer in world.waiting:
        assert not peer.take()
        world.step()
    assert receiver.bodies() == [b"x"]
    world.turn()
    packets = peer.take()
    assert sorted(packets[:2]) == sorted([mqtt.suback(9, *(i % 3 for i in range(count))), mqtt.PINGRESP])
    assert [mqtt.parse_publish(one).body for one in packets[2:]] == [b"kept"]
    sender.send(*(mqtt.publish(b"f/%d" % i, b"%d" % i) for i in range(count)))
    assert peer.bodies() == [b"%d" % i for i in range(count)]


def test_malformed_subscribe_of_many_filters_changes_nothing(world):
    peer = world.client(b"c", clean=False)
    peer.transport.share = 5
    body = mqtt.subscribe(9, *((b"f/%d" % i, 1) for i in range(50)), (b"a/#/b", 1))
    peer.send(body)
    assert peer.is_closed
    assert not world.door.sessions.find(b"c").subscriptions


def test_session_with_thousands_of_subscriptions_ends_in_steps_and_its_client_waits_for_that(make_world):
    count = 3 * AT_ONCE
    world = make_world()
    peer = world.client(b"c", *((b"f/%d" % i, 1) for i in range(count)))
    other = world.client(b"other", (b"f/+", 0))
    peer.transport.is_closed = True
    peer.handler.on_closed(world.now_ms)
    again = world.dial()
    again.begin(mqtt.connect(b"c"))
    assert again.take() == []
    world.client(b"p").send(mqtt.publish(b"f/0", b"x"))
    assert other.bodies() == [b"x"]
    world.turn()
    assert again.take() == [mqtt.connack(0)]
    assert len(world.door.sessions) == world.counts.sessions == 3
    assert world.broker.explain(b"f/%d" % (count - 1))[0].filters == {b"f/+": 1}


@pytest.mark.here(reason="looks at the order of queues")
@pytest.mark.parametrize("is_clean_again", [True, False])
def test_durable_session_with_thousands_of_subscriptions_is_taken_over_or_ended_whole(make_world, is_clean_again):
    count = 3 * AT_ONCE
    world = make_world()
    world.client(b"c", *((b"f/%d" % i, 1) for i in range(count)), clean=False)
    again = world.connect(b"c", clean=is_clean_again)
    assert again.take() == [mqtt.connack(0, session_present=not is_clean_again)]
    publisher = world.client(b"p")
    publisher.send(*(mqtt.publish(b"f/%d" % i, b"%d" % i, qos=1, packet_id=1) for i in range(count)))
    bodies = again.bodies()
    assert bodies == ([] if is_clean_again else [b"%d" % i for i in range(count)])
    again.vanish()
    world.store.close()
    world.open()
    assert len(world.door.sessions) == (not is_clean_again)


def test_session_that_comes_back_with_many_subscriptions_misses_nothing(make_world):
    count = STARTED_AT_ONCE + 2 * TURN_RUNS_MAX
    world = make_world()
    world.client(b"c", *((b"f/%d" % i, 1) for i in range(count)), clean=False).vanish()
    publisher = world.client(b"p")
    publisher.send(*(mqtt.publish(b"f/%d" % i, b"a%d" % i, qos=1, packet_id=1) for i in range(count)))
    back = world.dial()
    back.begin(mqtt.connect(b"c", clean=False))
    publisher.begin(*(mqtt.publish(b"f/%d" % i, b"b%d" % i, qos=1, packet_id=1) for i in range(count)))
    world.turn()
    assert sorted(back.bodies()) == sorted(b"%b%d" % (name, i) for i in range(count) for name in (b"a", b"b"))


def test_client_that_goes_in_the_midst_of_its_flood_leaves_nothing_behind(world):
    peer = world.client(b"c")
    peer.transport.share = 5
    peer.begin(mqtt.subscribe(1, *((b"f/%d" % i, 1) for i in range(100))))
    for _ in range(30):  # all are decoded, some are made
        peer.go_on()
    world.waiting.clear()
    peer.vanish()
    assert not world.broker.explain(b"f/0")
    assert len(world.door.sessions) == 0


def test_peer_whose_input_waits_here_is_not_silent(world):
    peer = world.client(b"c", keep_alive_s=10)
    peer.transport.share = 1
    peer.begin(*(mqtt.subscribe(1 + i, (b"f/%d" % i, 0)) for i in range(100)))
    for _ in range(20):
        world.now_ms += 14_000
        peer.handler.on_timer(world.now_ms)
        world.step()
    assert not peer.is_closed
    world.turn()
    assert len(peer.take()) == 100


@pytest.mark.parametrize(
    ("subscribers", "retain"), [(STEP_DISPATCHES // 100, False), (1, True)], ids=["wide", "retained"]
)
def test_dear_messages_are_published_a_few_at_a_time(make_world, subscribers, retain):
    world = make_world()
    for i in range(subscribers):
        world.broker.bind_filter(b"t", b"%%LMQ%%q%d" % i, hides_dollar=True)
    peer = world.client()
    peer.transport.share = 1
    count = 3 * STEP_DISPATCHES // RETAINED_DISPATCHES
    peer.begin(*(mqtt.publish(b"t", b"%d" % i, retain=retain, qos=1, packet_id=1 + i) for i in range(count)))
    assert 0 < world.store.message_count <= STEP_DISPATCHES // RETAINED_DISPATCHES + 1
    world.turn()
    assert world.store.message_count == count
    assert peer.take() == [mqtt.puback(1 + i) for i in range(count)]
    assert world.counts.messages_in == count
