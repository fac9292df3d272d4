"""Messages that come in at QoS 2: taken once, over connections, kills and copies that wait."""

from __future__ import annotations

import random
import shutil

import pytest

from core.store.embedded import EmbeddedEngine
from tests.support import mqtt
from tests.support.exactly_once import let_copies_wait, restart
from tests.support.mqtt import puback, pubcomp, publish, pubrec, pubrel
from tests.support.mqtt_door import World
from tests.support.simulated_disk import LETTER, SimulatedDisk


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


def test_packet_identifier_is_free_again_of_a_message_of_which_a_copy_waits(world):
    world.client(b"keeper", (b"t", 1), clean=False).vanish()
    let_copies_wait(world)
    publisher = world.client(b"p", clean=False).send(publish(b"t", b"one", qos=2, packet_id=7), pubrel(7))
    assert publisher.take() == [pubrec(7), pubcomp(7)]
    restart(world)
    publisher = world.client(b"p", clean=False).send(publish(b"t", b"two", qos=2, packet_id=7))
    assert publisher.take() == [pubrec(7)]
    assert world.connect(b"keeper", clean=False).bodies() == [b"one", b"two"]


@pytest.mark.at_once(reason="copies the files inside an append")
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
