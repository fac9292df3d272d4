from __future__ import annotations

import random
import shutil
from collections import Counter

import pytest
from hypothesis import given, settings, strategies as st

from core.errors import DataFolderUnusableError, DiskFullError
from core.lmq.queue_name import mqtt_queue_name
from core.properties import WAITING_FOR, encode_properties
from core.queues.crossroads import Lead
from core.schedule.slots import encode_due
from core.store.embedded import EmbeddedEngine
from gateway.mqtt import exact
from gateway.mqtt.exact import ExactJournal
from gateway.mqtt.inflight import EXACT_COMPLETE, EXACT_RECEIVED, EXACT_SENT
from gateway.mqtt.session import Session
from tests.support import mqtt
from tests.support.mqtt import connack, puback, pubcomp, publish, pubrec, pubrel
from tests.support.mqtt_door import World
from tests.support.simulated_disk import LETTER, SimulatedDisk
from tests.support.stores import FullJournal, MemoryJournal


def restart(world):
    world.close()
    world.open()


# What comes in


def test_message_at_qos_2_is_taken_in_two_steps(world):  # MQTT-4.3.3-2
    subscriber = world.client(b"s", (b"t", 0))
    publisher = world.client(b"p").send(publish(b"t", b"x", qos=2, packet_id=7))
    assert publisher.take() == [pubrec(7)]
    assert subscriber.bodies() == [b"x"]
    assert publisher.send(pubrel(7)).take() == [pubcomp(7)]


def test_message_that_is_sent_again_is_answered_and_not_taken_twice(world):
    subscriber = world.client(b"s", (b"t", 0))
    publisher = world.client(b"p").send(*[publish(b"t", b"x", qos=2, packet_id=7, dup=i > 0) for i in range(3)])
    assert publisher.take() == [pubrec(7)] * 3
    assert publisher.send(publish(b"t", b"x", qos=2, packet_id=7, dup=True)).take() == [pubrec(7)]
    assert subscriber.bodies() == [b"x"]
    publisher.send(pubrel(7), pubrel(7), publish(b"t", b"next", qos=2, packet_id=7))
    assert publisher.take() == [pubcomp(7), pubcomp(7), pubrec(7)]
    assert subscriber.bodies() == [b"next"]


def test_answers_come_in_the_order_of_the_messages(world):  # MQTT-4.6.0-3
    publisher = world.client(b"p")
    publisher.send(
        *[publish(b"t", b"x", qos=qos, packet_id=i + 1) for i, qos in enumerate((1, 2, 0, 2, 1)) if qos or i]
    )
    assert publisher.take() == [puback(1), pubrec(2), pubrec(4), puback(5)]


def test_pubrel_of_nothing_is_answered(world):
    assert world.client(b"p").send(pubrel(9)).take() == [pubcomp(9)]


@pytest.mark.parametrize("is_clean", [True, False])
def test_what_was_taken_is_known_as_long_as_the_session(world, is_clean):
    subscriber = world.client(b"s", (b"t", 0))
    world.client(b"p", clean=is_clean).send(publish(b"t", b"x", qos=2, packet_id=7)).vanish()
    again = world.client(b"p", clean=is_clean).send(publish(b"t", b"x", qos=2, packet_id=7, dup=True))
    assert again.take() == [pubrec(7)]
    assert subscriber.bodies() == [b"x"] * (2 if is_clean else 1)


def test_packet_identifier_that_its_client_may_use_again_is_free_after_a_power_cut(tmp_path):
    (tmp_path / "before").mkdir()
    disk = SimulatedDisk(tmp_path / "before")
    with disk.watching():
        world = World(disk.root / "data")
        world.client(b"keeper", (b"t", 1), clean=False).vanish()
        publisher = world.client(b"p", clean=False).send(publish(b"t", b"one", qos=2, packet_id=7))
        assert publisher.take() == [pubrec(7)]
        world.flushes_by_itself = False
        assert publisher.send(pubrel(7)).take() == []  # not before it is on the disk that 7 is free
        world.flushes_by_itself = True
        world.turn()
        assert publisher.take() == [pubcomp(7)]
        disk.cut(random.Random(0), LETTER, tmp_path / "after")
        world.close()
    world = World(tmp_path / "after" / "data")
    publisher = world.client(b"p", clean=False).send(publish(b"t", b"two", qos=2, packet_id=7))
    assert publisher.take() == [pubrec(7)]
    assert world.connect(b"keeper", clean=False).bodies() == [b"one", b"two"]
    world.close()


