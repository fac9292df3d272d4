"""Retained messages at the door: which sessions get them, and what is owed of them."""

from __future__ import annotations

import shutil

import pytest

from core.errors import DiskFullError
from gateway.mqtt.redelivery import RETAINED_TURN_NS
from gateway.settings.models import GatewaySettings, MqttSettings
from tests.support import mqtt
from tests.support.mqtt import (
    Delivery,
    connack,
    puback,
    pubcomp,
    publish,
    publish_5,
    pubrec,
    suback,
    subscribe,
    unsuback,
    unsubscribe,
)
from tests.support.mqtt_5 import enter
from tests.support.mqtt_door import NOW_MS, World

ANSWERS = {1: (puback,), 2: (pubrec, pubcomp)}  # to a message, by its QoS


def test_retained_message_is_delivered_to_a_new_subscription(world):  # MQTT-3.3.1-6
    publisher = world.client(b"p")
    publisher.send(publish(b"r/1", b"old", qos=1, packet_id=1, retain=True))
    publisher.send(publish(b"r/1", b"one", qos=1, packet_id=1, retain=True), publish(b"r/2", b"two", retain=True))
    subscriber = world.connect(b"s").send(subscribe(1, (b"r/+", 1)))
    packets = subscriber.take()
    assert packets[:2] == [connack(), suback(1, 1)]
    got = sorted((mqtt.parse_publish(one) for one in packets[2:]), key=lambda d: d.topic)
    assert got == [Delivery(b"r/1", b"one", 1, 1, retain=True, dup=False), Delivery(b"r/2", b"two", 0, 0, True, False)]
    publisher.send(publish(b"r/1", b"live", retain=True))
    assert [d.retain for d in subscriber.take_deliveries()] == [False]  # MQTT-3.3.1-9


def test_empty_retained_message_removes_it(world):  # MQTT-3.3.1-10
    world.client(b"p").send(publish(b"r", b"x", retain=True), publish(b"r", b"", retain=True))
    assert world.client(b"s").send(subscribe(1, (b"r", 0))).take() == [suback(1, 0)]


def test_retained_message_comes_with_each_subscribe(world):  # MQTT-3.8.4-3
    world.client(b"p").send(publish(b"r", b"x", retain=True))
    subscriber = world.client(b"s")
    for packet_id in (1, 2):
        assert subscriber.send(subscribe(packet_id, (b"r", 0))).take()[1:] == [publish(b"r", b"x", retain=True)]


def test_retained_messages_wait_for_the_window_and_come_again(make_world):
    world = make_world(inflight_max=3)
    world.client(b"p").send(*[publish(b"r/%d" % i, b"%d" % i, qos=1, packet_id=i + 1, retain=True) for i in range(8)])
    subscriber = world.client(b"s", clean=False)
    subscriber.send(subscribe(1, (b"r/#", 1)))
    got = subscriber.take_deliveries()
    assert [d.packet_id for d in got] == [1, 2, 3]
    subscriber.send(puback(1))
    got += subscriber.take_deliveries()
    assert len(got) == 4
    subscriber.vanish()
    again = world.connect(b"s", clean=False).take_deliveries()
    assert [(d.body, d.retain, d.dup) for d in again] == [(d.body, True, True) for d in got[1:]]


def test_retained_messages_that_were_not_sent_come_after_a_reconnect(make_world):
    world = make_world(inflight_max=3)
    world.client(b"p").send(*[publish(b"r/%d" % i, b"%d" % i, qos=1, packet_id=i + 1, retain=True) for i in range(8)])
    subscriber = world.client(b"s", clean=False)
    first = subscriber.send(subscribe(1, (b"r/#", 1))).take_deliveries()
    first += subscriber.send(puback(1)).take_deliveries()
    subscriber.vanish()
    subscriber = world.connect(b"s", clean=False)
    got = subscriber.take_deliveries()
    assert [d.body for d in got] == [d.body for d in first[1:]]  # what is in flight comes first
    while more := subscriber.send(*[puback(d.packet_id) for d in got[-3:]]).take_deliveries():
        got += more
    assert all(d.retain for d in got)
    assert [(d.body, d.dup) for d in got] == [(b"%d" % i, i < 4) for i in range(1, 8)]  # what was acknowledged does not
    subscriber.vanish()
    assert world.connect(b"s", clean=False).take_deliveries() == []


