"""`$delayed/<seconds>/<topic>`, as EMQX does it."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, strategies as st

from gateway.auth.permissions import ALL
from gateway.mqtt.delayed import Delayed
from gateway.mqtt.errors import MalformedPacketError
from gateway.mqtt.packets import Will
from gateway.mqtt.session_rows import StoredWill
from tests.support import mqtt
from tests.support.mqtt import connect, connect_5, puback, publish, publish_5, subscribe
from tests.support.mqtt_5 import P, encoded, enter, got


def wait(world, ms):
    world.now_ms += ms
    world.broker.request_run(world.broker.timer)
    world.turn()
    while world.broker.has_work:
        world.turn()


class NoTimer:
    def resolve(self, name, resolver):
        pass


class NoBroker:
    timer = NoTimer()


@given(st.binary(max_size=20))
def test_any_topic_is_split_or_refused(rest):
    delayed = Delayed(NoBroker())
    delayed.seconds_max = 100
    with contextlib.suppress(MalformedPacketError):
        seconds, inner = delayed.split(b"$delayed/" + rest)
        assert 0 <= seconds <= 100
        assert rest.endswith(b"/" + inner)


def test_a_message_comes_after_its_seconds_to_the_topic_that_is_named(world):
    reader = world.client(b"r", (b"#", 1))
    peer = world.client(b"p").send(
        publish(b"$delayed/5/a/b", b"late", qos=1, packet_id=1),
        publish(b"$delayed/2/a", b"sooner"),
        publish(b"$delayed/0/a", b"now"),
        publish(b"a", b"plain"),
    )
    assert peer.take() == [puback(1)]
    assert reader.bodies() == [b"now", b"plain"]
    wait(world, 1_999)
    assert reader.bodies() == []
    wait(world, 1)
    assert reader.bodies() == [b"sooner"]
    wait(world, 3_000)
    (delivery,) = reader.take_deliveries()
    assert (delivery.topic, delivery.body, delivery.qos) == (b"a/b", b"late", 1)


def test_a_retained_message_is_retained_when_it_comes_and_not_before(world):
    world.client(b"p").send(publish(b"$delayed/5/a", b"kept", retain=True), publish(b"b", b"at once", retain=True))
    early = world.connect(b"e").send(subscribe(1, (b"#", 0)))
    assert early.bodies() == [b"at once"]
    wait(world, 5_000)
    late = world.connect(b"l").send(subscribe(1, (b"a", 0)))
    assert late.bodies() == [b"kept"]


def test_what_waits_outlives_a_restart_with_its_properties(world):
    peer = enter(world, b"p")
    peer.send(
        publish_5(b"$delayed/9/a", b"late", encoded((P.CONTENT_TYPE, b"text/plain"), (P.USER, (b"LMQ_DUE", b"1"))))
    )
    world.close()
    world.open()
    reader = enter(world, b"r", filters=((b"a", 1),))
    wait(world, 9_000)
    (delivery,) = got(reader)
    assert delivery.body == b"late"
    assert set(delivery.properties.items()) >= {(P.CONTENT_TYPE, b"text/plain"), (P.USER, (b"LMQ_DUE", b"1"))}


@pytest.mark.parametrize(
    "topic", [b"$delayed/5", b"$delayed/5/", b"$delayed/x/a", b"$delayed/-1/a", b"$delayed//a", b"$delayed/4294968/a"]
)
def test_a_delay_that_is_none_or_too_long_is_refused_as_a_topic_that_is_none(world, topic):
    old = world.client(b"o").send(publish(topic, b"x", qos=1, packet_id=1))
    assert old.take() == []
    assert old.is_closed
    new = enter(world, b"n")
    new.send(publish_5(topic, b"x"))
    assert new.is_closed
    assert world.broker.timer.pending_count == 0


def test_a_will_comes_after_its_seconds_also_over_a_kill(world):
    reader = world.client(b"r", (b"#", 1))
    world.client(b"c", will=(b"$delayed/5/a/b", b"gone", 1, False)).vanish()
    assert reader.bodies() == []
    wait(world, 5_000)
    (delivery,) = reader.take_deliveries()
    assert (delivery.topic, delivery.body, delivery.qos) == (b"a/b", b"gone", 1)

    world.client(b"c", will=(b"$delayed/5/a", b"killed", 0, True))
    world.close()
    world.open()
    wait(world, 5_000)
    late = world.connect(b"l").send(subscribe(1, (b"a", 0)))
    assert late.bodies() == [b"killed"]


def test_a_wills_two_delays_follow_one_another(world):
    will = (b"$delayed/5/a", b"gone", 0, False, encoded((P.WILL_DELAY, 3)))
    reader = world.client(b"r", (b"#", 0))
    enter(world, b"c", (P.SESSION_EXPIRY, 60), will=will).vanish()
    world.now_ms += 3_000
    world.door.wills.publish_due(world.now_ms)
    wait(world, 4_999)
    assert reader.bodies() == []
    wait(world, 1)
    assert reader.bodies() == [b"gone"]


def test_a_will_with_a_delay_that_is_none_is_refused(world):
    for topic in (b"$delayed/x/a", b"$delayed/5", b"$delayed/4294968/a"):
        peer = world.dial()
        peer.send(connect_5(will=(topic, b"gone", 0, False, b"\0")))
        assert peer.take() == [b"\x20\x03\0\x90\0"]
        assert peer.is_closed
        old = world.dial().send(connect(will=(topic, b"gone", 0, False)))
        assert old.take() == [b"\x20\x02\0\5"]


def test_a_will_that_was_written_down_when_more_seconds_were_allowed_comes_after_the_most(world):
    reader = world.client(b"r", (b"#", 0))
    peer = world.client(b"c", will=(b"$delayed/100/a", b"gone", 0, False))
    world.door.publishing.delayed.seconds_max = 5
    peer.vanish()
    wait(world, 5_000)
    assert reader.bodies() == [b"gone"]


def test_rights_for_a_will_are_those_of_the_topic_behind_the_delay(world):
    will = Will(b"$delayed/5/$SYS/broker/x", b"x", 0, is_retained=False)
    world.door.wills.publish(StoredWill(b"c", b"", b"\x7f\0\0\1\0\0\7\x5b", will), ALL, world.now_ms)
    assert world.counts.refused == {"will_not_authorized": 1}


def test_no_local_holds_for_what_comes_later(world):
    peer = enter(world, b"p")
    peer.send(mqtt.subscribe_5(1, (b"a", 4)))
    peer.take()
    peer.send(publish_5(b"$delayed/5/a", b"mine"))
    world.client(b"o").send(publish(b"$delayed/5/a", b"yours"))
    wait(world, 5_000)
    assert [one.body for one in got(peer)] == [b"yours"]


def test_the_longest_delay_is_the_settings_to_say(make_world):
    world = make_world(delayed_max_s=5)
    assert world.client(b"a").send(publish(b"$delayed/5/a", b"x", qos=1, packet_id=1)).take() == [puback(1)]
    assert world.client(b"b").send(publish(b"$delayed/6/a", b"x", qos=1, packet_id=1)).is_closed