def test_pubcomp_comes_before_the_end_of_a_client_that_says_farewell_with_its_pubrel(world):
    publisher = world.client(b"p", clean=False).send(publish(b"t", b"x", qos=2, packet_id=7))
    assert publisher.take() == [pubrec(7)]
    publisher.send(pubrel(7), mqtt.DISCONNECT)
    assert publisher.take() == [pubcomp(7)]
    assert publisher.is_closed


def test_what_was_taken_is_known_after_a_kill(world):
    keeper = world.client(b"k", (b"t", 2), clean=False)
    publisher = world.client(b"p", clean=False).send(*[publish(b"t", b"%d" % i, qos=2, packet_id=i) for i in (1, 2, 3)])
    publisher.send(pubrel(2))
    keeper.vanish()
    for _ in range(2):
        restart(world)
        publisher = world.client(b"p", clean=False)
        publisher.send(publish(b"t", b"1", qos=2, packet_id=1, dup=True))
        publisher.send(publish(b"t", b"3", qos=2, packet_id=3, dup=True))
        assert publisher.take() == [pubrec(1), pubrec(3)]
    publisher.send(publish(b"t", b"new", qos=2, packet_id=2))
    keeper = world.connect(b"k", clean=False)
    assert keeper.bodies() == [b"1", b"2", b"3", b"new"]


def test_message_that_was_noted_and_not_appended_is_taken_after_a_kill(world):
    keeper = world.client(b"k", (b"t", 1), clean=False)
    world.client(b"p", clean=False).send(publish(b"t", b"1", qos=2, packet_id=1))
    session = world.door.sessions.find(b"p")
    world.door.exact.note_taken(session, [2, 3], world.broker.end_place)  # and killed here
    restart(world)
    publisher = world.client(b"p", clean=False)
    publisher.send(*[publish(b"t", b"%d" % i, qos=2, packet_id=i, dup=True) for i in (1, 2, 3)])
    assert publisher.take() == [pubrec(1), pubrec(2), pubrec(3)]
    keeper = world.connect(b"k", clean=False)
    assert keeper.bodies() == [b"1", b"2", b"3"]


def test_batch_that_a_kill_broke_off_is_taken_from_there_on(world):
    keeper = world.client(b"k", (b"t", 1), clean=False)
    publisher = world.client(b"p", clean=False)
    session = world.door.sessions.find(b"p")
    world.door.exact.note_taken(session, [1, 2], world.broker.end_place)
    session.taken = None
    publisher.send(publish(b"t", b"1", qos=2, packet_id=1))  # as if it were the first of the two
    world.client(b"q").send(publish(b"u", b"x", qos=2, packet_id=2))  # which is none of them
    restart(world)
    publisher = world.client(b"p", clean=False)
    publisher.send(*[publish(b"t", b"%d" % i, qos=2, packet_id=i, dup=True) for i in (1, 2)])
    assert publisher.take() == [pubrec(1), pubrec(2)]
    keeper = world.connect(b"k", clean=False)
    assert keeper.bodies() == [b"1", b"2"]


class KilledBehindCopies(EmbeddedEngine):
    """An engine that keeps what a kill would leave of its folder once something was appended."""

    kept = None

    def append_batch(self, batch, now_ms):
        super().append_batch(batch, now_ms)
        if self.kept is not None and not self.kept.exists():
            shutil.copytree(self.store.data_dir, self.kept)


