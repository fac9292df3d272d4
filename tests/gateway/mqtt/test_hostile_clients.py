"""Clients that mean harm: what they can hold of memory and time is bounded, and nobody else notices."""

from __future__ import annotations

import itertools
import time
import tracemalloc

import pytest

from gateway.mqtt.terms import RECEIVE_MAX
from tests.support import mqtt
from tests.support.mqtt import connect, publish, publish_5, subscribe, subscribe_5
from tests.support.mqtt_5 import P, encoded, enter, got

ALIASES = 32  # `mqtt.topic_alias_max` where nothing is said
CPU_S_MAX = 2  # for what takes some ten milliseconds


def assert_others_are_served(world):
    watcher = world.client(b"watcher", (b"fine", 0))
    world.client(b"sender").send(publish(b"fine", b"x"))
    assert watcher.bodies() == [b"x"]
    watcher.vanish()


@pytest.fixture
def engine_maker():
    return None  # one engine is enough: nothing here waits for an answer


@pytest.fixture(autouse=True)
def quick():
    """Fail what takes much longer than it should."""
    before = time.process_time()
    yield
    assert time.process_time() - before < 10 * CPU_S_MAX


# Slow and silent ones


def test_connect_that_comes_a_byte_at_a_time_is_not_waited_for(world):
    peer = world.dial()
    for byte in connect(b"slow" * 5):
        if not peer.is_closed:
            peer.write(bytes((byte,)))
            world.now_ms += 1_000
            peer.handler.on_timer(world.now_ms)
    assert peer.is_closed
    assert world.counts.refused == {"connect_timeout": 1}


@pytest.mark.parametrize(
    "said", [b"PROXY TCP4 192.0.2.7 192.0.2.99 4 5\r\n", b"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c"]
)
def test_proxy_header_where_no_proxy_is_said_to_be_is_refused_at_once_by_what_it_is(world, said, caplog):
    caplog.set_level("INFO")
    peer = world.dial().write(said)
    assert peer.is_closed
    assert peer.take() == []
    assert "the first packet is no CONNECT [MQTT-3.1.0-1], but a PROXY header" in caplog.text


def test_client_that_is_heard_no_more_is_closed_and_its_will_published(world):
    watcher = world.client(b"w", (b"gone", 0))
    peer = world.client(b"c", keep_alive_s=10, will=(b"gone", b"x", 0, False))
    world.now_ms += 15_000
    peer.handler.on_timer(world.now_ms)
    world.turn()
    assert peer.is_closed
    assert watcher.bodies() == [b"x"]


def test_flood_of_connections_that_say_nothing_is_closed_in_time(world):
    tracemalloc.start()
    peers = [world.dial() for _ in range(1_000)]
    for peer in peers:
        peer.handler.on_timer(world.now_ms)
        peer.write(b"\x10\xff\xff\x03")
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert held < 8 * 1024 * len(peers)
    assert_others_are_served(world)
    world.now_ms += world.settings.connect_timeout_ms + 1
    for peer in peers:
        peer.handler.on_timer(world.now_ms)
    assert all(peer.is_closed for peer in peers)
    for peer in peers:
        peer.handler.on_closed(world.now_ms)
    assert not world.door.strangers


# Topics and filters


@pytest.mark.parametrize("topic", [b"x" * 65_535, b"/" * 65_535, b"a/" * 32_767, b"/" * 200, b"x" * 16_385])
def test_topic_without_end_costs_its_sender_the_connection(world, topic):
    for packet in (
        publish_5(topic, b""),
        subscribe_5(1, (topic, 0)),
        subscribe_5(1, (b"$share/g/" + topic[:65_526], 0)),
    ):
        peer = enter(world, b"c").send(packet)
        assert peer.is_closed
        assert peer.take()[-1][2] in {0x8F, 0x90}
    assert_others_are_served(world)


def test_connect_of_a_hundred_thousand_bytes_of_user_properties_is_refused(world):
    block = encoded(*[(P.USER, (b"k" * 60_000, b"v" * 60_000))])
    peer = world.dial().send(mqtt.connect_5(properties=block))
    (answer,) = peer.take()
    assert (answer[0], answer[3]) == (0x20, 0x81)