def test_unsubscribing_ends_what_is_still_to_be_sent_of_retained_messages(make_world):
    world = make_world(inflight_max=2)
    world.client(b"p").send(*[publish(b"r/%d" % i, b"x", qos=1, packet_id=i + 1, retain=True) for i in range(5)])
    subscriber = world.client(b"s", clean=False)
    assert len(subscriber.send(subscribe(1, (b"r/#", 1))).take_deliveries()) == 2
    subscriber.send(unsubscribe(2, b"r/#"), puback(1), puback(2))
    assert subscriber.take() == [unsuback(2)]


@pytest.mark.parametrize("qos", [1, 2])
@pytest.mark.parametrize("is_over", [False, True], ids=["unsubscribed", "subscribed anew"])
def test_retained_messages_are_still_owed_where_a_kill_leaves_the_subscription(tmp_path, qos, is_over):
    world = World(tmp_path / "before", inflight_max=2)
    names = [b"r/%d" % i for i in range(5)]
    world.client(b"p").send(*[publish(one, one, qos=2, packet_id=i + 1, retain=True) for i, one in enumerate(names)])
    peer = world.client(b"s", clean=False)
    first = peer.send(subscribe(1, (b"r/#", qos))).take_deliveries()
    assert [one.body for one in first] == names[:2]
    world.flushes_by_itself = False
    peer.send(unsubscribe(2, b"r/#"), *([subscribe(3, (b"r/#", qos))] if is_over else []))
    world.data_dir = shutil.copytree(world.data_dir, tmp_path / "after")
    world.close()
    world.flushes_by_itself = True
    world.open()
    peer = world.connect(b"s", clean=False)
    got = peer.take_deliveries()
    assert [(one.body, one.dup) for one in got[:2]] == [(name, True) for name in names[:2]]
    while more := peer.send(*[answer(one.packet_id) for one in got[-2:] for answer in ANSWERS[qos]]).take_deliveries():
        got += more
    assert [one.body for one in got] == names
    peer.vanish()
    assert world.connect(b"s", clean=False).take() == [connack(session_present=True)]
    world.close()


def test_what_a_kill_brings_again_is_in_flight_within_the_limit(tmp_path):
    world = World(tmp_path / "before", inflight_max=2)
    names = [b"r/%d" % i for i in range(5)]
    world.client(b"p").send(*[publish(one, one, qos=1, packet_id=i + 1, retain=True) for i, one in enumerate(names)])
    peer = world.client(b"s", clean=False)
    assert len(peer.send(subscribe(1, (b"r/#", 1))).take_deliveries()) == 2
    for number in (2, 3, 4):  # acknowledgements that overtake the first message are not written down
        assert len(peer.send(puback(number)).take_deliveries()) == 1
    world.data_dir = shutil.copytree(world.data_dir, tmp_path / "after")
    world.close()
    world.open()
    peer = world.connect(b"s", clean=False)
    got = peer.take_deliveries()
    assert [one.body for one in got] == names[:2]
    for i in range(5):
        got += peer.send(puback(got[i].packet_id)).take_deliveries()
    assert [(one.body, one.dup) for one in got] == [(name, True) for name in names]
    world.close()