class AlsoLater:
    """A crossroad whose messages go on, and wait somewhere, too."""

    def __init__(self, world, name):
        self.timer = world.broker.timer
        self.name = name

    def lead(self, route_properties, properties, flag, born_ms):
        return Lead((self.name,), ("later",), self.hold)

    def hold(self, waits, now_ms):
        due_ms, queue_id = self.timer.admit(now_ms + 3_600_000, now_ms)
        return [self.timer.route(queue_id, encode_properties([(WAITING_FOR, b"later")]) + encode_due(due_ms))]


def let_copies_wait(world):
    """Have each message to `t` come to another topic later, too."""
    name = mqtt_queue_name(b"t")
    world.broker.detours.crossroads.add(world.broker.find_queue(name), AlsoLater(world, name))


def test_packet_identifier_is_free_again_of_a_message_of_which_a_copy_waits(world):
    world.client(b"keeper", (b"t", 1), clean=False).vanish()
    let_copies_wait(world)
    publisher = world.client(b"p", clean=False).send(publish(b"t", b"one", qos=2, packet_id=7), pubrel(7))
    assert publisher.take() == [pubrec(7), pubcomp(7)]
    restart(world)
    publisher = world.client(b"p", clean=False).send(publish(b"t", b"two", qos=2, packet_id=7))
    assert publisher.take() == [pubrec(7)]
    assert world.connect(b"keeper", clean=False).bodies() == [b"one", b"two"]


def test_message_is_taken_after_a_kill_between_it_and_the_copy_of_it_that_waits(tmp_path):
    world = World(tmp_path / "before", make_engine=KilledBehindCopies)
    world.client(b"keeper", (b"t", 1), clean=False).vanish()
    let_copies_wait(world)
    publisher = world.client(b"p", clean=False)
    world.engine.kept = tmp_path / "after"
    publisher.send(publish(b"t", b"one", qos=2, packet_id=7))
    world.close()
    world = World(tmp_path / "after")
    publisher = world.client(b"p", clean=False).send(publish(b"t", b"one", qos=2, packet_id=7, dup=True))
    assert publisher.take() == [pubrec(7)]
    assert world.connect(b"keeper", clean=False).bodies() == [b"one"]
    world.close()


# Power cuts


class ExactPublisher:
    """A publisher that follows the standard to the letter: what it sends again, and what it frees."""

    def __init__(self, world):
        self.open = {}  # packet identifier -> body, without a PUBREC so far
        self.received = set()
        self.number = 0
        self.connect(world)

    def connect(self, world):
        """Send again what is not complete, in its order."""
        self.peer = world.client(b"p", clean=False)
        for packet_id in list(self.received):
            self.peer.send(pubrel(packet_id))
        for packet_id, body in list(self.open.items()):
            self.peer.send(publish(b"t", body, qos=2, packet_id=packet_id, dup=True))
        self.take()

    def publish(self, count):
        packets = []
        for _ in range(count):
            self.number += 1
            packet_id = next(i for i in range(1, 100) if i not in self.open and i not in self.received)
            self.open[packet_id] = b"%d" % self.number
            packets.append(publish(b"t", self.open[packet_id], qos=2, packet_id=packet_id))
        self.peer.send(*packets)
        self.take()

    def release(self, _=0):
        for packet_id in list(self.received):
            self.peer.send(pubrel(packet_id))
        self.take()

    def take(self):
        for packet in self.peer.take():
            packet_id = int.from_bytes(packet[2:4], "big")
            if packet[0] == 0x50:
                del self.open[packet_id]
                self.received.add(packet_id)
            else:
                assert packet[0] == 0x70
                self.received.discard(packet_id)


def cut_power(world, disk, after, wins):
    """Leave what was synced, and of what was not the files whose names begin as one of `wins` does."""
    live = disk.root / "data"
    disk.cut(random.Random(0), LETTER, after)
    for path in sorted(live.rglob("*")):
        name = str(path.relative_to(live))
        if path.is_file() and name.startswith(wins):
            (after / "data" / name).write_bytes(path.read_bytes())
    world.close()


