"""What clients of MQTT 5 send and get at the door, through all its layers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from gateway.mqtt.properties import OF_PUBLISH, decode_properties, encode_properties
from gateway.mqtt.terms import RECEIVE_MAX
from tests.support import mqtt
from tests.support.mqtt import (
    connect_5,
    puback,
    pubcomp,
    publish,
    publish_5,
    pubrec,
    pubrel,
    refusal_5,
    suback_5,
    subscribe_5,
    unsubscribe_5,
)
from tests.support.mqtt_5 import P, connack_of, encoded, enter, got
from tests.support.mqtt_door import STORE, World

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


# Requests of the CONNECT


@pytest.mark.parametrize(("items", "reason"), [((), b"quota exceeded: b"), (((P.REQUEST_PROBLEM, 0),), b"")])
def test_reasons_in_words_come_where_they_are_wanted(make_world, items, reason):  # MQTT-3.1.2-29
    world = make_world(subscription_count_max=1)
    peer = enter(world, b"c", *items)
    assert peer.send(subscribe_5(1, (b"a", 0), (b"b", 0))).take() == [suback_5(1, 0, 0x97, reason=reason)]


def test_reason_in_words_makes_no_answer_too_large(make_world):  # MQTT-3.9.2-1
    world = make_world(subscription_count_max=1)
    peer = enter(world, b"c", (P.PACKET_BYTES_MAX, 40))
    peer.send(subscribe_5(1, (b"a", 0), (b"b" * 40, 0)))
    assert peer.take() == [suback_5(1, 0, 0x97)]


RETAINED_WORDS = b"quota exceeded: too many retained messages, or too long a one"


@pytest.mark.parametrize(
    ("items", "reason"),
    [
        ((), RETAINED_WORDS),
        (((P.REQUEST_PROBLEM, 0),), b""),
        (((P.PACKET_BYTES_MAX, 9 + len(RETAINED_WORDS)),), RETAINED_WORDS),
        (((P.PACKET_BYTES_MAX, 8 + len(RETAINED_WORDS)),), b""),
    ],
)
def test_refused_message_is_answered_in_words_where_they_are_wanted_and_have_room(make_world, items, reason):
    world = make_world(retained_body_bytes_max=3)
    world.client(b"s", (b"t", 0))
    peer = enter(world, b"p", *items)
    peer.send(*[publish_5(b"t", b"long", qos=qos, packet_id=qos, retain=True) for qos in (1, 2)])
    peer.send(publish_5(b"t", b"1", qos=1, packet_id=3))
    refused = [refusal_5(puback(1), 0x97, reason), refusal_5(pubrec(2), 0x97, reason)]
    assert peer.take() == [*refused, puback(3)]


@pytest.mark.parametrize(
    ("prefix", "items", "client_id", "told"),
    [
        ("answers", ((P.REQUEST_RESPONSE, 1),), b"c/1+%", b"answers/c%2F1%2B%25"),
        ("a/b", ((P.REQUEST_RESPONSE, 1),), "gerät".encode(), "a/b/gerät".encode()),
        ("answers", ((P.REQUEST_RESPONSE, 0),), b"c", None),
        ("answers", (), b"c", None),
        ("", ((P.REQUEST_RESPONSE, 1),), b"c", None),
    ],
)
def test_client_that_asks_is_told_below_what_it_may_be_answered(make_world, prefix, items, client_id, told):
    world = make_world(response_prefix=prefix)  # MQTT-3.1.2-28
    peer = world.dial().send(connect_5(client_id, properties=encoded(*items)))
    _, _, found = connack_of(*peer.take())
    assert found.texts.get(P.RESPONSE_INFORMATION) == told
    if told is not None:
        peer.send(subscribe_5(1, (told + b"/#", 0)), publish_5(told + b"/1", b"x"))
        assert [one.topic for one in got(peer)] == [told + b"/1"]


# Nobody subscribes

UNHEARD = 0x10


def test_message_that_no_queue_gets_is_acknowledged_so(world):  # MQTT-3.4.2-1, MQTT-3.5.2-1
    peer = enter(world, b"p")
    world.client(b"s", (b"heard/#", 0))
    world.client(b"away", (b"kept", 1), clean=False).vanish()
    topics = (b"heard/1", b"unheard", b"kept")
    for retain in (False, True):
        peer.send(*[publish_5(topic, b"x", qos=1, packet_id=i + 1, retain=retain) for i, topic in enumerate(topics)])
        assert peer.take() == [puback(1), refusal_5(puback(2), UNHEARD), puback(3)]
    peer.send(publish_5(b"unheard", b"x", qos=2, packet_id=9))
    assert peer.take() == [refusal_5(pubrec(9), UNHEARD)]
    assert peer.send(pubrel(9)).take() == [pubcomp(9)]
    old = world.client(b"old")
    assert old.send(publish(b"unheard", b"x", qos=1, packet_id=1)).take() == [puback(1)]


def test_who_hears_what_waits_for_its_time_is_not_known(world):
    peer = enter(world, b"p")
    assert peer.send(publish_5(b"$delayed/5/unheard", b"x", qos=1, packet_id=1)).take() == [puback(1)]
    assert peer.send(publish_5(b"$delayed/0/unheard", b"x", qos=1, packet_id=2)).take() == [
        refusal_5(puback(2), UNHEARD)
    ]


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
    assert peer.take() == [suback_5(1, 2, 0, 0x97, reason=b"quota exceeded: c")]
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
    why = b"quota exceeded: the disk is low on room"
    assert packets == [pubrec(9), pubrec(9), refusal_5(puback(1), 0x97, why), refusal_5(pubrec(2), 0x97, why)]
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