def test_a_subscription_made_anew_is_owed_all_retained_messages_once_more(make_world):
    world = make_world(inflight_max=2)
    names = [b"r/%d" % i for i in range(4)]
    world.client(b"p").send(*[publish(name, name, qos=1, packet_id=1, retain=True) for name in names])
    peer = world.client(b"s", clean=False)
    peer.send(subscribe(1, (b"r/#", 1)), unsubscribe(2, b"r/#"), subscribe(3, (b"r/#", 1)))
    got = peer.take_deliveries()
    while more := peer.send(*[puback(one.packet_id) for one in got[-2:]]).take_deliveries():
        got += more
    assert [one.body for one in got[-4:]] == names
    peer.vanish()
    assert world.connect(b"s", clean=False).take() == [connack(session_present=True)]


def test_retained_messages_survive_the_process(world):
    world.client(b"p").send(publish(b"r", b"kept", qos=1, packet_id=1, retain=True))
    world.close()
    world.open()
    assert world.client(b"s").send(subscribe(1, (b"#", 0))).take()[1:] == [publish(b"r", b"kept", retain=True)]


def test_retained_messages_that_were_not_acknowledged_come_again_after_a_kill(make_world):
    world = make_world(inflight_max=4)
    names = [b"r/%d" % i for i in range(6)]
    world.client(b"p").send(*[publish(name, name, qos=1, packet_id=1, retain=True) for name in names])
    world.client(b"p").send(publish(b"r/zero", b"at most once", retain=True))
    subscriber = world.client(b"s", clean=False)
    first = subscriber.send(subscribe(1, (b"r/#", 1))).take_deliveries()
    first += subscriber.send(puback(first[0].packet_id)).take_deliveries()
    assert [d.body for d in first] == names[:5]
    for sent_before in (names[1:5], names[4:6]):
        world.close()
        world.open()
        again = world.connect(b"s", clean=False)
        got = again.take_deliveries()
        while more := again.send(*[puback(d.packet_id) for d in got if d.body in sent_before[:-1]]).take_deliveries():
            got += more
        assert [d.body for d in got if d.dup] == sent_before
        unsent = [(names[5], 1), (b"at most once", 0)] if sent_before[0] == names[1] else []
        assert [(d.body, d.qos) for d in got if not d.dup] == unsent
    again.send(puback(got[-1].packet_id))
    world.close()
    world.open()
    assert world.connect(b"s", clean=False).take() == [connack(session_present=True)]


@pytest.mark.parametrize("is_killed", [True, False])
@pytest.mark.parametrize("newer", [b"new", b""])
def test_retained_message_in_flight_comes_again_before_what_replaced_it(world, newer, is_killed):  # MQTT-4.4.0-1
    publisher = world.client(b"p").send(publish(b"r", b"old", qos=1, packet_id=1, retain=True))
    subscriber = world.client(b"s", (b"r", 1), clean=False)
    publisher.send(publish(b"r", newer, qos=1, packet_id=2, retain=True))
    for _ in range(2):
        if is_killed:
            world.close()
            world.open()
        else:
            subscriber.vanish()
        subscriber = world.connect(b"s", clean=False)
        got = subscriber.take_deliveries()
        assert [(d.body, d.retain, d.dup) for d in got] == [(b"old", True, True), (newer, False, True)]
    subscriber.send(*[puback(d.packet_id) for d in got])
    world.close()
    world.open()
    assert world.connect(b"s", clean=False).take_deliveries() == []


def test_newer_message_that_was_acknowledged_before_the_retained_one_comes_after_it(world):
    publisher = world.client(b"p").send(publish(b"r", b"old", qos=1, packet_id=1, retain=True))
    subscriber = world.client(b"s", (b"r", 1), clean=False)
    publisher.send(publish(b"r", b"new", qos=1, packet_id=2, retain=True))
    subscriber.send(puback(2))
    world.close()
    world.open()
    assert world.connect(b"s", clean=False).bodies() == [b"old", b"new"]


