"""A SUBSCRIBE that replaces a subscription loses nothing, and sends nothing twice."""

from __future__ import annotations

from tests.support.mqtt import connect_5, puback, publish, publish_5, subscribe_5
from tests.support.mqtt_5 import P, encoded, enter, got


def bodies(peer):
    return [one.body for one in got(peer)]


def publish_all(world, *texts, topic=b"t"):
    world.client(b"p").send(*[publish(topic, one, qos=1, packet_id=1) for one in texts]).vanish()


def test_what_waits_for_room_comes_at_qos_0_when_that_is_asked_for(world):
    peer = enter(world, b"c", (P.RECEIVE_MAX, 1), filters=[(b"t", 1)])
    publish_all(world, b"one", b"two", b"three")
    assert bodies(peer) == [b"one"]
    peer.send(subscribe_5(2, (b"t", 0)))
    assert [(one.body, one.qos) for one in got(peer)] == [(b"two", 0), (b"three", 0)]


def test_what_waits_is_not_lost_to_another_qos_and_other_options(world):  # MQTT-3.8.4-4
    retain_as_published = 0x08
    peer = enter(world, b"c", (P.RECEIVE_MAX, 1), filters=[(b"t", 1)])
    publish_all(world, b"one", b"two")
    peer.send(subscribe_5(2, (b"t", retain_as_published)))
    assert bodies(peer) == [b"one", b"two"]


def test_what_a_member_of_a_group_has_is_not_sent_to_it_again(world):
    peer = enter(world, b"c", filters=[(b"$share/g/t", 1)])
    publish_all(world, b"one")
    (first,) = got(peer)
    peer.send(subscribe_5(2, (b"$share/g/t", 1), properties=encoded((P.SUBSCRIPTION_ID, 7))))
    assert bodies(peer) == []
    publish_all(world, b"two")
    (second,) = got(peer)
    assert (second.body, second.properties.number(P.SUBSCRIPTION_ID, 0)) == (b"two", 7)
    peer.send(puback(first.packet_id), puback(second.packet_id)).vanish()
    assert bodies(enter(world, b"d", filters=[(b"$share/g/t", 1)])) == []


def test_retained_messages_are_those_from_before_the_subscribe(world):
    peer = enter(world, b"c", (P.RECEIVE_MAX, 1), filters=[(b"r/#", 1)])
    publisher = enter(world, b"p")
    for topic in (b"r/1", b"r/2"):
        publisher.send(publish_5(topic, b"old", qos=1, packet_id=1, retain=True))
    (first,) = got(peer)
    peer.send(subscribe_5(2, (b"r/+", 1)), subscribe_5(3, (b"r/2", 0)))  # both wait for the window
    assert bodies(peer) == []
    publisher.send(publish_5(b"r/2", b"new", qos=0, retain=True))
    came = got(peer)
    acked = first
    while acked is not None:
        peer.send(puback(acked.packet_id))
        more = got(peer)
        came += more
        acked = next((one for one in more if one.qos), None)
    assert [(one.body, one.retain) for one in came if one.body == b"new"].count((b"new", 1)) == 0


def test_a_restart_does_not_forget_what_was_sent_before_the_last(world):  # MQTT-3.3.1-1
    peer = world.client(b"c", (b"t", 1), clean=False)
    publish_all(world, b"one", b"two")
    assert len(peer.take_deliveries()) == 2
    for receive_max in (1, 2):
        world.close()
        world.open()
        items = encoded((P.SESSION_EXPIRY, 100), (P.RECEIVE_MAX, receive_max))
        peer = world.dial().send(connect_5(b"c", clean=False, properties=items))
        assert [(one.body, one.dup) for one in got(peer)] == [(b"one", 1), (b"two", 1)][:receive_max]


def test_what_waits_for_a_member_of_a_group_comes_at_qos_0_when_that_is_asked_for(world):
    peer = enter(world, b"c", (P.RECEIVE_MAX, 1), filters=[(b"$share/g/t", 1)])
    publish_all(world, b"one", b"two")
    assert bodies(peer) == [b"one"]
    peer.send(subscribe_5(2, (b"$share/g/t", 0)))
    assert [(one.body, one.qos) for one in got(peer)] == [(b"two", 0)]