def test_filters_of_all_wildcards_cost_no_more_than_there_are_of_them(make_world):
    world = make_world(subscription_count_max=2_000)
    peer = world.client(b"c")
    names = [b"/".join(levels) + b"/x" for levels in itertools.product((b"+", b"a"), repeat=9)]
    for start in range(0, len(names), 256):
        peer.send(subscribe(1, *[(name, 0) for name in names[start : start + 256]]))
    deep = [b"/".join([b"+"] * depth) + b"/#" for depth in range(2, 190, 3)]
    peer.send(subscribe(2, *[(name, 0) for name in deep]))
    peer.take()
    begun = time.process_time()
    sender = world.client(b"p")
    for i in range(20):
        sender.send(publish(b"/".join([b"a"] * 9) + b"/y%d" % i, b""))
    assert time.process_time() - begun < CPU_S_MAX
    assert peer.take_deliveries()


# Numbers


def test_aliases_that_are_bound_anew_again_and_again_stay_as_few(world):
    watcher = world.client(b"w", (b"#", 0))
    peer = enter(world, b"c")
    for start in range(0, 4_000, 500):
        peer.send(
            *[publish_5(b"t/%d" % i, b"", encoded((P.TOPIC_ALIAS, i % ALIASES + 1))) for i in range(start, start + 500)]
        )
    peer.send(*[publish_5(b"", b"", encoded((P.TOPIC_ALIAS, i + 1))) for i in range(ALIASES)])
    topics = [one.topic for one in watcher.take_deliveries()][-ALIASES:]
    assert sorted(topics) == sorted(b"t/%d" % i for i in range(4_000 - ALIASES, 4_000))
    assert not peer.is_closed


def test_client_that_releases_nothing_uses_up_what_it_may_have(world):
    peer = enter(world, b"c", (P.SESSION_EXPIRY, 100))
    for start in range(0, RECEIVE_MAX, 512):
        peer.send(*[publish_5(b"t", b"", qos=2, packet_id=i + 1) for i in range(start, start + 512)])
    session = peer.handler.session
    assert len(session.taken) == RECEIVE_MAX
    peer.take()
    peer.send(publish_5(b"t", b"", qos=2, packet_id=60_000))
    assert peer.take()[-1][2] == 0x93
    assert len(session.taken) == RECEIVE_MAX


def test_client_of_an_older_version_that_releases_nothing_has_as_many_as_there_are_identifiers(world):
    peer = world.client(b"c")
    peer.handler.session.taken = set(range(1, 64_000))  # as if it had sent those
    peer.send(*[publish(b"t", b"", qos=2, packet_id=i) for i in range(64_000, 65_536)])
    peer.send(publish(b"t", b"", qos=2, packet_id=1, dup=True))
    assert len(peer.handler.session.taken) == 65_535
    assert not peer.is_closed


@pytest.mark.slow
def test_client_that_acknowledges_none_of_a_hundred_thousand_messages_is_sent_what_may_be_in_flight(make_world):
    world = make_world(is_sync=False)
    peer = enter(world, b"c", (P.SESSION_EXPIRY, 1_000), filters=[(b"t", 1)])
    sender = world.client(b"p")
    run = b"".join(publish(b"t", b"%d" % i, qos=1, packet_id=i + 1) for i in range(5_000))
    for _ in range(20):
        sender.send(run)
        sender.transport.sent.clear()
    window = peer.handler.session.window
    assert window.head - window.tail == world.settings.inflight_max
    assert len(got(peer)) == world.settings.inflight_max
    assert_others_are_served(world)
    peer.send(mqtt.puback(1))
    assert len(got(peer)) == 1


def test_client_that_reads_nothing_is_sent_no_more_than_its_output_holds(world):
    peer = world.client(b"c", (b"t", 0))
    peer.stall()
    sender = world.client(b"p")
    for _ in range(10):
        sender.send(*[publish(b"t", b"x" * 1_000) for _ in range(100)])
    assert len(peer.transport.sent) < 256 * 1024
    assert_others_are_served(world)
