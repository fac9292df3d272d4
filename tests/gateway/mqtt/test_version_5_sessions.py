"""How clients of MQTT 5 come and go at the door: CONNECT, sessions, wills."""

from __future__ import annotations

import pytest

from gateway.mqtt.terms import RECEIVE_MAX
from tests.support.mqtt import (
    connect_5,
    disconnect_5,
    publish,
    publish_5,
)
from tests.support.mqtt_5 import Got, P, connack_of, encoded, enter, got

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


def test_client_may_use_as_many_topic_aliases_as_the_settings_say(make_world):  # MQTT-3.3.2-9
    for aliases in (0, 3):
        peer = make_world(topic_alias_max=aliases).dial().send(connect_5(b"c"))
        assert connack_of(peer.take()[0])[2].numbers.get(P.TOPIC_ALIAS_MAX, 0) == aliases
        peer.send(*[publish_5(b"t", b"", encoded((P.TOPIC_ALIAS, i + 1))) for i in range(aliases)])
        assert not peer.is_closed
        peer.send(publish_5(b"t", b"", encoded((P.TOPIC_ALIAS, aliases + 1))))
        assert peer.is_closed
        assert peer.take()[-1][2] == 0x94


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


@pytest.mark.parametrize(("expiry_s", "is_there"), [(5, False), (1_000, True)])
def test_session_lives_as_long_as_its_disconnect_says(world, expiry_s, is_there):
    peer = enter(world, b"c", (P.SESSION_EXPIRY, 100), filters=[(b"t", 1)])
    peer.send(disconnect_5(0, encoded((P.SESSION_EXPIRY, expiry_s))))
    world.now_ms += 500_000
    peer = world.dial().send(connect_5(b"c", clean=False))
    assert connack_of(peer.take()[0])[0] == is_there


def test_session_that_never_expires_is_there_after_a_hundred_years_and_a_restart(world):
    enter(world, b"c", (P.SESSION_EXPIRY, 2**32 - 1), filters=[(b"t", 1)]).vanish()
    enter(world, b"other", (P.SESSION_EXPIRY, 2**32 - 2), filters=[(b"t", 1)]).vanish()
    world.now_ms += 200 * 365 * 86_400_000
    world.door.tend(world.now_ms)
    world.turn()
    assert [session.client_id for session in world.door.sessions] == [b"c"]
    world.close()
    world.open()
    peer = world.dial().send(connect_5(b"c", clean=False))
    assert connack_of(peer.take()[0])[0] == 1


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


def test_will_keeps_its_moment_over_restarts(world):
    will = (*WILL, encoded((P.WILL_DELAY, 10)))
    enter(world, b"c", (P.SESSION_EXPIRY, 100), will=will).vanish()
    for _ in range(2):
        world.now_ms += 4_000
        world.close()
        world.open()
        watcher = enter(world, b"w", filters=[(b"gone", 0)])
        world.door.wills.publish_due(world.now_ms)
        assert got(watcher) == []
    world.now_ms += 2_000
    world.door.wills.publish_due(world.now_ms)
    world.turn()
    assert [one.body for one in got(watcher)] == [b"w"]
    world.close()
    world.open()
    world.now_ms += 20_000
    world.door.wills.publish_due(world.now_ms)
    assert world.counts.messages_in == 0


@pytest.mark.parametrize("comes_back", [True, False])
def test_will_whose_moment_passed_while_the_gateway_was_down_is_published_at_the_start(world, comes_back):
    enter(world, b"w", (P.SESSION_EXPIRY, 1_000), filters=[(b"gone", 1)]).vanish()
    will = (*WILL, encoded((P.WILL_DELAY, 10)))
    enter(world, b"c", (P.SESSION_EXPIRY, 100), will=will).vanish()
    world.close()
    world.now_ms += 5_000 if comes_back else 60_000
    world.open()
    if comes_back:
        enter(world, b"c", (P.SESSION_EXPIRY, 100), clean=False)
        world.now_ms += 60_000
        world.door.wills.publish_due(world.now_ms)
    watcher = world.dial().send(connect_5(b"w", clean=False))
    assert [one.body for one in got(watcher)] == ([] if comes_back else [b"w"])


def test_will_of_a_killed_process_waits_no_longer_than_its_session_lives(world):
    enter(world, b"w", (P.SESSION_EXPIRY, 1_000), filters=[(b"gone", 1)]).vanish()
    enter(world, b"c", will=(*WILL, encoded((P.WILL_DELAY, 10))))
    world.close()
    world.open()
    watcher = world.dial().send(connect_5(b"w", clean=False))
    assert [one.body for one in got(watcher)] == [b"w"]


def test_expired_sessions_are_swept_a_little_in_each_turn(world):
    for number in range(3_000):
        session = world.door.sessions.create(b"c%d" % number, b"", 10 if number % 2 else 100)
        world.door.sessions.note_idle(session, world.now_ms)
    world.now_ms += 11_000
    world.door.tend(world.now_ms)
    assert len(world.door.sessions) > 2_900
    world.door.tend(world.now_ms)  # the sweep under way is the only one
    assert len(world.door.subscribing.chores._waiting) == 1
    world.turn()
    assert len(world.door.sessions) == 1_500
    world.now_ms += 100_000
    world.door.tend(world.now_ms)
    world.turn()
    assert len(world.door.sessions) == 0


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
