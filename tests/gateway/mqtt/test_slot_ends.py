"""What is under way when a subscription ends is brought to its end, also by the next process: MQTT-3.10.4-3."""

from __future__ import annotations

import pytest

from gateway.mqtt.properties import Property, encode_properties
from gateway.mqtt.session import NEVER
from tests.support import mqtt
from tests.support.exactly_once import restart
from tests.support.mqtt import connack, puback, pubcomp, publish, pubrec, pubrel

ENDINGS = ["unsubscribed", "at QoS 0"]
FILTERS = [b"t", b"$share/g/t", b"$replay/0/t"]
FEW = encode_properties([(Property.RECEIVE_MAX, 2), (Property.SESSION_EXPIRY, NEVER)])
SUBSCRIBE_AGAIN = mqtt.subscribe(3, (b"$share/g/t", 2))


def end(peer, ending, topic_filter):
    peer.send(mqtt.unsubscribe(2, topic_filter) if ending == "unsubscribed" else mqtt.subscribe(2, (topic_filter, 0)))
    peer.take()


def say(world, topic, *bodies, qos=2, retain=False):
    """Have a publisher complete messages."""
    publisher = world.client(b"publisher")
    for number, body in enumerate(bodies, 1):
        publisher.send(publish(topic, body, qos=qos, packet_id=number, retain=retain), pubrel(number))
    publisher.vanish()


def complete(peer, *packet_ids):
    for one in packet_ids:
        assert peer.send(pubrec(one)).take() == [pubrel(one)]
        peer.send(pubcomp(one)).take()


def rows(world):
    return list(world.broker.table("mqtt_ended").items())


@pytest.mark.parametrize("topic_filter", FILTERS)
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("has_it", [False, True])
def test_identifier_of_what_is_under_way_is_no_other_messages_after_a_start(world, ending, has_it, topic_filter):
    peer = world.client(b"c", (topic_filter, 2), clean=False)
    say(world, b"t", b"one")
    (one,) = peer.take_deliveries()
    if has_it:
        assert peer.send(pubrec(one.packet_id)).take() == [pubrel(one.packet_id)]
    end(peer, ending, topic_filter)
    for _ in range(2):
        restart(world)
        peer = world.connect(b"c", clean=False)
        packets = peer.take()
        assert packets[0] == connack(session_present=True)
        if has_it:
            assert packets[1:] == [pubrel(one.packet_id)]
        else:
            (again,) = mqtt.deliveries(b"".join(packets[1:]))
            assert (again.body, again.packet_id, again.qos, again.dup) == (b"one", one.packet_id, 2, True)
    peer.send(mqtt.subscribe(3, (b"t", 2))).take()
    say(world, b"t", b"two")
    *_, two = peer.take_deliveries()
    assert (two.body, two.qos, two.packet_id != one.packet_id) == (b"two", 2, True)
    peer.send(pubcomp(one.packet_id)) if has_it else complete(peer, one.packet_id)
    complete(peer, two.packet_id)
    assert rows(world) == []
    restart(world)
    assert world.connect(b"c", clean=False).take() == [connack(session_present=True)]


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_is_under_way_at_qos_1_comes_again_after_a_start_until_it_is_acknowledged(world, ending):
    peer = world.client(b"c", (b"t", 1), clean=False)
    say(world, b"t", b"1", b"2", b"3", b"4")
    sent = peer.take_deliveries()
    peer.send(puback(sent[1].packet_id))
    end(peer, ending, b"t")
    for _ in range(2):
        restart(world)
        peer = world.connect(b"c", clean=False)
        got = peer.take_deliveries()
        assert [(one.body, one.qos, one.dup) for one in got] == [(body, 1, True) for body in (b"1", b"3", b"4")]
    peer.send(*[puback(one.packet_id) for one in got])
    assert rows(world) == []
    restart(world)
    assert world.connect(b"c", clean=False).take() == [connack(session_present=True)]


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("has_it", [False, True])
def test_retained_message_that_is_under_way_is_brought_to_its_end(world, ending, has_it):
    say(world, b"r/1", b"kept", retain=True)
    say(world, b"r/2", b"not sent", retain=True)
    said = encode_properties([(Property.RECEIVE_MAX, 1), (Property.SESSION_EXPIRY, NEVER)])
    peer = world.dial().send(mqtt.connect_5(b"c", clean=False, properties=said))
    peer.send(mqtt.subscribe_5(1, (b"r/+", 2)))
    (one,) = mqtt.deliveries(b"".join(peer.take()[2:]))
    assert (one.body, one.qos, one.retain) == (b"\0kept", 2, True)
    if has_it:
        peer.send(pubrec(one.packet_id)).take()
    peer.send(mqtt.unsubscribe_5(2, b"r/+") if ending == "unsubscribed" else mqtt.subscribe_5(2, (b"r/+", 0x20)))
    restart(world)
    peer = world.connect(b"c", clean=False)
    packets = peer.take()
    if has_it:
        assert packets[1:] == [pubrel(one.packet_id)]
        peer.send(pubcomp(one.packet_id))
    else:
        (again,) = mqtt.deliveries(b"".join(packets[1:]))
        assert (again.body, again.packet_id, again.retain) == (b"kept", one.packet_id, True)
        complete(peer, one.packet_id)
    assert peer.take() == []
    assert rows(world) == []
    restart(world)
    assert world.connect(b"c", clean=False).take() == [connack(session_present=True)]