LEFT = {"neither": ("nothing",), "the log": ("commitlog/",), "the journal": ("journals/mqtt_exact",)}


@pytest.mark.parametrize("left", LEFT)
def test_message_that_is_sent_again_after_a_power_cut_is_stored_once(tmp_path, left):
    (tmp_path / "before").mkdir()
    disk = SimulatedDisk(tmp_path / "before")
    with disk.watching():
        world = World(disk.root / "data")
        world.client(b"keeper", (b"t", 1), clean=False).vanish()
        publisher = ExactPublisher(world)
        publisher.publish(3)
        publisher.release()
        world.flush()
        world.flushes_by_itself = False
        publisher.publish(3)  # in two batches, under the identifiers of the three before
        publisher.publish(2)
        assert len(publisher.open) == 5
        cut_power(world, disk, tmp_path / "after", LEFT[left])
    world = World(tmp_path / "after" / "data")
    publisher.connect(world)
    assert publisher.open == {}
    publisher.release()
    publisher.publish(4)
    assert world.connect(b"keeper", clean=False).bodies() == [b"%d" % i for i in range(1, 13)]
    world.close()


def test_message_is_stored_that_a_power_cut_took_out_of_the_middle_of_the_log(tmp_path):
    (tmp_path / "before").mkdir()
    disk = SimulatedDisk(tmp_path / "before")
    with disk.watching():
        world = World(disk.root / "data")
        world.client(b"keeper", (b"t", 1), clean=False).vanish()
        publisher = ExactPublisher(world)
        publisher.publish(1)
        publisher.release()
        world.flush()
        world.flushes_by_itself = False
        start = world.broker.end_place
        publisher.publish(1)  # under the identifier of the one before
        end = world.broker.end_place
        publisher.publish(2)
        cut_power(world, disk, tmp_path / "after", ("commitlog/", "journals/mqtt_exact"))
    (path,) = (tmp_path / "after" / "data" / "commitlog").iterdir()
    data = bytearray(path.read_bytes())
    data[start:end] = bytes(end - start)
    path.write_bytes(data)
    world = World(tmp_path / "after" / "data")
    publisher.connect(world)
    assert publisher.open == {}
    assert world.connect(b"keeper", clean=False).bodies() == [b"1", b"3", b"4", b"2"]
    world.close()


def test_message_is_stored_when_a_power_cut_leaves_a_compaction_and_not_the_log(tmp_path, monkeypatch):
    monkeypatch.setattr(exact, "COMPACT_BYTES_MIN", 1)  # each batch is a step of one
    (tmp_path / "before").mkdir()
    disk = SimulatedDisk(tmp_path / "before")
    with disk.watching():
        world = World(disk.root / "data")
        world.client(b"keeper", (b"t", 1), clean=False).vanish()
        publisher = ExactPublisher(world)
        publisher.publish(3)
        publisher.release()
        world.flush()
        world.flushes_by_itself = False
        for _ in range(8):
            publisher.publish(2)
        assert len(publisher.open) == 16
        cut_power(world, disk, tmp_path / "after", LEFT["the journal"])
    world = World(tmp_path / "after" / "data")
    publisher.connect(world)
    assert publisher.open == {}
    assert world.connect(b"keeper", clean=False).bodies() == [b"%d" % i for i in range(1, 20)]
    world.close()


