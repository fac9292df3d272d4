"""Messages at QoS 2 for a session that outlives everything: none is given twice, none is lost, each is stored once.

Steps come in any order: publishing, acknowledgements in any order, connections that vanish with what was under way,
changes of the subscription that are committed or not, compactions of the journal of QoS 2, kills. A kill is the folder
as it is at that moment, copied and opened; what no flush was done for is not committed.

`make torture` runs many more of these lives, from a number of its own each time.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from random import Random

import pytest

from core.lmq.queue_name import mqtt_queue_name
from core.store.sync_plan import sync_now
from gateway.mqtt import exact
from tests.support import mqtt
from tests.support.mqtt import pubcomp, publish, pubrec, pubrel
from tests.support.mqtt_door import World
from tests.support.store import read_queue

FIRST = int(os.environ.get("TORTURE_FIRST", "0"))
LIVES = int(os.environ.get("TORTURE_EXACT_LIVES", "20"))
STEPS = 60
COMPACT_BYTES = 600
IDENTIFIERS = range(1, 30)  # of the publisher; few, so that they are soon used again


def packet_id_of(packet):
    return int.from_bytes(packet[2:4], "big")


class Receiver:
    """A client that keeps packet identifiers, and takes each once until it is released, over all its connections."""

    def __init__(self):
        self.held = set()
        self.answers = []  # that are still to be sent
        self.given = Counter()  # bodies at QoS 2
        self.given_lower = set()  # bodies at QoS 0 and 1

    def lose_connection(self):
        self.answers = []

    def read(self, packets):
        for packet in packets:
            if packet[0] >> 4 == 3:
                self.read_message(mqtt.parse_publish(packet))
            elif packet[0] >> 4 == 6:
                self.held.discard(packet_id_of(packet))
                self.answers.append(pubcomp(packet_id_of(packet)))

    def read_message(self, message):
        if message.qos < 2:
            self.given_lower.add(message.body)
            if message.qos:
                self.answers.append(mqtt.puback(message.packet_id))
            return
        if message.packet_id not in self.held:
            self.held.add(message.packet_id)
            self.given[message.body] += 1
        self.answers.append(pubrec(message.packet_id))


class Sender:
    """A publisher with a session of its own: it goes on with what was not completed, over all its connections."""

    def __init__(self):
        self.count = 0
        self.unreceived = {}  # body by packet identifier
        self.unreleased = []

    def next(self):
        """Return a new message, or nothing while all packet identifiers are in use."""
        used = {*self.unreceived, *self.unreleased}
        free = [one for one in IDENTIFIERS if one not in used]
        if not free:
            return []
        self.count += 1
        self.unreceived[free[0]] = b"%d" % self.count
        return [publish(b"t", b"%d" % self.count, qos=2, packet_id=free[0])]

    def again(self):
        """Return what is sent first over a new connection."""
        packets = [publish(b"t", body, qos=2, packet_id=key, dup=True) for key, body in self.unreceived.items()]
        return packets + [pubrel(one) for one in self.unreleased]

    def answer(self, packets):
        """Return what is sent for what came."""
        answers = []
        for packet in packets:
            packet_id = packet_id_of(packet)
            if packet[0] == 0x50 and packet_id in self.unreceived:
                del self.unreceived[packet_id]
                self.unreleased.append(packet_id)
                answers.append(pubrel(packet_id))
            elif packet[0] == 0x70 and packet_id in self.unreleased:
                self.unreleased.remove(packet_id)
        return answers


class Life:
    """One session's history, and which messages it is owed."""

    def __init__(self, seed, folder):
        self.chance = Random(seed)
        self.folder = folder
        self.topic_filter = self.chance.choice([b"t", b"$share/g/t"])
        self.is_in_order = self.chance.random() < 0.5  # the receiver's acknowledgements
        self.receiver, self.sender = Receiver(), Sender()
        self.owed = set()  # bodies
        self.is_owing = True  # what is published is to be given, at QoS 1 or 2
        self.kills = self.busy_id = 0
        self.world = World(folder / "0")
        self.connect_all()
        self.change_to(2)
        self.read()

    def connect_all(self):
        self.peer = self.world.connect(b"receiver", clean=False)
        self.busy = self.world.connect(b"busy", clean=False)
        self.connect_publisher()

    def connect_publisher(self):
        self.publisher = self.world.client(b"publisher", clean=False)
        self.publisher.send(*self.sender.again())

    # Steps

    def publish(self):
        for _ in range(self.chance.randrange(1, 4)):
            packets = self.sender.next()
            if packets and self.is_owing:
                self.owed.add(b"%d" % self.sender.count)
            self.publisher.send(*packets)
        self.publisher.send(*self.sender.answer(self.publisher.take()))

    def read(self):
        self.receiver.read(self.peer.take())

    def acknowledge(self):
        self.read()
        answers = self.receiver.answers
        if not self.is_in_order:
            self.chance.shuffle(answers)
        count = self.chance.randrange(1, 6)
        self.receiver.answers = answers[count:]
        self.peer.send(*answers[:count])

    def fill_journal(self):
        """Let another session bring the journal nearer to a compaction."""
        for _ in range(self.chance.randrange(5, 60)):
            self.busy_id = self.busy_id % 60_000 + 1
            self.busy.send(publish(b"other", b"", qos=2, packet_id=self.busy_id), pubrel(self.busy_id))
            self.busy.take()

    def lose_some(self):
        """Let the receiver's connection break off behind any packet that was sent."""
        packets = self.peer.take()
        self.receiver.read(packets[: self.chance.randint(0, len(packets))])
        self.receiver.lose_connection()

    def vanish(self):
        self.lose_some()
        self.peer.vanish()
        self.peer = self.world.connect(b"receiver", clean=False)

    def vanish_publisher(self):
        if self.world.flushes_by_itself:  # else it is not let in
            self.publisher.vanish()
            self.connect_publisher()

    def kill(self):
        self.lose_some()
        self.kills += 1
        self.world.data_dir = shutil.copytree(self.world.data_dir, self.folder / str(self.kills))
        self.world.close()
        self.world.flushes_by_itself = True
        self.world.open()
        self.connect_all()

    def change_to(self, qos):
        """Ask for another QoS, or for no subscription any more by None."""
        wanted = self.topic_filter
        self.peer.send(mqtt.unsubscribe(9, wanted) if qos is None else mqtt.subscribe(9, (wanted, qos)))
        self.is_owing = bool(qos)

    def change_uncommitted(self):
        """Change the subscription, and be killed before that is committed: it is as it was before."""
        self.world.flushes_by_itself = False
        self.change_to(self.chance.choice([None, 0, 1]))
        for _ in range(self.chance.randrange(4)):
            self.chance.choice([self.acknowledge, self.fill_journal, self.publish, self.read])()
        if self.chance.random() < 0.7:
            sync_now(self.world.store.journal("mqtt_exact"))
        self.kill()
        self.is_owing = True

    def change_and_return(self):
        """Change the subscription for good, and back; where messages may be let go, none is under way before that."""
        qos = self.chance.choice([None, 0, 1])
        if qos != 1:
            self.complete()
        self.change_to(qos)
        for _ in range(self.chance.randrange(4)):
            self.chance.choice([self.acknowledge, self.fill_journal, self.publish, self.vanish, self.kill])()
        self.change_to(2)

    # The end

    def run(self):
        steps = [self.publish] * 4 + [self.acknowledge] * 4 + [self.fill_journal] * 2
        steps += [self.vanish, self.vanish_publisher, self.kill, self.change_uncommitted, self.change_and_return]
        for _ in range(STEPS):
            self.chance.choice(steps)()
            self.check_given()
        self.complete()
        self.check_given()
        given = {*self.receiver.given, *self.receiver.given_lower}
        assert self.owed <= given, ("lost", self.owed - given)
        stored = Counter(body for _, body in read_queue(self.world.store, mqtt_queue_name(b"t")))
        assert stored <= Counter({b"%d" % number: 1 for number in range(1, self.sender.count + 1)})

    def check_given(self):
        twice = {body: count for body, count in self.receiver.given.items() if count > 1}
        assert not twice

    def complete(self):
        """Let both sides go on until nothing is under way."""
        is_going_on = True
        while is_going_on:
            self.receiver.read(self.peer.take())
            answers = self.sender.answer(self.publisher.take())
            is_going_on = bool(answers or self.receiver.answers)
            self.publisher.send(*answers)
            self.peer.send(*self.receiver.answers)
            self.receiver.answers = []


@pytest.fixture(autouse=True)
def small_journal(monkeypatch):
    monkeypatch.setattr(exact, "COMPACT_BYTES_MIN", COMPACT_BYTES)


@pytest.mark.slow
def test_each_message_at_qos_2_is_given_exactly_once_whatever_happens(tmp_path):
    for seed in range(FIRST, FIRST + LIVES):
        life = Life(seed, tmp_path / str(seed))
        try:
            life.run()
        except BaseException as error:
            error.add_note(f"in the life of seed {seed}")
            raise
        finally:
            life.world.close()
        shutil.rmtree(life.folder)