def test_retained_message_that_is_under_way_keeps_its_identifier_where_it_is_asked_for_at_qos_1(world):
    say(world, b"r", b"kept", retain=True)
    peer = world.client(b"c", clean=False)
    (one,) = mqtt.deliveries(b"".join(peer.send(mqtt.subscribe(1, (b"r", 2))).take()[1:]))
    peer.send(pubrec(one.packet_id)).take()
    (again,) = mqtt.deliveries(b"".join(peer.send(mqtt.subscribe(2, (b"r", 1))).take()[1:]))
    assert again.qos == 1
    restart(world)
    peer = world.connect(b"c", clean=False)
    packets = peer.take()
    assert packets[1] == pubrel(one.packet_id)
    assert one.packet_id not in [got.packet_id for got in mqtt.deliveries(b"".join(packets[2:]))]


def test_session_that_ends_leaves_nothing_of_its_subscriptions_that_ended(world):
    peer = world.client(b"c", (b"t", 2), clean=False)
    say(world, b"t", b"one")
    end(peer, "unsubscribed", b"t")
    assert len(rows(world)) == 1
    world.client(b"c").vanish()  # a clean start
    assert rows(world) == []
    restart(world)
    assert world.connect(b"c", clean=False).take() == [connack()]


def test_subscription_that_ended_with_messages_under_way_counts_until_they_are_complete(make_world):
    world = make_world(subscription_count_max=1)
    peer = world.client(b"c", (b"t", 2), clean=False)
    say(world, b"t", b"one")
    (one,) = peer.take_deliveries()
    end(peer, "unsubscribed", b"t")
    assert peer.send(mqtt.subscribe(3, (b"u", 2))).take() == [mqtt.suback(3, 0x80)]
    complete(peer, one.packet_id)
    assert peer.send(mqtt.subscribe(4, (b"u", 2))).take() == [mqtt.suback(4, 2)]


def test_what_is_under_way_is_held_in_the_log_until_it_is_complete(world):
    peer = world.client(b"c", (b"t", 2), clean=False)
    say(world, b"t", b"one")
    (one,) = peer.take_deliveries()
    end(peer, "unsubscribed", b"t")
    held = list(world.door.sessions.held_positions())
    assert [position for _, position in held] == [0]
    restart(world)
    assert list(world.door.sessions.held_positions()) == held
    peer = world.connect(b"c", clean=False)
    peer.take()
    complete(peer, one.packet_id)
    assert list(world.door.sessions.held_positions()) == []


def test_replay_at_qos_0_goes_on_with_live_messages_while_stored_ones_are_under_way(world):
    say(world, b"t", b"1", b"2")
    peer = world.client(b"c", clean=False)
    peer.send(mqtt.subscribe(1, (b"$replay/0/t", 2)))
    stored = mqtt.deliveries(b"".join(peer.take()[1:]))
    assert [one.body for one in stored] == [b"1", b"2"]
    end(peer, "at QoS 0", b"$replay/0/t")
    complete(peer, *[one.packet_id for one in stored])
    say(world, b"t", b"3")
    assert [(one.body, one.qos) for one in peer.take_deliveries()] == [(b"3", 0)]


def test_group_knows_as_done_what_a_member_acknowledges_that_went_to_qos_0(world):
    first = world.client(b"a", (b"$share/g/t", 1), clean=False)
    say(world, b"t", b"one", qos=1)
    (one,) = first.take_deliveries()
    first.send(mqtt.subscribe(2, (b"$share/g/t", 0))).take()
    first.send(puback(one.packet_id)).vanish()
    second = world.client(b"b", (b"$share/g/t", 1), clean=False)
    say(world, b"t", b"two", qos=1)
    assert second.bodies() == [b"two"]


