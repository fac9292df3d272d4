"""Messages that go out at QoS 2: each comes once, whatever breaks off."""

from __future__ import annotations

import shutil
from collections import Counter

import pytest
from hypothesis import given, settings, strategies as st

from core.errors import DiskFullError
from core.store.sync_plan import sync_now
from gateway.mqtt import exact
from tests.support import mqtt
from tests.support.engines import MAKERS
from tests.support.exactly_once import restart
from tests.support.mqtt import connack, puback, pubcomp, publish, pubrec, pubrel
from tests.support.mqtt_door import World


def test_message_at_qos_2_is_sent_in_two_steps(world):  # MQTT-4.3.3-1
    subscriber = world.client(b"s", (b"t", 2))
    world.client(b"p").send(publish(b"t", b"x", qos=2, packet_id=1))
    (got,) = subscriber.take_deliveries()
    assert (got.qos, got.dup) == (2, False)
    assert subscriber.send(pubrec(got.packet_id)).take() == [pubrel(got.packet_id)]
    assert subscriber.send(pubcomp(got.packet_id)).take() == []
    subscriber.vanish()


def test_pubrec_is_answered_each_time_that_it_comes(world):  # MQTT-4.3.3-1
    subscriber = world.client(b"s", (b"t", 2))
    world.client(b"p").send(publish(b"t", b"x", qos=2, packet_id=1))
    (got,) = subscriber.take_deliveries()
    assert subscriber.send(pubrec(got.packet_id), pubrec(got.packet_id)).take() == [pubrel(got.packet_id)] * 2
    assert subscriber.send(pubcomp(got.packet_id), pubrec(got.packet_id)).take() == [pubrel(got.packet_id)]


def test_acknowledgement_of_another_kind_ends_nothing(world):
    subscriber = world.client(b"s", (b"t", 2), clean=False)
    world.client(b"p").send(publish(b"t", b"two", qos=2, packet_id=1), publish(b"t", b"one", qos=1, packet_id=2))
    two, one = subscriber.take_deliveries()
    subscriber.send(puback(two.packet_id), pubcomp(two.packet_id), pubcomp(one.packet_id)).vanish()
    again = world.connect(b"s", clean=False).take_deliveries()
    assert [(d.packet_id, d.qos, d.dup) for d in again] == [(two.packet_id, 2, True), (one.packet_id, 1, True)]


@pytest.mark.parametrize("is_killed", [True, False])
def test_what_the_client_has_is_released_again_and_not_sent_again(world, is_killed):  # MQTT-4.4.0-1
    subscriber = world.client(b"s", (b"t", 2), clean=False)
    world.client(b"p").send(*[publish(b"t", b"%d" % i, qos=2, packet_id=i) for i in range(1, 6)])
    ids = [d.packet_id for d in subscriber.take_deliveries()]
    subscriber.send(pubrec(ids[1]), pubrec(ids[2]), pubcomp(ids[2]), pubrec(ids[3]))
    for _ in range(2):
        if is_killed:
            restart(world)
        else:
            subscriber.vanish()
        subscriber = world.connect(b"s", clean=False)
        packets = subscriber.take()
        assert packets[0] == connack(session_present=True)
        assert [one for one in packets[1:] if one[0] >> 4 == 6] == [pubrel(ids[1]), pubrel(ids[3])]
        got = mqtt.deliveries(b"".join(packets))
        assert [(d.body, d.packet_id, d.qos, d.dup) for d in got] == [(b"1", ids[0], 2, True), (b"5", ids[4], 2, True)]
    subscriber.send(pubcomp(ids[1]), pubcomp(ids[3]), pubrec(ids[0]), pubrec(ids[4]), pubcomp(ids[0]), pubcomp(ids[4]))
    world.client(b"p").send(publish(b"t", b"6", qos=2, packet_id=6))
    assert subscriber.bodies() == [b"6"]


def test_mixed_qualities_come_again_after_a_kill_and_nothing_is_lost_by_a_second(world):
    subscriber = world.client(b"s", (b"t", 2), clean=False)
    world.client(b"p").send(*[publish(b"t", b"%d" % i, qos=1 + i % 2, packet_id=i) for i in range(1, 9)])
    got = subscriber.take_deliveries()
    assert [d.qos for d in got] == [2, 1] * 4
    restart(world)
    subscriber = world.connect(b"s", clean=False)
    got = subscriber.take_deliveries()
    assert sorted(d.body for d in got) == [b"%d" % i for i in range(1, 9)]
    for one in got:
        if one.qos == 2:
            subscriber.send(pubrec(one.packet_id), pubcomp(one.packet_id))
    restart(world)
    subscriber = world.connect(b"s", clean=False)
    assert [(d.body, d.qos) for d in subscriber.take_deliveries()] == [(b"%d" % i, 1) for i in (2, 4, 6, 8)]


