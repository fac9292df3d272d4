"""Replays: what is stored, then what comes, in order, nothing twice and nothing left out."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from gateway.mqtt.reason_codes import ReasonCode
from gateway.mqtt.replay import Start, parse_start
from tests.support import mqtt
from tests.support.engines import MAKERS
from tests.support.logins import quick_hash
from tests.support.mqtt import puback, pubcomp, publish, pubrec, subscribe, subscribe_5, unsubscribe
from tests.support.mqtt_5 import P, enter, got
from tests.support.mqtt_door import World

NOW = 1_700_000_000_000


def send(world, *bodies, topic=b"t/1", qos=1):
    publisher = world.connect(b"p")
    publisher.send(*[publish(topic, body, qos=qos, packet_id=i + 1) for i, body in enumerate(bodies)])


def numbered(count, start=0):
    return [b"%d" % i for i in range(start, start + count)]


def take(peer):
    """Return the bodies of all that comes, acknowledged at each step."""
    bodies = []
    while True:
        deliveries = peer.take_deliveries()
        if not deliveries:
            return bodies
        bodies += [one.body for one in deliveries]
        peer.send(*[puback(one.packet_id) for one in deliveries if one.qos])


def replayed(world, client_id, topic_filter, qos=1, **options):
    return world.connect(client_id, **options).send(subscribe(1, (topic_filter, qos)))


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_stored_messages_come_and_then_live_ones(world, qos):
    send(world, *numbered(3))
    send(world, b"other", topic=b"u")
    peer = replayed(world, b"a", b"$replay/0/t/#", qos)
    (first,) = [data for data in peer.take() if data[0] == 0x90]
    assert first[-1] == qos
    send(world, *numbered(3, 3))
    again = replayed(world, b"b", b"$replay/0/t/#", qos)
    assert take(again) == numbered(6)
    plain = world.client(b"s", (b"t/#", 0))
    send(world, *numbered(3, 6))
    send(world, b"other", topic=b"u")
    assert take(again) == take(plain) == numbered(3, 6)


def test_topics_are_the_messages_own_and_retained_ones_come_once(world):
    world.client(b"p").send(publish(b"t/1", b"kept", retain=True), publish(b"$x/1", b"hidden"))
    peer = replayed(world, b"a", b"$replay/-1h/#")
    assert [(one.topic, one.body, one.retain) for one in peer.take_deliveries()] == [(b"t/1", b"kept", 0)]


def test_start_is_an_offset_a_moment_or_a_while_ago(world):
    for body in numbered(4):
        send(world, body)
        world.now_ms += 60_000
    assert take(replayed(world, b"a", b"$replay/2/t/1")) == numbered(2, 2)
    assert take(replayed(world, b"b", b"$replay/-2m30s/t/1")) == numbered(2, 2)
    assert take(replayed(world, b"c", b"$replay/2026-09-21T14:14:20Z/t/1")) == numbered(3, 1)
    assert take(replayed(world, b"d", b"$replay/2026-09-21T16:14:20+02:00/t/1")) == numbered(3, 1)
    assert take(replayed(world, b"e", b"$replay/99999/t/1")) == []
    send(world, b"next")
    assert take(world.peers[-2]) == [b"next"]


def test_messages_on_their_way_at_the_seam_are_neither_lost_nor_doubled(world):
    send(world, *numbered(5))
    peer = replayed(world, b"a", b"$replay/0/t/1", clean=False)
    held = peer.take_deliveries()  # in flight while others come
    send(world, *numbered(5, 5))
    later = peer.take_deliveries()
    peer.send(*[puback(one.packet_id) for one in held + later])
    send(world, *numbered(5, 10))
    send(world, b"u", topic=b"u")
    assert [one.body for one in held + later] + take(peer) == numbered(15)
    peer.vanish()
    send(world, *numbered(2, 15))
    assert take(world.connect(b"a", clean=False)) == numbered(2, 15)


@pytest.mark.parametrize("taken", [0, 3, 6])
def test_durable_replay_goes_on_after_a_kill(make_world, taken):
    world = make_world(inflight_max=3)
    send(world, *numbered(6))
    peer = replayed(world, b"a", b"$replay/0/t/1", clean=False)
    bodies = []
    while len(bodies) < taken:
        some = peer.take_deliveries()
        bodies += [one.body for one in some]
        peer.send(*[puback(one.packet_id) for one in some])
    world.close()
    world.open()
    send(world, b"6")
    assert bodies + take(world.connect(b"a", clean=False)) == numbered(7)
    send(world, b"7")
    assert take(world.peers[-2]) == [b"7"]


def test_replay_at_qos_2_gives_each_once_after_a_kill(world):
    for body in numbered(4):
        send(world, body, qos=2)
        world.connect(b"p", clean=True)
    peer = replayed(world, b"a", b"$replay/0/t/1", 2, clean=False)
    first = peer.take_deliveries()
    peer.send(*[pubrec(one.packet_id) for one in first], pubcomp(first[0].packet_id))
    world.close()
    world.open()
    again = world.connect(b"a", clean=False)
    send(world, b"4", qos=2)
    assert [one.body for one in first] + again.bodies() == numbered(5)


def test_large_replay_gives_others_their_turn(make_world):
    world = make_world()
    count = 5_000
    for i in range(0, count, 100):
        send(world, *numbered(100, i), topic=b"u/1", qos=0)
    send(world, b"end")
    peer = world.connect(b"a")
    peer.begin(subscribe(1, (b"$replay/0/t/#", 0)))
    turns = 0
    while not peer.bodies():
        world.step()
        turns += 1
    assert turns > 2
    send(world, b"live")
    assert peer.bodies() == [b"live"]


def test_starts_and_filters_that_are_none_are_refused(world):
    bad = [b"$replay/yesterday/t", b"$replay/0", b"$replay//t", b"$replay/-/t", b"$replay/2026-02-30T00:00:00Z/t"]
    bad += [b"$replay/2026-02-03T00:00:00/t", b"$replay/0/$share/g/t", b"$share/g/$replay/0/t"]
    peer = enter(world, b"a").send(subscribe_5(1, *[(each, 1) for each in bad]))
    (data,) = peer.take()
    assert data.endswith(bytes([ReasonCode.TOPIC_FILTER_INVALID] * len(bad)))
    assert world.connect(b"c").send(subscribe(1, (bad[0], 1))).take()[-1] == mqtt.suback(1, 0x80)
    peer.send(subscribe_5(2, (b"$replay/0/t+", 1)))
    assert peer.is_closed


def test_rights_are_those_of_the_filter(make_world):
    world = make_world(auth={"users": {"alice": {"password_hash": quick_hash("secret"), "may_subscribe": False}}})
    peer = world.connect(b"a", user=b"alice", password=b"secret")
    assert peer.send(subscribe(1, (b"$replay/0/t", 1))).take()[-1] == mqtt.suback(1, 0x80)


def test_again_after_an_unsubscribe(world):
    send(world, *numbered(2))
    peer = replayed(world, b"a", b"$replay/0/t/1")
    assert take(peer) == numbered(2)
    peer.send(subscribe(2, (b"$replay/0/t/1", 1)))
    assert take(peer) == []  # the place is kept
    peer.send(unsubscribe(3, b"$replay/0/t/1"), subscribe(4, (b"$replay/0/t/1", 1)))
    assert take(peer) == numbered(2)


def test_identifier_and_options_hold_in_both_parts(world):
    send(world, b"a")
    peer = enter(world, b"s")
    peer.send(subscribe_5(1, (b"$replay/0/t/1", 0), properties=b"\x02\x0b\x07"))
    assert [(one.body, one.properties.number(P.SUBSCRIPTION_ID, 0)) for one in got(peer)] == [(b"a", 7)]
    send(world, b"b")
    assert [(one.body, one.properties.number(P.SUBSCRIPTION_ID, 0)) for one in got(peer)] == [(b"b", 7)]


@pytest.mark.parametrize(
    ("text", "start"),
    [
        (b"0", Start(0, 0)),
        (b"17", Start(17, 0)),
        (b"-1d", Start(None, NOW - 86_400_000)),
        (b"-1h30m", Start(None, NOW - 5_400_000)),
        (b"-250ms", Start(None, NOW - 250)),
        (b"-999999999d", Start(None, 0)),
        (b"2023-11-14T22:13:20Z", Start(None, NOW)),
        (b"2023-11-14t23:13:20.5+01:00", Start(None, NOW + 500)),
        (b"1h", None),
        (b"-1", None),
        (b"-30m1h", None),
        (b"\xff", None),
        (b"2023-11-14", None),
        (b"2023-11-14T25:13:20Z", None),
    ],
)
def test_starts(text, start):
    assert parse_start(text, NOW) == start


@given(st.binary(max_size=40))
def test_any_start_is_understood_or_refused(text):
    found = parse_start(text, NOW)
    assert found is None or found.at_ms >= 0


@pytest.mark.parametrize("make_engine", MAKERS.values(), ids=MAKERS)
@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from("pqs"), max_size=12), st.integers(0, 2), st.booleans())
def test_every_message_once_wherever_the_replay_begins(tmp_path_factory, make_engine, steps, qos, durable):
    world = World(tmp_path_factory.mktemp("replay"), inflight_max=2, make_engine=make_engine)
    try:
        sent = []
        peer, bodies = None, []
        for number, step in enumerate([*steps, "s", "p"]):
            if step == "p":
                sent.append(b"%d" % number)
                send(world, sent[-1])
            elif step == "q":
                send(world, b"other", topic=b"u")
            elif peer is None:
                peer = replayed(world, b"a", b"$replay/0/t/+", min(qos, 1), clean=not durable)
            else:
                bodies += take(peer)
        assert bodies + take(peer) == sent
    finally:
        world.close()


def test_replay_from_a_moment_that_is_not_acknowledged_comes_again_after_a_kill(world):
    world.client(b"p").send(publish(b"t", b"1", qos=1, packet_id=1)).vanish()
    peer = world.client(b"c", clean=False)
    assert peer.send(subscribe(1, (b"$replay/-1h/t", 1))).bodies() == [b"1"]
    world.close()
    world.open()
    assert world.connect(b"c", clean=False).bodies() == [b"1"]