@pytest.mark.parametrize("then", ["unsubscribes", "subscribes, unsubscribes", "unsubscribes, subscribes"])
def test_group_knows_as_done_what_a_member_acknowledges_that_went_to_qos_0_and_left(world, then):
    first = world.client(b"a", (b"$share/g/t", 2), clean=False)
    say(world, b"t", b"one", qos=1)
    (one,) = first.take_deliveries()
    end(first, "at QoS 0", b"$share/g/t")
    second = world.client(b"b", (b"$share/g/t", 1), clean=False)
    for step in then.split(", "):
        first.send(mqtt.unsubscribe(3, b"$share/g/t") if step == "unsubscribes" else SUBSCRIBE_AGAIN).take()
    first.send(puback(one.packet_id)).vanish()
    say(world, b"t", b"two", qos=1)
    assert second.bodies() == [b"two"]


def test_member_that_went_to_qos_0_and_left_loses_nothing_else_with_its_connection(world):
    peer = world.client(b"a", (b"$share/g/t", 2), (b"u", 1), clean=False)
    say(world, b"t", b"one", qos=1)
    (one,) = peer.take_deliveries()
    end(peer, "at QoS 0", b"$share/g/t")
    other = world.client(b"b", (b"$share/g/t", 1), clean=False)  # the group goes on
    end(peer, "unsubscribed", b"$share/g/t")
    peer.send(puback(one.packet_id))
    say(world, b"u", *[b"%d" % i for i in range(16)], qos=1)
    assert len(peer.take_deliveries()) == 16
    peer.vanish()
    assert len(world.connect(b"a", clean=False).take_deliveries()) == 16
    other.vanish()


def test_session_is_loaded_where_the_queue_of_an_ended_subscription_is_not_there(make_world):
    world = make_world(queued_count_max=5)
    say(world, b"r/1", b"kept", retain=True)
    peer = world.client(b"c", clean=False)
    (one,) = mqtt.deliveries(b"".join(peer.send(mqtt.subscribe(1, (b"r/+", 1))).take()[1:]))
    end(peer, "unsubscribed", b"r/+")
    ((key, row),) = rows(world)
    world.broker.table("mqtt_ended").put(key, row.replace(b"r/+", b"+/1"))  # it had no messages: its name was lost
    world.broker.lasting_endings.note_run((b"queue", b"c"), 0, 1, "expired", world.now_ms)
    restart(world)
    peer = world.connect(b"c", clean=False)
    (again,) = mqtt.deliveries(b"".join(peer.take()[1:]))
    assert again.body == one.body == b"kept"
    assert list(world.door.sessions.held_positions()) == []
    peer.send(puback(again.packet_id))
    assert rows(world) == []


@pytest.mark.parametrize("more", [(), ((b"t", 0), (b"t", 2))], ids=["once", "twice"])
def test_subscription_that_returns_to_qos_2_is_sent_nothing_again_that_is_complete_after_a_kill(world, more):
    world.client(b"c", (b"t", 2), clean=False)
    say(world, b"t", b"1", b"2", b"3")
    restart(world)
    peer = world.dial().send(mqtt.connect_5(b"c", clean=False, properties=FEW))
    first, second = mqtt.deliveries(b"".join(peer.take()[1:]))  # the third has no room: nothing new is read
    packet_ids = [first.packet_id, second.packet_id, second.packet_id + 1]
    peer.send(*[mqtt.subscribe_5(3, each) for each in ((b"t", 0), (b"t", 2), *more)])
    peer.send(*map(pubrec, packet_ids)).take()
    world.flushes_by_itself = False
    peer.send(*map(pubcomp, reversed(packet_ids)), mqtt.DISCONNECT)
    restart(world)  # all is committed, and nothing that waited for the commit is done
    world.flushes_by_itself = True
    assert rows(world) == []
    peer = world.connect(b"c", clean=False)
    say(world, b"t", b"4")
    assert peer.bodies() == [b"4"]


@pytest.mark.parametrize("topic_filter", [b"$replay/0/t", b"$replay/-1h/t"])
def test_replay_that_is_asked_for_anew_has_after_a_kill_what_the_ended_one_has_under_way(world, topic_filter):
    peer = world.client(b"c", clean=False)
    say(world, b"t", b"1", b"2")
    peer.send(mqtt.subscribe(1, (topic_filter, 2)))
    sent = peer.take_deliveries()
    peer.send(pubrec(sent[0].packet_id), mqtt.unsubscribe(2, topic_filter)).take()
    peer.stall()
    peer.send(mqtt.subscribe(3, (topic_filter, 2)))
    restart(world)
    peer = world.connect(b"c", clean=False)
    packets = peer.take()
    assert pubrel(sent[0].packet_id) in packets
    got = [(one.body, one.dup) for one in mqtt.deliveries(b"".join(packets[1:]))]
    assert sorted(got) == [(b"1", False), (b"2", False), (b"2", True)]