def test_retained_message_that_was_replaced_before_it_was_sent_is_not_sent(make_world):
    world = make_world(inflight_max=1)
    publisher = world.client(b"p")
    publisher.send(*[publish(b"r/%d" % i, b"old", qos=1, packet_id=1, retain=True) for i in range(3)])
    subscriber = world.client(b"s", clean=False).send(subscribe(1, (b"r/#", 1)))
    publisher.send(publish(b"r/1", b"new", qos=1, packet_id=2, retain=True))
    subscriber.vanish()
    world.close()
    world.open()
    subscriber = world.connect(b"s", clean=False)
    got = subscriber.take_deliveries()
    while more := subscriber.send(puback(got[-1].packet_id)).take_deliveries():
        got += more
    assert sorted((d.topic, d.body) for d in got) == [(b"r/0", b"old"), (b"r/1", b"new"), (b"r/2", b"old")]


def test_replaced_retained_message_that_the_log_has_no_more_is_left_out(world):
    publisher = world.client(b"p").send(publish(b"r", b"old", qos=1, packet_id=1, retain=True))
    world.client(b"s", (b"r", 1), clean=False)
    for _ in range(20):
        publisher.send(publish(b"other", b"x" * 100_000, qos=1, packet_id=3))
    publisher.send(publish(b"r", b"new", qos=1, packet_id=2, retain=True))
    world.close()
    world.open()
    assert world.broker.retire(NOW_MS + 1_000 * 3_600_000)
    assert world.connect(b"s", clean=False).bodies() == [b"new"]
    assert world.counts.dropped == {"expired": 1}


def test_each_subscribe_begins_anew_with_the_retained_messages(make_world):
    world = make_world(inflight_max=3)
    world.client(b"p").send(*[publish(b"r/%d" % i, b"%d" % i, qos=1, packet_id=1, retain=True) for i in range(5)])
    subscriber = world.client(b"s", clean=False)
    subscriber.send(subscribe(1, (b"r/#", 1)))
    subscriber.send(puback(1), puback(2), subscribe(2, (b"r/#", 1)))
    got = subscriber.take_deliveries()
    while more := subscriber.send(*[puback(d.packet_id) for d in got[-3:]]).take_deliveries():
        got += more
    assert [d.body for d in got[-5:]] == [b"0", b"1", b"2", b"3", b"4"]
    subscriber.vanish()
    assert world.connect(b"s", clean=False).take_deliveries() == []


def test_catch_up_goes_on_where_it_was_acknowledged(make_world):
    world = make_world(inflight_max=4)
    names = [b"r/%02d" % i for i in range(40)]
    world.client(b"p").send(*[publish(name, name, qos=1, packet_id=1, retain=True) for name in names])
    world.client(b"s", (b"r/#", 1), clean=False).vanish()
    acknowledged = []
    for turn in range(20):
        if turn % 3 == 2:
            world.close()
            world.open()
        subscriber = world.connect(b"s", clean=False)
        got = subscriber.take_deliveries()
        assert [d.body for d in got] == names[len(acknowledged) : len(acknowledged) + 4]
        assert all(d.dup for d in got)
        acknowledged += [d.body for d in got[:2]]
        subscriber.send(*[puback(d.packet_id) for d in got[:2]])
        subscriber.vanish()
    assert acknowledged == names
    world.close()
    world.open()
    assert world.connect(b"s", clean=False).take_deliveries() == []


def test_retained_message_that_comes_after_the_subscription_is_not_owed(world):
    subscriber = world.client(b"s", (b"r", 1), clean=False)
    world.client(b"p").send(publish(b"r", b"x", qos=1, packet_id=1, retain=True))
    subscriber.send(puback(1))
    world.close()
    world.open()
    assert world.connect(b"s", clean=False).take_deliveries() == []