@pytest.mark.parametrize("kills", [1, 2])
def test_what_was_completed_out_of_order_before_a_kill_does_not_come_after_the_next(world, kills):
    subscriber = world.client(b"s", (b"t", 2), clean=False)
    world.client(b"p").send(*[publish(b"t", b"%d" % i, qos=2, packet_id=i) for i in (1, 2)])
    _, second = subscriber.take_deliveries()
    subscriber.send(pubrec(second.packet_id), pubcomp(second.packet_id))
    for _ in range(kills):
        restart(world)
    subscriber = world.connect(b"s", clean=False)
    assert subscriber.bodies() == [b"1"]
    world.client(b"p").send(publish(b"t", b"3", qos=2, packet_id=3))
    assert subscriber.bodies() == [b"3"]
    restart(world)
    assert world.connect(b"s", clean=False).bodies() == [b"1", b"3"]


def test_ended_subscription_leaves_nothing_to_the_next_owner_of_its_slot(world):
    subscriber = world.client(b"s", (b"t", 2), clean=False)
    world.client(b"p").send(publish(b"t", b"x", qos=2, packet_id=1))
    (got,) = subscriber.take_deliveries()
    subscriber.send(mqtt.unsubscribe(2, b"t"), pubrec(got.packet_id), pubcomp(got.packet_id))
    world.turn()
    world.turn()
    subscriber.send(mqtt.subscribe(3, (b"t", 2)), mqtt.subscribe(4, (b"u", 2)), mqtt.subscribe(5, (b"v", 2))).take()
    restart(world)
    assert world.connect(b"s", clean=False).take() == [connack(session_present=True)]


def test_a_client_that_has_the_window_full_is_sent_no_more(make_world):
    world = make_world(inflight_max=2)
    subscriber = world.client(b"s", (b"t", 2))
    world.client(b"p").send(*[publish(b"t", b"%d" % i, qos=2, packet_id=i) for i in range(1, 5)])
    first = subscriber.take_deliveries()
    assert [d.body for d in first] == [b"1", b"2"]
    assert subscriber.send(*[pubrec(d.packet_id) for d in first]).take_deliveries() == []
    assert subscriber.send(pubcomp(first[0].packet_id)).bodies() == [b"3"]


class ExactClient:
    """A client with a session that it keeps itself: it takes each packet identifier once until it is released."""

    def __init__(self):
        self.held = set()
        self.got = []
        self.answers = []

    def take(self, packets):
        for data in packets:
            kind = data[0] >> 4
            if kind == 3:
                one = mqtt.parse_publish(data)
                if one.packet_id not in self.held:
                    self.held.add(one.packet_id)
                    self.got.append(one.body)
                self.answers.append(pubrec(one.packet_id))
            elif kind == 6:
                packet_id = int.from_bytes(data[2:4], "big")
                self.held.discard(packet_id)
                self.answers.append(pubcomp(packet_id))


class ExactSender:
    """A publisher that keeps its own session: it goes on with what was not completed."""

    def __init__(self):
        self.count = 0
        self.unsent = {}  # packet identifier -> body
        self.unreleased = []

    def next(self):
        self.count += 1
        packet_id = self.count % 50 + 1
        self.unsent[packet_id] = b"%d" % self.count
        return publish(b"t", b"%d" % self.count, qos=2, packet_id=packet_id)

    def again(self):
        return [publish(b"t", body, qos=2, packet_id=key, dup=True) for key, body in self.unsent.items()] + [
            pubrel(key) for key in self.unreleased
        ]

    def take(self, packets):
        answers = []
        for data in packets:
            packet_id = int.from_bytes(data[2:4], "big")
            if data[0] == 0x50 and self.unsent.pop(packet_id, None) is not None:
                self.unreleased.append(packet_id)
                answers.append(pubrel(packet_id))
            elif data[0] == 0x70 and packet_id in self.unreleased:
                self.unreleased.remove(packet_id)
        return answers


STEPS = st.lists(
    st.tuples(st.sampled_from(["publish", "publish", "answer", "lose", "kill", "release"]), st.integers(1, 4)),
    max_size=30,
)


