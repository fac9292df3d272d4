"""Clients of MQTT 5 at the door, through all its layers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from gateway.mqtt.properties import OF_PUBLISH, Property, decode_properties, encode_properties
from gateway.mqtt.terms import RECEIVE_MAX
from tests.support import mqtt
from tests.support.mqtt import (
    connect_5,
    disconnect_5,
    puback,
    pubcomp,
    publish,
    publish_5,
    pubrec,
    pubrel,
    suback_5,
    subscribe_5,
    unsubscribe_5,
)
from tests.support.mqtt_door import STORE, World

P = Property
OF_CONNACK = frozenset(P)


def encoded(*items):
    return encode_properties(items)


def connack_of(data):
    """Return session present, code and properties of a CONNACK."""
    assert data[0] == 0x20
    found, end = decode_properties(data, 4, OF_CONNACK)
    assert end == len(data)
    return data[2], data[3], found


def enter(world, client_id=b"c", *items, filters=(), **options):
    """Return a client of version 5 that is let in, and subscribed, its answers taken."""
    peer = world.dial().send(connect_5(client_id, properties=encoded(*items), **options))
    (data,) = [one for one in peer.take() if one[0] == 0x20]
    assert data[3] == 0
    if filters:
        peer.send(subscribe_5(1, *filters))
        peer.take()
    return peer


class Got:
    """A PUBLISH that a client of version 5 was sent."""

    def __init__(self, data):
        pos = 1
        while data[pos] >= 0x80:
            pos += 1
        pos += 1
        self.qos, self.retain, self.dup = (data[0] >> 1) & 3, data[0] & 1, data[0] >> 3 & 1
        size = int.from_bytes(data[pos : pos + 2], "big")
        self.topic = data[pos + 2 : pos + 2 + size]
        pos += 2 + size
        self.packet_id = 0
        if self.qos:
            self.packet_id = int.from_bytes(data[pos : pos + 2], "big")
            pos += 2
        self.properties, pos = decode_properties(data, pos, OF_PUBLISH | {P.SUBSCRIPTION_ID})
        self.body = data[pos:]


def got(peer):
    return [Got(one) for one in peer.take() if one[0] >> 4 == 3]


# CONNECT


def test_client_is_told_what_holds(world):
    peer = world.dial().send(connect_5(b"c"))
    present, code, found = connack_of(peer.take()[0])
    assert (present, code) == (0, 0)
    assert found.numbers == {
        P.RECEIVE_MAX: RECEIVE_MAX,
        P.TOPIC_ALIAS_MAX: 32,
        P.PACKET_BYTES_MAX: world.settings.packet_bytes_max,
    }


def test_client_without_a_name_is_given_one(world):  # MQTT-3.1.3-6, MQTT-3.1.3-7
    for clean in (True, False):
        peer = world.dial().send(connect_5(b"", clean=clean))
        _, code, found = connack_of(peer.take()[0])
        assert code == 0
        assert found.texts[P.ASSIGNED_CLIENT_ID].startswith(b"lmq-")


def test_keep_alive_is_the_servers_where_that_is_shorter(make_world):  # MQTT-3.1.2-21
    world = make_world(keep_alive_max_s=10)
    for asked, told in ((60, 10), (0, 10), (5, -1)):
        peer = world.dial().send(connect_5(b"c", keep_alive_s=asked))
        assert connack_of(peer.take()[0])[2].number(P.SERVER_KEEP_ALIVE, -1) == told
    world.now_ms += 15_001
    for one in world.peers:
        one.handler.on_timer(world.now_ms)
    (answer,) = peer.take()
    assert (answer[0], answer[2]) == (0xE0, 0x8D)


def test_refusals_have_their_reasons(make_world):
    world = make_world(auth={"mqtt_anonymous": False})
    peer = world.dial().send(connect_5(b"c"))
    assert connack_of(peer.take()[0])[1] == 0x87
    assert peer.is_closed
    peer = world.dial().send(connect_5(b"x" * 2_000))
    assert connack_of(peer.take()[0])[1] == 0x85
    peer = world.dial().send(connect_5(b"c", properties=encoded((P.AUTH_METHOD, b"SCRAM"))))
    assert connack_of(peer.take()[0])[1] == 0x8C  # MQTT-4.12.0-1


# Sessions


def test_session_ends_with_its_connection_where_no_expiry_is_given(world):
    enter(world, filters=[(b"t", 1)], clean=False).send(disconnect_5())
    peer = world.dial().send(connect_5(clean=False))
    assert connack_of(peer.take()[0])[0] == 0


def test_session_is_kept_for_its_expiry(world):  # MQTT-3.1.2-23
    enter(world, b"c", (P.SESSION_EXPIRY, 100), filters=[(b"t", 1)]).vanish()
    world.client(b"p").send(publish(b"t", b"x", qos=1, packet_id=1))
    world.now_ms += 99_000
    peer = world.dial().send(connect_5(clean=False, properties=encoded((P.SESSION_EXPIRY, 100))))
    packets = peer.take()
    assert connack_of(packets[0])[0] == 1
    assert [Got(one).body for one in packets[1:]] == [b"x"]
    peer.vanish()
    world.now_ms += 100_000  # nobody has swept yet
    peer = world.dial().send(connect_5(clean=False))
    assert connack_of(peer.take()[0])[0] == 0


def test_session_is_swept_after_its_expiry_also_over_a_restart(world):
    enter(world, b"c", (P.SESSION_EXPIRY, 100), filters=[(b"t", 1)]).vanish()
    world.close()
    world.open()
    world.now_ms += 99_000
    world.door.tend(world.now_ms)
    assert len(world.door.sessions) == 1
    world.now_ms += 1_000
    world.door.tend(world.now_ms)
    assert len(world.door.sessions) == 0


def test_clean_start_ends_the_session_before_and_may_begin_one_that_stays(world):  # MQTT-3.1.2-4
    enter(world, b"c", (P.SESSION_EXPIRY, 100), filters=[(b"t", 1)]).vanish()
    peer = world.dial().send(connect_5(clean=True, properties=encoded((P.SESSION_EXPIRY, 100))))
    assert connack_of(peer.take()[0])[0] == 0
    peer.vanish()
    assert connack_of(world.dial().send(connect_5(clean=False)).take()[0])[0] == 1


def test_disconnect_changes_the_expiry(world):
    enter(world, b"c", (P.SESSION_EXPIRY, 100)).send(disconnect_5(0, encoded((P.SESSION_EXPIRY, 0))))
    assert len(world.door.sessions) == 0
    peer = enter(world).send(disconnect_5(0, encoded((P.SESSION_EXPIRY, 5))))
    (answer,) = peer.take()
    assert answer[2] == 0x82


def test_expiry_is_bounded_by_the_settings(make_world):
    world = make_world(session_expiry_s=50)
    peer = world.dial().send(connect_5(properties=encoded((P.SESSION_EXPIRY, 2**32 - 1))))
    assert connack_of(peer.take()[0])[2].number(P.SESSION_EXPIRY, -1) == 50


def test_versions_resume_each_others_sessions(world):
    world.client(b"c", (b"t", 2), clean=False).vanish()
    block = encoded((P.USER, (b"k", b"v")))
    enter(world, b"p").send(publish_5(b"t", b"x", block, qos=2, packet_id=1))
    peer = world.dial().send(connect_5(clean=False, properties=encoded((P.SESSION_EXPIRY, 100))))
    packets = peer.take()
    assert connack_of(packets[0])[0] == 1
    assert [(Got(one).qos, Got(one).properties.users) for one in packets[1:]] == [(2, ((b"k", b"v"),))]
    peer.vanish()
    again = world.connect(b"c", clean=False)
    assert [(d.body, d.qos, d.dup) for d in again.take_deliveries()] == [(b"x", 2, True)]


def test_connection_that_is_taken_over_is_told_so(world):  # MQTT-3.1.4-3
    first = enter(world)
    enter(world)
    assert first.take() == [disconnect_5(0x8E)]
    assert first.is_closed


def test_connections_are_told_that_the_gateway_stops(world):
    peer = enter(world)
    world.door.stop(world.now_ms)
    assert peer.take() == [disconnect_5(0x8B)]


# PUBLISH and its properties


def test_properties_go_from_publisher_to_subscriber(world):  # MQTT-3.3.2-17, MQTT-3.3.2-18
    subscriber = enter(world, b"s", filters=[(b"t", 2)])
    old = world.client(b"o", (b"t", 0))
    items = [
        (P.PAYLOAD_FORMAT, 1),
        (P.MESSAGE_EXPIRY, 100),
        (P.CONTENT_TYPE, b"text/plain"),
        (P.RESPONSE_TOPIC, b"answers/1"),
        (P.CORRELATION, b"\x00\xff"),
        (P.USER, (b"b", b"1")),
        (P.USER, (b"a", b"2")),
        (P.USER, (b"b", b"3")),
        (P.USER, (b"", b"")),
    ]
    publisher = enter(world, b"p")
    for qos in range(3):
        publisher.send(publish_5(b"t", b"x%d" % qos, encoded(*items), qos=qos, packet_id=5))
    assert publisher.take() == [puback(5), pubrec(5)]
    expected, _ = decode_properties(encoded(*items), 0, OF_PUBLISH)
    messages = got(subscriber)
    assert [(one.body, one.qos) for one in messages] == [(b"x0", 0), (b"x1", 1), (b"x2", 2)]
    for one in messages:
        assert one.properties.texts == expected.texts
        assert one.properties.numbers == expected.numbers
        assert one.properties.users == expected.users
    assert old.bodies() == [b"x0", b"x1", b"x2"]


def test_messages_of_older_versions_have_no_properties(world):
    subscriber = enter(world, b"s", filters=[(b"t", 1)])
    world.client(b"p").send(publish(b"t", b"x", qos=1, packet_id=1))
    (one,) = got(subscriber)
    assert (one.body, one.qos, one.properties.users) == (b"x", 1, ())


def test_expiry_is_counted_down_and_what_is_over_is_not_sent(world):  # MQTT-3.3.2-5, MQTT-3.3.2-6
    enter(world, b"s", (P.SESSION_EXPIRY, 1_000), filters=[(b"t", 1)]).vanish()
    old = world.client(b"o", (b"t", 1), clean=False)
    old.vanish()
    publisher = enter(world, b"p")
    publisher.send(publish_5(b"t", b"short", encoded((P.MESSAGE_EXPIRY, 5)), qos=1, packet_id=1))
    publisher.send(publish_5(b"t", b"long", encoded((P.MESSAGE_EXPIRY, 50)), qos=1, packet_id=2))
    world.now_ms += 7_500
    peer = world.dial().send(connect_5(b"s", clean=False))
    messages = got(peer)
    assert [(one.body, one.properties.number(P.MESSAGE_EXPIRY, -1)) for one in messages] == [(b"long", 43)]
    assert world.connect(b"o", clean=False).bodies() == [b"long"]
    assert world.counts.dropped == {"expired": 2}


def test_retained_message_expires(world):
    publisher = enter(world, b"p")
    publisher.send(publish_5(b"t", b"x", encoded((P.MESSAGE_EXPIRY, 5)), retain=True))
    world.now_ms += 2_000
    subscriber = enter(world, b"s")
    (one,) = got(subscriber.send(subscribe_5(1, (b"t", 0))))
    assert (one.body, one.retain, one.properties.number(P.MESSAGE_EXPIRY, -1)) == (b"x", 1, 3)
    world.now_ms += 3_000
    assert got(subscriber.send(subscribe_5(1, (b"t", 0)))) == []


def test_topic_alias_stands_for_a_topic(world):  # MQTT-3.3.2-8 to MQTT-3.3.2-12
    subscriber = world.client(b"s", (b"#", 0))
    alias = encoded((P.TOPIC_ALIAS, 7))
    publisher = enter(world, b"p")
    publisher.send(
        publish_5(b"a", b"1", alias),
        publish_5(b"", b"2", alias),
        publish_5(b"b", b"3", alias),
        publish_5(b"", b"4", alias, qos=1, packet_id=9),
    )
    assert publisher.take() == [puback(9)]
    assert [(d.topic, d.body) for d in subscriber.take_deliveries()] == [
        (b"a", b"1"),
        (b"a", b"2"),
        (b"b", b"3"),
        (b"b", b"4"),
    ]


def test_aliases_mean_the_same_where_a_run_is_cut(world):
    subscriber = world.client(b"s", (b"#", 0))
    publisher = enter(world, b"p")
    publisher.transport.share = 1
    first, second = encoded((P.TOPIC_ALIAS, 1)), encoded((P.TOPIC_ALIAS, 2))
    publisher.send(
        *[publish_5(b"t%d" % i, b"new", second) for i in range(3)],
        publish_5(b"a", b"1", first),
        publish_5(b"b", b"2", first),
        publish_5(b"", b"3", first),
    )
    got_pairs = [(d.topic, d.body) for d in subscriber.take_deliveries()]
    assert got_pairs[3:] == [(b"a", b"1"), (b"b", b"2"), (b"b", b"3")]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (publish_5(b"", b"x"), 0x82),
        (publish_5(b"", b"x", encode_properties([(P.TOPIC_ALIAS, 3)])), 0x82),
        (publish_5(b"t", b"x", encode_properties([(P.TOPIC_ALIAS, 33)])), 0x94),
        (publish_5(b"t", b"x", encode_properties([(P.TOPIC_ALIAS, 0)])), 0x94),
        (publish_5(b"t", b"x", encode_properties([(P.SUBSCRIPTION_ID, 3)])), 0x82),
        (publish_5(b"t", b"x", encode_properties([(P.RESPONSE_TOPIC, b"a/#")])), 0x82),
        (publish_5(b"a/#", b"x"), 0x90),
        (publish_5(b"\xff", b"x"), 0x81),
        (mqtt.packet(0x36, b"\0\1t\0\1\0"), 0x81),
        (subscribe_5(1, (b"a/#/b", 0)), 0x8F),
        (subscribe_5(1, (b"a", 0x30)), 0x82),
        (subscribe_5(1, (b"$share/g", 1)), 0x8F),
        (subscribe_5(1, (b"$share/+/a", 1)), 0x8F),
        (subscribe_5(1, (b"$share//a", 1)), 0x8F),
        (subscribe_5(1, (b"$share/g/a", 5)), 0x82),
        (subscribe_5(1, (b"a", 3)), 0x81),
        (mqtt.packet(0xF0, b"\x18" + encode_properties([(P.AUTH_METHOD, b"x")])), 0x82),
        (connect_5(), 0x82),
        (mqtt.packet(0x40, b"\0\1\0\2\x11\0"), 0x81),
        (b"\x30\xff\xff\xff\x7f", 0x95),
    ],
)
def test_each_bad_packet_is_answered_with_its_reason(world, data, code):
    peer = enter(world).send(data)
    (answer,) = peer.take()
    assert (answer[0], answer[2]) == (0xE0, code)
    found, _ = decode_properties(answer, 3, frozenset({P.REASON}))
    assert found.texts[P.REASON]
    assert peer.is_closed


def test_release_of_nothing_is_answered_with_its_reason(world):
    assert enter(world).send(pubrel(9)).take() == [b"\x70\x03\0\x09\x92"]
    subscriber = enter(world, b"s", filters=[(b"t", 2)])
    assert subscriber.send(pubrec(9)).take() == [b"\x62\x03\0\x09\x92"]


def test_client_that_fails_to_take_a_message_is_sent_it_no_more(world):
    subscriber = enter(world, b"s", filters=[(b"t", 2)])
    enter(world, b"p").send(publish_5(b"t", b"x", qos=2, packet_id=1))
    (one,) = got(subscriber)
    assert subscriber.send(b"\x50\x04" + one.packet_id.to_bytes(2, "big") + b"\x97\0").take() == []
    assert subscriber.send(pubcomp(one.packet_id)).take() == []


# Flow


def test_client_is_sent_no_more_than_it_takes_at_once(world):  # MQTT-3.3.4-9
    subscriber = enter(world, b"s", (P.RECEIVE_MAX, 2), (P.SESSION_EXPIRY, 100), filters=[(b"t", 1)])
    enter(world, b"p").send(*[publish_5(b"t", b"%d" % i, qos=1, packet_id=i + 1) for i in range(5)])
    first = got(subscriber)
    assert [one.body for one in first] == [b"0", b"1"]
    subscriber.send(puback(first[0].packet_id))
    assert [one.body for one in got(subscriber)] == [b"2"]
    subscriber.vanish()
    again = world.dial().send(connect_5(b"s", clean=False, properties=encoded((P.RECEIVE_MAX, 1))))
    (one,) = got(again)
    assert (one.body, one.dup) == (b"1", 1)
    (one,) = got(again.send(puback(one.packet_id)))
    assert (one.body, one.dup) == (b"2", 1)


def test_client_that_sends_more_at_once_than_it_may_is_told_so(world):  # MQTT-3.3.4-7
    world.flushes_by_itself = False
    peer = enter(world)
    for start in range(0, RECEIVE_MAX, 512):
        peer.send(*[publish_5(b"t", b"", qos=1, packet_id=i + 1) for i in range(start, start + 512)])
    assert not peer.is_closed
    peer.send(*[publish_5(b"t", b"", qos=1, packet_id=i + 5_000) for i in range(8)])
    (answer,) = peer.take()
    assert answer[2] == 0x93
    assert peer.is_closed


def test_message_too_large_for_one_costs_nobody_else_anything(world):  # MQTT-3.1.2-24, MQTT-3.1.2-25
    small = enter(world, b"s", (P.PACKET_BYTES_MAX, 60), filters=[(b"t", 1)])
    large = enter(world, b"l", filters=[(b"t", 1)])
    publisher = enter(world, b"p")
    publisher.send(*[publish_5(b"t", b"x" * size, qos=1, packet_id=size) for size in (10, 60, 20)])
    assert [len(one.body) for one in got(small)] == [10, 20]
    assert [len(one.body) for one in got(large)] == [10, 60, 20]
    assert world.counts.dropped == {"too_large_for_subscriber": 1}


# SUBSCRIBE


def test_subscription_identifier_comes_with_each_message(world):  # MQTT-3.3.4-3
    subscriber = enter(world, b"s", (P.SESSION_EXPIRY, 100))
    subscriber.send(subscribe_5(1, (b"t", 1), properties=encoded((P.SUBSCRIPTION_ID, 300))))
    subscriber.send(subscribe_5(2, (b"#", 1), properties=encoded((P.SUBSCRIPTION_ID, 7))))
    subscriber.take()
    publisher = world.client(b"p").send(publish(b"t", b"x"))
    assert sorted(one.properties.number(P.SUBSCRIPTION_ID, 0) for one in got(subscriber)) == [7, 300]
    subscriber.vanish()
    world.close()
    world.open()
    world.client(b"p").send(publish(b"t", b"y", qos=1, packet_id=1))
    peer = world.dial().send(connect_5(b"s", clean=False))
    assert sorted(one.properties.number(P.SUBSCRIPTION_ID, 0) for one in got(peer) if one.body == b"y") == [7, 300]
    del publisher


def test_own_messages_do_not_come_back_where_they_are_not_wanted(world):  # MQTT-3.8.3-3
    peer = enter(world, b"c", filters=[(b"t", 0x04 | 1)])
    other = enter(world, b"o", filters=[(b"t", 1)])
    peer.send(publish_5(b"t", b"mine"))
    other.send(publish_5(b"t", b"others"))
    assert [one.body for one in got(peer)] == [b"others"]
    assert [one.body for one in got(other)] == [b"mine", b"others"]


def test_retain_flag_is_kept_where_that_is_wanted(world):  # MQTT-3.3.1-12, MQTT-3.3.1-13
    keeps = enter(world, b"k", filters=[(b"t", 0x08 | 1)])
    plain = enter(world, b"o", filters=[(b"t", 1)])
    enter(world, b"p").send(publish_5(b"t", b"r", retain=True), publish_5(b"t", b"n"))
    assert [(one.body, one.retain) for one in got(keeps)] == [(b"r", 1), (b"n", 0)]
    assert [(one.body, one.retain) for one in got(plain)] == [(b"r", 0), (b"n", 0)]


@pytest.mark.parametrize(("handling", "first", "second"), [(0x00, 1, 1), (0x10, 1, 0), (0x20, 0, 0)])
@pytest.mark.parametrize("expiry_s", [0, 100])
def test_retained_messages_come_as_the_subscription_says(world, handling, first, second, expiry_s):
    enter(world, b"p").send(publish_5(b"t", b"r", retain=True, qos=1, packet_id=1))  # MQTT-3.3.1-9 to MQTT-3.3.1-11
    peer = enter(world, b"c", (P.SESSION_EXPIRY, expiry_s))
    counts = []
    for _ in range(2):
        messages = got(peer.send(subscribe_5(1, (b"t", handling | 1))))
        peer.send(*[puback(one.packet_id) for one in messages])
        counts.append(len(messages))
    assert counts == [first, second]


def test_filters_are_answered_with_their_reasons(make_world):
    world = make_world(subscription_count_max=2)
    peer = enter(world)
    peer.send(subscribe_5(1, (b"a", 2), (b"b", 0), (b"c", 1)))
    assert peer.take() == [suback_5(1, 2, 0, 0x97)]
    peer.send(unsubscribe_5(2, b"a", b"z"))
    assert peer.take() == [mqtt.packet(0xB0, b"\0\2\0\x00\x11")]


def test_subscription_changes_its_options_and_keeps_its_place(world):  # MQTT-3.8.4-3
    peer = enter(world, b"c", filters=[(b"t", 1)])
    peer.send(subscribe_5(2, (b"t", 0x04 | 1)))
    peer.take()
    peer.send(publish_5(b"t", b"mine"))
    world.client(b"p").send(publish(b"t", b"others"))
    assert [one.body for one in got(peer)] == [b"others"]
    peer.send(subscribe_5(2, (b"t", 0)))
    peer.take()
    peer.send(publish_5(b"t", b"mine"))
    assert [one.body for one in got(peer)] == [b"mine"]


# Wills


WILL = (b"gone", b"w", 1, False)


def test_will_has_properties(world):
    watcher = enter(world, b"w", filters=[(b"gone", 1)])
    will = encoded((P.CONTENT_TYPE, b"x/y"), (P.USER, (b"k", b"v")), (P.MESSAGE_EXPIRY, 9))
    enter(world, b"c", will=(*WILL, will)).vanish()
    (one,) = got(watcher)
    assert (one.body, one.qos, one.properties.users) == (b"w", 1, ((b"k", b"v"),))
    assert (one.properties.texts[P.CONTENT_TYPE], one.properties.number(P.MESSAGE_EXPIRY, 0)) == (b"x/y", 9)


def test_will_waits_for_its_delay(world):  # MQTT-3.1.3-9
    watcher = enter(world, b"w", filters=[(b"gone", 0)])
    will = (*WILL, encoded((P.WILL_DELAY, 10)))
    enter(world, b"c", (P.SESSION_EXPIRY, 100), will=will).vanish()
    world.now_ms += 9_000
    world.door.wills.publish_due(world.now_ms)
    assert got(watcher) == []
    enter(world, b"c", (P.SESSION_EXPIRY, 100), will=will, clean=False).vanish()
    world.now_ms += 9_000
    world.door.wills.publish_due(world.now_ms)
    assert got(watcher) == []
    world.now_ms += 1_000
    world.door.wills.publish_due(world.now_ms)
    world.turn()
    assert [one.body for one in got(watcher)] == [b"w"]


def test_will_does_not_wait_longer_than_the_session(world):
    watcher = enter(world, b"w", filters=[(b"gone", 0)])
    will = (*WILL, encoded((P.WILL_DELAY, 10)))
    enter(world, b"c", will=will).vanish()
    assert len(got(watcher)) == 1
    enter(world, b"c", (P.SESSION_EXPIRY, 100), will=will).vanish()
    enter(world, b"c")  # a clean start ends the session
    assert len(got(watcher)) == 1


def test_will_that_waits_outlives_a_kill(world):
    will = (*WILL, encoded((P.WILL_DELAY, 10), (P.USER, (b"k", b"v"))))
    enter(world, b"c", (P.SESSION_EXPIRY, 100), will=will)
    world.close()
    world.open()
    watcher = enter(world, b"w", filters=[(b"gone", 0)])
    world.now_ms += 10_000
    world.door.wills.publish_due(world.now_ms)
    world.turn()
    assert [one.properties.users for one in got(watcher)] == [((b"k", b"v"),)]


def test_client_may_ask_for_its_will_when_it_leaves(world):
    watcher = enter(world, b"w", filters=[(b"gone", 0)])
    enter(world, b"c", will=(*WILL, b"\0")).send(disconnect_5(0))
    assert got(watcher) == []
    enter(world, b"c", will=(*WILL, b"\0")).send(disconnect_5(4))
    assert len(got(watcher)) == 1


# A disk that is low on room


def test_publishers_are_refused_while_the_room_is_low_and_their_pings_answered(make_world):
    world = make_world(store_settings=STORE.model_copy(update={"disk_free_bytes_min": 1_000}))
    subscriber = world.client(b"s", (b"t", 0))
    peer = enter(world).send(publish_5(b"t", b"0", qos=2, packet_id=9))
    world.set_free(0)
    peer.send(
        publish_5(b"t", b"0", qos=2, packet_id=9, dup=True),
        publish_5(b"t", b"1", qos=1, packet_id=1),
        publish_5(b"t", b"2", qos=2, packet_id=2),
        publish_5(b"t", b"3"),
        mqtt.PINGREQ,
    )
    packets = peer.take()
    packets.remove(mqtt.PINGRESP)
    assert packets == [pubrec(9), pubrec(9), b"\x40\x03\0\1\x97", b"\x50\x03\0\2\x97"]
    world.set_free(10_000)
    peer.send(publish_5(b"t", b"4", qos=1, packet_id=1))
    assert peer.take() == [puback(1)]
    assert subscriber.bodies() == [b"0", b"4"]


# Anything


@settings(max_examples=150, deadline=None)
@given(data=st.binary(max_size=60), first=st.sampled_from([0x30, 0x32, 0x34, 0x82, 0xA2, 0x40, 0x50, 0x62, 0x70, 0xE0]))
def test_any_packet_is_taken_or_refused_and_nobody_else_notices(tmp_path_factory, data, first):
    world = _shared_world(tmp_path_factory)
    watcher = enter(world, b"w", filters=[(b"fine", 0)])
    peer = enter(world, b"fuzz").send(mqtt.packet(first, data))
    if peer.is_closed and first != 0xE0:
        answers = peer.take()
        assert answers[-1][0] == 0xE0
        assert answers[-1][2] >= 0x81
    world.client(b"p").send(publish(b"fine", b"x"))
    assert [one.body for one in got(watcher)] == [b"x"]
    for one in list(world.peers):
        if not one.is_closed:
            one.vanish()
    world.peers.clear()


_WORLDS = []


def _shared_world(tmp_path_factory):
    if not _WORLDS:
        _WORLDS.append(World(tmp_path_factory.mktemp("fuzz")))
    return _WORLDS[0]
