"""What clients of MQTT 5 are answered at the door: in words where they ask for them, and where nobody subscribes."""

from __future__ import annotations

import pytest

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
)
from tests.support.mqtt_5 import P, connack_of, encoded, enter, got

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