def test_a_mark_past_the_end_of_the_log_is_none_when_the_log_is_as_long_again(tmp_path, monkeypatch):
    monkeypatch.setattr(exact, "MARK_BYTES", 1)
    (tmp_path / "before").mkdir()
    disk = SimulatedDisk(tmp_path / "before")
    with disk.watching():
        world = World(disk.root / "data")
        world.client(b"keeper", (b"t", 1), clean=False).vanish()
        publisher = world.client(b"p", clean=False)
        world.flush()
        world.flushes_by_itself = False
        publisher.send(publish(b"t", b"lost"))
        world.door.exact.keep_up()
        cut_power(world, disk, tmp_path / "after", LEFT["the journal"])
    world = World(tmp_path / "after" / "data")
    publisher = world.client(b"p", clean=False)
    publisher.send(*[publish(b"t", b"%d" % i, qos=2, packet_id=i) for i in range(1, 6)])
    publisher.send(*[pubrel(i) for i in range(1, 6)])
    assert publisher.take() == [*[pubrec(i) for i in range(1, 6)], *[pubcomp(i) for i in range(1, 6)]]
    restart(world)
    publisher = world.client(b"p", clean=False)
    publisher.send(*[publish(b"t", b"%d" % (5 + i), qos=2, packet_id=i) for i in range(1, 6)])
    assert world.connect(b"keeper", clean=False).bodies() == [b"%d" % i for i in range(1, 11)]
    world.close()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_each_message_is_stored_once_over_power_cuts_and_kills(tmp_path, seed, monkeypatch):
    monkeypatch.setattr(exact, "COMPACT_BYTES_MIN", 1_000)
    rng = random.Random(seed)
    publisher = None
    root = tmp_path / "0"
    root.mkdir()
    for life in range(6):
        disk = SimulatedDisk(root)
        with disk.watching():
            world = World(root / "data")
            world.client(b"keeper", (b"t", 1), clean=False).vanish()
            if seed % 2:
                let_copies_wait(world)
            others = [world.client(b"other", clean=False), world.client(b"clean")]
            if publisher is None:
                publisher = ExactPublisher(world)
            else:
                publisher.connect(world)
            for _ in range(rng.randrange(8)):
                world.flushes_by_itself = rng.random() < 0.6
                world.turn()
                publisher.take()
                rng.choice((publisher.publish, publisher.publish, publisher.release))(rng.randrange(1, 5))
                if rng.random() < 0.5:
                    packet_id = rng.randrange(1, 9)
                    rng.choice(others).send(publish(b"else", b"x", qos=2, packet_id=packet_id), pubrel(packet_id))
            world.flushes_by_itself = False
            publisher.publish(rng.randrange(1, 6))
            root = tmp_path / str(life + 1)
            cut_power(world, disk, root, LEFT[rng.choice(list(LEFT))])
    world = World(root / "data")
    publisher.connect(world)
    assert publisher.open == {}
    found = world.connect(b"keeper", clean=False).bodies()
    assert found == [b"%d" % i for i in range(1, publisher.number + 1)]
    world.close()


# What goes out


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


def test_ended_subscription_leaves_nothing_to_the_next_owner_of_its_slot(world):
    subscriber = world.client(b"s", (b"t", 2), clean=False)
    world.client(b"p").send(publish(b"t", b"x", qos=2, packet_id=1))
    subscriber.send(mqtt.unsubscribe(2, b"t"))
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


@settings(max_examples=40, deadline=None)
@given(steps=STEPS)
def test_each_message_comes_exactly_once_whatever_breaks_off(tmp_path_factory, steps):
    world = World(tmp_path_factory.mktemp("exact"))
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


# The journal


def make_session(client_id=b"c" * 100):
    return Session(client_id, b"", is_persistent=True)


def test_journal_is_compacted_to_what_is_known_now(monkeypatch):
    monkeypatch.setattr(exact, "COMPACT_BYTES_MIN", 2_000)
    memory = MemoryJournal()
    journal = ExactJournal(memory)
    session = make_session()
    for i in range(1, 2_000):
        journal.note_taken(session, [i], i)
        if i % 100:
            journal.note_released(session, [i])
    assert memory.bytes_used < 20_000
    again = ExactJournal(memory)
    again.load(lambda position: 1)
    found = make_session()
    assert again.choose(lambda name, sent: sent) == {b"c" * 100}
    again.finish_load()
    assert again.take_back(found) == []
    assert found.taken == set(range(100, 2_000, 100))


