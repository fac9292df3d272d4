"""Messages at QoS 2 for sessions that outlive everything: each is given once and in order, and stored once.

Steps come in any order: publishing, acknowledgements in any order, connections that vanish with what was under way,
members of a group that stay away, sessions that expire, changes of a subscription that are committed or not,
compactions of the journal of QoS 2, kills. A kill is the folder as it is at that moment, copied and opened; what no
flush was done for is not committed.

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
from tests.support.engines import MAKERS
from tests.support.exact_clients import NEVER, Busy, Receiver, Sender, packet_id_of
from tests.support.lives import told
from tests.support.mqtt_door import World
from tests.support.store import read_queue

FIRST = int(os.environ.get("TORTURE_FIRST", "0"))
LIVES = int(os.environ.get("TORTURE_EXACT_LIVES", "10"))
STEPS = 60
COMPACT_BYTES = 600
EXPIRY_S = 60


class Life:
    """The history of a durable session, or of a group of which some are durable, and what messages they are owed."""

    def __init__(self, seed, folder, make_engine):
        self.chance = Random(seed)
        self.folder = folder
        self.world = World(folder / "0", make_engine=make_engine, is_prompt=seed % 2 == 1)
        self.busy = Busy(self.world)
        self.given = Counter()  # bodies at QoS 2
        self.sender = Sender()
        self.owed = set()  # bodies
        self.kills = 0
        self.order = self.chance.choice(["in order", "newest first", "in any order"])  # of acknowledgements
        self.is_group = self.chance.random() < 0.6
        self.topic_filter = b"$share/g/t" if self.is_group else b"t"
        self.members = [self.make_member(i) for i in range(self.chance.randint(1, 3) if self.is_group else 1)]
        self.connect_others()
        for one in self.members:
            self.connect(one)

    def make_member(self, number):
        """Make a client; the first of a group has a session without an end."""
        expiry_s = self.chance.choice([0, EXPIRY_S, NEVER]) if number else NEVER
        if not self.is_group:
            expiry_s = self.chance.choice([EXPIRY_S, NEVER])
        receive_max = EXPIRY_S if expiry_s == EXPIRY_S else None  # MQTT 5, which says when a session expires
        if self.chance.random() < 0.5:
            receive_max = self.chance.choice([1, 3, 20])
        return Receiver(self.world, b"member %d" % number, self.given, expiry_s=expiry_s, receive_max=receive_max)

    def connect(self, member):
        """Connect, and subscribe if there is no session; what an ended one was owed goes to no other."""
        if not member.connect():
            self.owed -= member.lost if self.is_group else self.owed - {*self.given}
            member.subscribe(self.topic_filter, 2)
            member.lost.clear()

    def connect_others(self):
        self.busy.connect()
        self.publisher = self.world.client(b"publisher", clean=False)
        self.publisher.send(*self.sender.again())

    def choose(self):
        """Return a member that is connected, by now."""
        member = self.chance.choice(self.members)
        if member.peer is None:
            self.connect(member)
        return member

    def is_owing(self):
        """Return whether what is published now is to be given, at QoS 1 or 2, whatever happens."""
        return all(one.qos != 0 for one in self.members) and any(one.qos and one.expiry_s for one in self.members)

    # Steps

    def publish(self):
        for _ in range(self.chance.randrange(1, 4)):
            packets = self.sender.next()
            if packets and self.is_owing():
                self.owed.add(b"%d" % self.sender.count)
            self.publisher.send(*packets)
        self.publisher.send(*self.sender.answer(self.publisher.take()))

    def acknowledge(self):
        member = self.choose()
        member.read()
        if self.order == "newest first":
            member.answers.sort(key=packet_id_of, reverse=True)
        elif self.order == "in any order":
            self.chance.shuffle(member.answers)
        member.answer(self.chance.randrange(1, 6))

    def fill_journal(self):
        """Let another session bring the journal nearer to a compaction."""
        self.busy.publish(self.chance.randrange(5, 60))

    def stay_away(self):
        member = self.choose()
        peer = member.peer
        member.lose_connection(self.chance.randrange(6))
        peer.vanish()
        return member

    def vanish(self):
        self.connect(self.stay_away())

    def outstay(self):
        """Stay away for longer than sessions last that have an end."""
        self.stay_away()
        self.world.now_ms += 2_000 * EXPIRY_S
        self.world.turn()

    def vanish_publisher(self):
        self.publisher.vanish()
        self.publisher = self.world.client(b"publisher", clean=False)
        self.publisher.send(*self.sender.again())

    def kill(self):
        for one in self.members:
            one.lose_connection(self.chance.randrange(6))
        self.kills += 1
        self.world.data_dir = shutil.copytree(self.world.data_dir, self.folder / str(self.kills))
        self.world.close()
        self.world.flushes_by_itself = True
        self.world.open()
        self.connect_others()

    def change_uncommitted(self):
        """Change a subscription, and be killed before that is committed: it is as it was before."""
        if self.world.is_prompt:
            self.change_and_return()
            return
        qos = self.chance.choice([None, 0, 1])
        if self.is_group and qos == 0:  # else what waits for others may be sent at QoS 0
            self.complete()
        member = self.choose()
        self.world.flushes_by_itself = False
        member.subscribe(self.topic_filter, qos)
        for _ in range(self.chance.randrange(4)):
            self.chance.choice([self.fill_journal, self.publish, member.read, lambda: member.answer(2)])()
        if self.chance.random() < 0.7:
            sync_now(self.world.store.journal("mqtt_exact"))
        self.kill()
        member.qos = 2

    def let_waiting_go(self):
        """Owe only what was sent: what waits for its turn may be let go where a subscription ends, or is at QoS 0."""
        sent = {*self.given}
        for one in self.members:
            if one.peer is not None:
                one.read()
            sent |= one.given_lower | one.lost_exact
        self.owed &= sent | {*self.given}

    def change_and_return(self):
        """Change a subscription for good, and back: what was sent for it before is brought to its end all the same.

        Where a commit begins at once it has all of the change: a kill may come when no other was begun.
        """
        qos = self.chance.choice([None, 0, 1])
        member = self.choose()
        if qos != 1:
            self.let_waiting_go()
        is_killed = self.world.is_prompt and self.chance.random() < 0.5
        self.world.flushes_by_itself = not is_killed
        member.subscribe(self.topic_filter, qos)
        if is_killed:
            self.kill()
        for _ in range(self.chance.randrange(5)):
            self.chance.choice([self.acknowledge, self.fill_journal, self.publish, self.vanish, self.kill])()
        if member.peer is None:
            self.connect(member)
        is_settled = qos != 1 or not self.is_group  # a group takes back what is at QoS 1, and hands it out again
        if is_settled and self.chance.random() < 0.3:
            self.let_waiting_go()
            member.subscribe(self.topic_filter, None)
        member.subscribe(self.topic_filter, 2)

    def change_filter(self):
        """Subscribe by another filter that the messages match, too, which may get the slots of the one before."""
        if self.is_group:
            return
        member = self.choose()
        self.let_waiting_go()
        member.subscribe(self.topic_filter, None)
        self.topic_filter = b"t/#" if self.topic_filter == b"t" else b"t"
        member.subscribe(self.topic_filter, 2)

    # The end

    def run(self):
        steps = [self.publish] * 5 + [self.acknowledge] * 5 + [self.fill_journal] * 2 + [self.vanish] * 2
        steps += [self.stay_away, self.outstay, self.vanish_publisher, self.kill, self.kill]
        steps += [self.change_uncommitted, self.change_and_return, self.change_filter]
        for _ in range(STEPS):
            self.chance.choice(steps)()
            self.check_given()
        self.complete()
        self.check_given()
        given = {*self.given}.union(*[one.given_lower for one in self.members])
        owed = self.owed.union(*[one.lost_exact for one in self.members])
        assert owed <= given, ("lost", owed - given)
        stored = Counter(body for _, body in read_queue(self.world.store, mqtt_queue_name(b"t")))
        assert stored <= self.sender.published()
        assert not any(one.held for one in self.members)

    def check_given(self):
        twice = {body: count for body, count in self.given.items() if count > 1}
        assert not twice
        if not self.is_group:  # what was sent at QoS 1 comes behind what was at QoS 2, after a kill
            order = [int(body) for body in self.given if body not in self.members[0].sent_lower]
            assert order == sorted(order)

    def complete(self):
        """Let all clients go on until nothing is under way."""
        for one in self.members:
            if one.peer is None:
                self.connect(one)
        is_going_on = True
        while is_going_on:
            answers = self.sender.answer(self.publisher.take())
            self.publisher.send(*answers)
            is_going_on = bool(answers)
            for one in self.members:
                one.read()
                is_going_on |= bool(one.answers)
                one.answer(len(one.answers))


@pytest.fixture(autouse=True)
def small_journal(monkeypatch):
    monkeypatch.setattr(exact, "COMPACT_BYTES_MIN", COMPACT_BYTES)


@pytest.mark.slow
@pytest.mark.parametrize("make_engine", MAKERS.values(), ids=MAKERS)
def test_each_message_at_qos_2_is_given_exactly_once_whatever_happens(tmp_path, make_engine):
    for seed in range(FIRST, FIRST + LIVES):
        life = Life(seed, tmp_path / str(seed), make_engine)
        with told(seed, life, lambda life=life: life.world.close()):
            life.run()