@pytest.mark.parametrize("make_engine", MAKERS.values(), ids=MAKERS)
@settings(max_examples=40, deadline=None)
@given(steps=STEPS)
def test_each_message_comes_exactly_once_whatever_breaks_off(tmp_path_factory, make_engine, steps):
    world = World(tmp_path_factory.mktemp("exact"), make_engine=make_engine)
    try:
        client, sender = ExactClient(), ExactSender()
        subscriber = world.client(b"s", (b"t", 2), clean=False)
        publisher = world.client(b"p", clean=False)
        for action, count in [*steps, ("release", 4), ("answer", 99), ("answer", 99), ("answer", 99)]:
            if action == "publish":
                for _ in range(count):
                    publisher.send(sender.next())
            elif action == "release":
                publisher.send(*sender.take(publisher.take()))
            elif action == "answer":
                client.take(subscriber.take()[:])
                answers, client.answers = client.answers[:count], client.answers[count:]
                subscriber.send(*answers)
            else:
                if action == "kill":
                    restart(world)
                else:
                    subscriber.vanish()
                    publisher.vanish()
                client.answers.clear()
                subscriber = world.connect(b"s", clean=False)
                publisher = world.connect(b"p", clean=False)
                publisher.send(*sender.again())
        client.take(subscriber.take())
        assert Counter(client.got) == Counter(b"%d" % i for i in range(1, sender.count + 1))
        assert client.got == sorted(client.got, key=int)
    finally:
        world.close()


ENDINGS = {
    "unsubscribed": mqtt.unsubscribe(1, b"t"),
    "at QoS 1": mqtt.subscribe(1, (b"t", 1)),
    "at QoS 0": mqtt.subscribe(1, (b"t", 0)),
}


def leave_unanswered(world, folder, act):
    """Change a session, kill the process before that is written down, and go on with what it left."""
    world.flushes_by_itself = False
    act()
    world.data_dir = shutil.copytree(world.data_dir, folder)
    world.close()
    world.flushes_by_itself = True
    world.open()


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("is_complete", [False, True])
def test_what_a_client_has_does_not_come_again_where_a_kill_leaves_its_subscription(tmp_path, ending, is_complete):
    world = World(tmp_path / "before")
    peer = world.client(b"a", (b"t", 2), clean=False)
    world.client(b"p").send(publish(b"t", b"once", qos=2, packet_id=1), pubrel(1))
    (got,) = peer.take_deliveries()
    assert peer.send(pubrec(got.packet_id)).take() == [pubrel(got.packet_id)]
    packets = [ENDINGS[ending], *([pubcomp(got.packet_id)] if is_complete else [])]
    leave_unanswered(world, tmp_path / "after", lambda: peer.send(*packets))
    peer = world.connect(b"a", clean=False)
    assert peer.take() == [connack(session_present=True), *([] if is_complete else [pubrel(got.packet_id)])]
    world.client(b"p").send(publish(b"t", b"next", qos=2, packet_id=1), pubrel(1))
    assert peer.bodies() == [b"next"]
    world.close()


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_a_client_completed_does_not_come_again_where_its_subscription_was_all_that_changed(tmp_path, ending):
    world = World(tmp_path / "before")
    peer = world.client(b"a", (b"t", 2), clean=False)
    world.client(b"p").send(publish(b"t", b"once", qos=2, packet_id=1), pubrel(1))
    (got,) = peer.take_deliveries()
    peer.send(pubrec(got.packet_id))
    restart(world)
    peer = world.connect(b"a", clean=False)
    leave_unanswered(world, tmp_path / "after", lambda: peer.send(ENDINGS[ending], pubcomp(got.packet_id)))
    assert world.connect(b"a", clean=False).take() == [connack(session_present=True)]
    world.close()


@pytest.mark.parametrize("ending", [*ENDINGS, "clean start"])
@pytest.mark.parametrize("count", [25, 400])  # by which the journal would be compacted, and again and again
def test_what_a_client_has_outlives_compactions_between_an_end_and_its_commit(tmp_path, ending, count, monkeypatch):
    monkeypatch.setattr(exact, "COMPACT_BYTES_MIN", 1_000)
    world = World(tmp_path / "before")
    peer = world.client(b"a", (b"t", 2), clean=False)
    busy = world.client(b"p", clean=False)
    busy.send(publish(b"t", b"once", qos=2, packet_id=1), pubrel(1))
    (got,) = peer.take_deliveries()
    assert peer.send(pubrec(got.packet_id)).take() == [pubrel(got.packet_id)]

    def end_and_compact():
        peer.send(ENDINGS[ending]) if ending in ENDINGS else world.connect(b"a")
        for i in range(2, 2 + count):
            busy.send(publish(b"other", b"", qos=2, packet_id=i), pubrel(i))
        sync_now(world.store.journal("mqtt_exact"))  # what was compacted is the journal

    leave_unanswered(world, tmp_path / "after", end_and_compact)
    peer = world.connect(b"a", clean=False)
    assert peer.take() == [connack(session_present=True), pubrel(got.packet_id)]
    world.close()