def test_full_disk_holds_retained_messages_of_a_durable_session_back_until_it_comes_again(make_world, monkeypatch):
    world = make_world(inflight_max=2)
    world.client(b"p").send(*[publish(b"r/%d" % i, b"%d" % i, qos=1, packet_id=1, retain=True) for i in range(5)])
    subscriber = world.client(b"s", clean=False).send(subscribe(1, (b"r/#", 1)))
    journal = world.broker.journal("mqtt_retained")
    with monkeypatch.context() as patch:
        patch.setattr(type(journal._generation), "append_many", refuse)
        assert subscriber.send(puback(1), puback(2)).bodies() == [b"0", b"1"]
    subscriber.vanish()
    subscriber = world.connect(b"s", clean=False)
    got = subscriber.take_deliveries()
    while more := subscriber.send(*[puback(d.packet_id) for d in got[-2:]]).take_deliveries():
        got += more
    assert [(d.body, d.dup) for d in got] == [(b"2", False), (b"3", False), (b"4", False)]
    world.close()
    world.open()
    assert world.connect(b"s", clean=False).bodies() == []


def refuse(*_args):
    raise DiskFullError("no room")


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_too_many_and_too_long_retained_messages_are_refused(make_world, qos):
    world = make_world(retained_count_max=2, retained_body_bytes_max=5)
    subscriber = world.client(b"s", (b"#", 0))
    wanted = [(b"a", b"1"), (b"b", b"2"), (b"c", b"3"), (b"a", b"4"), (b"b", b"too long"), (b"b", b"")]
    peer = enter(world, b"p")
    peer.send(*[publish_5(*one, qos=qos, packet_id=i + 1, retain=True) for i, one in enumerate(wanted)])
    world.turn()
    codes = [data[4] if len(data) > 4 else 0 for data in peer.take()]
    assert codes == ([0, 0, 0x97, 0, 0x97, 0] if qos else [])
    peer.send(publish_5(b"d", b"5", retain=True))  # where one was cleared
    assert subscriber.bodies() == [b"1", b"2", b"4", b"", b"5"]
    assert sorted(world.connect(b"l").send(subscribe(1, (b"#", 0))).bodies()) == [b"4", b"5"]
    old = world.client(b"o").send(publish(b"e", b"6", qos=1, packet_id=1, retain=True))
    assert old.take() == [puback(1)]
    assert world.counts.refused == {"retained_quota_exceeded": 3}
    world.door.reload(GatewaySettings(mqtt=MqttSettings()))
    old.send(publish(b"e", b"6 and more", retain=True))
    assert subscriber.bodies() == [b"6 and more"]


@pytest.mark.parametrize(("qos", "is_clean"), [(0, True), (1, False)])
def test_retained_messages_come_some_in_each_turn(make_world, qos, is_clean):
    world = make_world(inflight_max=1_000)
    world.client(b"p").send(*[publish(b"r/%d" % i, b"x", qos=1, packet_id=i + 1, retain=True) for i in range(600)])
    look_ns = RETAINED_TURN_NS // 100
    world.door.delivery.now_ns = iter(range(0, 1 << 40, look_ns)).__next__
    subscriber = world.client(b"s", clean=is_clean)
    subscriber.begin(subscribe(1, (b"r/#", qos)))
    counts = []
    while sum(counts) < 600:
        world.step()
        counts.append(len(subscriber.take_deliveries()))
    assert 50 < max(counts) <= 100


def test_subscriber_of_many_retained_messages_does_not_take_the_turn_of_another(make_world):
    world = make_world(inflight_max=1_000)
    world.client(b"p").send(*[publish(b"r/%d" % i, b"x", qos=1, packet_id=i + 1, retain=True) for i in range(600)])
    world.door.delivery.now_ns = iter(range(0, 1 << 40, RETAINED_TURN_NS // 100)).__next__
    world.client(b"first", (b"r/#", 0))  # which opens the queue
    subscribers = [world.client(b"s%d" % i) for i in range(2)]
    for one in subscribers:
        one.begin(subscribe(1, (b"r/#", 0)))
    counts = [0, 0]
    apart = []
    while sum(counts) < 1_200:
        world.step()
        counts = [count + len(one.take_deliveries()) for count, one in zip(counts, subscribers, strict=True)]
        apart.append(abs(counts[0] - counts[1]))
    assert counts == [600, 600]
    assert max(apart) <= 100