def test_what_a_session_that_is_not_loaded_is_in_the_middle_of_outlives_compactions(monkeypatch):
    monkeypatch.setattr(exact, "COMPACT_BYTES_MIN", 2_000)
    memory = MemoryJournal()
    journal, away = ExactJournal(memory), make_session(b"away")
    journal.note_taken(away, [7], 5)
    journal.note_sent(away, 3, [(number, number + 10) for number in range(4)])
    journal.note_received(away, [1])
    journal.note_complete(away, [2])
    for _ in range(3):
        journal = ExactJournal(memory)
        journal.load(lambda position: 1)
        assert journal.choose(lambda name, sent: sent if name == b"away" else None) == {b"away"}
        journal.finish_load()
        busy = make_session(b"busy")
        for i in range(1, 1_000):
            journal.note_taken(busy, [i], i)
            journal.note_released(busy, [i])
    assert memory.bytes_used < 20_000
    assert [(one.number, one.offset, one.state) for one in journal.look(b"away")] == [
        (0, 10, EXACT_SENT),
        (1, 11, EXACT_RECEIVED),
        (2, 12, EXACT_COMPLETE),
        (3, 13, EXACT_SENT),
    ]
    again = make_session(b"away")
    assert [one.number for one in journal.take_back(again)] == [0, 1, 2, 3]
    assert (again.taken, journal.look(b"away")) == ({7}, [])


def test_what_the_journal_has_of_a_session_before_of_the_same_client_is_void():
    memory = MemoryJournal()
    journal = ExactJournal(memory)
    journal.note_taken(make_session(), [7], 5)  # it ended while a disk was full
    later = make_session()
    journal.note_taken(later, [9], 6)
    journal.note_released(later, [9])
    again = ExactJournal(memory)
    again.load(lambda position: 1)
    asked = []
    assert again.choose(lambda name, sent: asked.append(name) or sent) == set()
    assert asked == [later.client_id]  # what the one before was sent is nobody's, of shared subscriptions too
    again.finish_load()
    assert list(memory.replay()) == []


def test_session_that_is_no_more_is_forgotten():
    memory = MemoryJournal()
    journal = ExactJournal(memory)
    journal.note_taken(make_session(), [1], 5)
    again = ExactJournal(memory)
    again.load(lambda position: 1)
    assert again.choose(lambda name, sent: None) == set()
    again.finish_load()
    assert list(memory.replay()) == []


def test_nothing_is_taken_on_a_full_disk():
    memory = FullJournal()
    journal = ExactJournal(memory)
    session = make_session()
    journal.note_taken(session, [1], 5)
    memory.is_full = True
    with pytest.raises(DiskFullError):
        journal.note_taken(session, [2], 6)
    assert session.taken == {1}


def test_another_journal_is_refused():
    memory = MemoryJournal()
    memory.append_many(b"x" * 16, 16)
    with pytest.raises(DataFolderUnusableError):
        ExactJournal(memory).load(lambda position: 0)


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_message_in_the_place_of_one_that_a_power_cut_took_is_sent(tmp_path, steps):
    (tmp_path / "before").mkdir()
    disk = SimulatedDisk(tmp_path / "before")
    with disk.watching():
        world = World(disk.root / "data")
        subscriber = world.client(b"s", (b"t", 2), clean=False)
        publisher = world.client(b"p")
        world.flush()
        world.flushes_by_itself = False
        publisher.send(publish(b"t", b"lost", qos=2, packet_id=1))
        assert publisher.take() == []
        (got,) = subscriber.take_deliveries()
        assert got.body == b"lost"
        subscriber.send(*[pubrec(got.packet_id), pubcomp(got.packet_id)][:steps])
        cut_power(world, disk, tmp_path / "after", LEFT["the journal"])
    world = World(tmp_path / "after" / "data")
    world.client(b"p").send(publish(b"t", b"new", qos=2, packet_id=1))
    subscriber = world.connect(b"s", clean=False)
    subscriber.take()
    world.close()
    world = World(tmp_path / "after" / "data")
    world.client(b"p").send(publish(b"t", b"last", qos=2, packet_id=1))
    assert world.connect(b"s", clean=False).bodies() == [b"new", b"last"]
    world.close()