@pytest.mark.parametrize("ending", [*ENDINGS, "clean start"])
@pytest.mark.parametrize("is_complete", [False, True])
def test_what_a_client_has_is_written_after_a_full_disk_though_its_end_is_not_durable(tmp_path, ending, is_complete):
    world = World(tmp_path / "before")
    peer = world.client(b"a", (b"t", 2), clean=False)
    busy = world.client(b"p", (b"t", 2), clean=False)
    busy.send(*[publish(b"t", b"%d" % i, qos=2, packet_id=i) for i in (1, 2)], pubrel(1), pubrel(2))
    first, second = (one.packet_id for one in peer.take_deliveries())
    assert peer.send(pubrec(first), pubrec(second)).take() == [pubrel(first), pubrel(second)]

    def end_and_rewrite():
        peer.send(ENDINGS[ending], *[pubcomp(first)] * is_complete) if ending in ENDINGS else world.connect(b"a")
        world.door.exact._kept.fall_behind(DiskFullError("full"))
        busy.send(*[pubrec(one.packet_id) for one in busy.take_deliveries()])  # written with all else
        sync_now(world.store.journal("mqtt_exact"))

    leave_unanswered(world, tmp_path / "after", end_and_rewrite)
    peer = world.connect(b"a", clean=False)
    done = [first] if is_complete and ending in ENDINGS else []
    assert peer.take() == [connack(session_present=True), *(pubrel(one) for one in (first, second) if one not in done)]
    world.client(b"q").send(publish(b"t", b"next", qos=2, packet_id=1), pubrel(1))
    assert peer.bodies() == [b"next"]
    world.close()


def test_a_session_whose_subscription_went_to_qos_0_after_a_kill_is_compacted(tmp_path, monkeypatch):
    monkeypatch.setattr(exact, "COMPACT_BYTES_MIN", 1_000)
    world = World(tmp_path)
    peer = world.client(b"a", (b"t", 2), clean=False)
    world.client(b"p").send(publish(b"t", b"once", qos=2, packet_id=1), pubrel(1))
    (got,) = peer.take_deliveries()
    peer.send(pubrec(got.packet_id))
    restart(world)
    peer = world.connect(b"a", clean=False)
    peer.send(mqtt.subscribe(1, (b"t", 0)))
    busy = world.client(b"p", clean=False)
    for i in range(1, 100):
        assert busy.send(publish(b"other", b"", qos=2, packet_id=i)).take() == [pubrec(i)]
        busy.send(pubrel(i)).take()
    world.close()


def test_a_session_that_a_kill_leaves_is_as_it_was_at_qos_2_both_ways(tmp_path):
    world = World(tmp_path / "before")
    peer = world.client(b"a", (b"t", 2), clean=False)
    reader = world.client(b"r", (b"in", 2), clean=False)
    world.client(b"p").send(publish(b"t", b"once", qos=2, packet_id=1), pubrel(1))
    (got,) = peer.take_deliveries()
    peer.send(pubrec(got.packet_id), publish(b"in", b"taken", qos=2, packet_id=9)).take()
    assert reader.bodies() == [b"taken"]
    leave_unanswered(world, tmp_path / "after", lambda: world.connect(b"a"))  # a clean start
    peer = world.connect(b"a", clean=False)
    assert peer.take() == [connack(session_present=True), pubrel(got.packet_id)]
    assert peer.send(publish(b"in", b"taken", qos=2, packet_id=9, dup=True)).take() == [pubrec(9)]
    assert world.connect(b"r", clean=False).bodies() == [b"taken"]  # which it had not acknowledged, once
    world.close()


def test_a_session_that_was_ended_for_good_leaves_nothing_of_qos_2(tmp_path):
    world = World(tmp_path)
    peer = world.client(b"a", (b"t", 2), clean=False)
    world.client(b"p").send(publish(b"t", b"once", qos=2, packet_id=1), pubrel(1))
    peer.send(pubrec(peer.take_deliveries()[0].packet_id), publish(b"in", b"taken", qos=2, packet_id=9))
    world.client(b"a").vanish()
    peer = world.client(b"a", (b"t", 2), clean=False)
    peer.vanish()
    world.close()
    world.open()
    peer = world.connect(b"a", clean=False)
    assert peer.take() == [connack(session_present=True)]
    reader = world.client(b"r", (b"in", 0))
    peer.send(publish(b"in", b"another", qos=2, packet_id=9))
    assert reader.bodies() == [b"another"]
    world.close()
