"""Retained messages at QoS 2 for a durable session: each comes once for each SUBSCRIBE that asked for it, at most.

Steps come in any order: retained messages that are published and replaced, subscribing again, acknowledgements in any
order, connections that vanish with what was under way, subscriptions that are ended and not committed, compactions of
the journal of QoS 2, kills. A kill is the folder as it is at that moment, copied and opened.

`make torture` runs many more of these lives, from a number of its own each time.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from random import Random

import pytest

from core.store.sync_plan import sync_now
from gateway.mqtt import exact
from tests.support.engines import MAKERS
from tests.support.exact_clients import Busy, Receiver
from tests.support.lives import told
from tests.support.mqtt import publish, pubrel
from tests.support.mqtt_door import World

FIRST = int(os.environ.get("TORTURE_FIRST", "0"))
LIVES = int(os.environ.get("TORTURE_EXACT_LIVES", "8"))
STEPS = 60
COMPACT_BYTES = 600
TOPICS = [b"r/%d" % i for i in range(6)]
FILTER = b"r/+"


class Life:
    """The history of a durable session, and what it asked for."""

    def __init__(self, seed, folder, make_engine):
        self.chance = Random(seed)
        self.folder = folder
        inflight_max = self.chance.choice([2, 4, 2_048])
        self.world = World(folder / "0", make_engine=make_engine, inflight_max=inflight_max, is_prompt=seed % 2 == 1)
        self.is_in_order = self.chance.random() < 0.5  # how messages are acknowledged
        self.retained = {}  # body by topic
        self.published = Counter()  # all bodies
        self.asked = Counter()  # how often each was asked for while it was retained
        self.live = set()  # bodies that were published while the receiver had a subscription at QoS 1 or 2
        self.owed = set()  # retained bodies that were asked for and not replaced since
        self.kills = 0
        self.receiver = Receiver(self.world, b"receiver", Counter(), receive_max=self.chance.choice([None, 1, 3]))
        self.receiver.connect()
        self.busy = Busy(self.world)
        self.subscribe()

    # Steps

    def publish(self):
        topic = self.chance.choice(TOPICS)
        self.owed.discard(self.retained.get(topic))
        self.retained[topic] = body = b"%d" % (len(self.published) + 1)
        self.published[body] += 1
        if self.receiver.qos:
            self.live.add(body)
        self.world.client(b"p").send(publish(topic, body, qos=2, packet_id=1, retain=True), pubrel(1)).vanish()

    def subscribe(self):
        if self.chance.random() < 0.5:
            self.complete()
        self.receiver.read()
        self.asked.update(self.retained.values())
        self.owed |= {*self.retained.values()} - {*self.receiver.given_retained}
        self.receiver.subscribe(FILTER, 2)

    def acknowledge(self):
        self.receiver.read()
        if not self.is_in_order:
            self.chance.shuffle(self.receiver.answers)
        self.receiver.answer(self.chance.randrange(1, 6))

    def fill_journal(self):
        """Let another session bring the journal nearer to a compaction."""
        self.busy.publish(self.chance.randrange(5, 60))

    def vanish(self):
        peer = self.receiver.peer
        self.receiver.lose_connection(self.chance.randrange(6))
        peer.vanish()
        assert self.receiver.connect()

    def kill(self):
        self.receiver.lose_connection(self.chance.randrange(6))
        self.kills += 1
        self.world.data_dir = shutil.copytree(self.world.data_dir, self.folder / str(self.kills))
        self.world.close()
        self.world.flushes_by_itself = True
        self.world.open()
        assert self.receiver.connect()
        self.busy.connect()

    def end_uncommitted(self):
        """End the subscription or ask for another QoS, and be killed before that is committed: it is as it was."""
        if self.world.is_prompt:
            self.end_and_return()
            return
        self.world.flushes_by_itself = False
        self.receiver.subscribe(FILTER, self.chance.choice([None, 0]))
        for _ in range(self.chance.randrange(4)):
            self.chance.choice([self.acknowledge, self.fill_journal])()
        if self.chance.random() < 0.7:
            sync_now(self.world.store.journal("mqtt_exact"))
        self.kill()

    def end_and_return(self):
        """End the subscription for good, or ask for another QoS, and return: what was sent is brought to its end.

        Where a commit begins at once it has all of that: a kill may come when no other was begun.
        """
        self.receiver.read()
        qos = self.chance.choice([None, 0, 1])
        if qos == 1:
            self.asked.update(self.retained.values())
        if qos != 1:
            sent = self.receiver.given_lower | self.receiver.lost_exact
            self.owed &= sent | {*self.receiver.given_retained}
            self.live &= sent | {*self.receiver.given}
        is_killed = self.world.is_prompt and self.chance.random() < 0.5
        self.world.flushes_by_itself = not is_killed
        self.receiver.subscribe(FILTER, qos)
        if is_killed:
            self.kill()
        for _ in range(self.chance.randrange(4)):
            self.chance.choice([self.acknowledge, self.fill_journal, self.vanish, self.kill])()
        self.subscribe()

    # The end

    def run(self):
        steps = [self.publish] * 4 + [self.subscribe] * 2 + [self.acknowledge] * 5 + [self.fill_journal] * 2
        steps += [self.vanish, self.kill, self.end_uncommitted, self.end_and_return]
        for _ in range(STEPS):
            self.chance.choice(steps)()
            self.check_given()
        self.complete()
        self.check_given()
        lower = self.receiver.given_lower
        assert self.live <= {*self.receiver.given} | lower
        assert self.owed <= {*self.receiver.given_retained} | lower
        assert not self.receiver.held

    def check_given(self):
        assert not self.receiver.given - self.published
        assert not self.receiver.given_retained - self.asked

    def complete(self):
        """Let the receiver go on until nothing is under way."""
        self.receiver.read()
        while self.receiver.answers:
            self.receiver.answer(len(self.receiver.answers))
            self.receiver.read()


@pytest.fixture(autouse=True)
def small_journal(monkeypatch):
    monkeypatch.setattr(exact, "COMPACT_BYTES_MIN", COMPACT_BYTES)


@pytest.mark.slow
@pytest.mark.parametrize("make_engine", MAKERS.values(), ids=MAKERS)
def test_each_retained_message_at_qos_2_is_given_once_for_each_subscribe(tmp_path, make_engine):
    for seed in range(FIRST, FIRST + LIVES):
        life = Life(seed, tmp_path / str(seed), make_engine)
        with told(seed, life, lambda life=life: life.world.close()):
            life.run()
