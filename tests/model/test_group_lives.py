"""What is told of each message and each RocketMQ group, beside what the group's clients really did with the message.

One group takes by POP, one pulls, one comes later. Steps come in any order: messages, acknowledgements in any order,
offsets that are committed, resets on and back, and kills. A kill is the folder as it is at that moment, copied and
opened.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from random import Random
from types import SimpleNamespace

import pytest

from core.message import StoredBatch
from core.pop import lasting_endings
from core.stage import Stage
from core.store.embedded import EmbeddedEngine
from gateway.admin.outcomes import Outcomes
from gateway.admin.stored import StoredRecord
from gateway.admin.trail import Trail
from tests.support.lives import told
from tests.support.mqtt_door import MACHINE_START
from tests.support.rocketmq_door import NOW_MS, DoorSite
from tests.support.rocketmq_pop import ack, pop
from tests.support.rocketmq_tools import ask_tool, start_tool

FIRST = int(os.environ.get("TORTURE_FIRST", "0"))
LIVES = int(os.environ.get("TORTURE_LINEAGE_LIVES", "6"))
STEPS = 80
KEY = b"T/0"
ACKNOWLEDGED = "acknowledged, or not wanted by its filter"
PASSED = "acknowledged, or passed over as its group was sent on"
BEGAN = "acknowledged, not wanted by its filter or from before its group began"


class Group:
    """What a group did with the messages of one queue, by offset."""

    def __init__(self, name):
        self.name = name
        self.done = set()  # acknowledged, or below an offset that was committed
        self.by = {}  # of some of these: the client
        self.passed = set()  # a reset went over them
        self.first = None  # the first offset that it committed, as far as is known
        self.place = 0  # of one that pulls
        self.has_committed = False
        self.before_reset = set()  # of `by`, what a later process does not know
        self.popped = []


class Life:
    """The history of a queue and its groups."""

    def __init__(self, seed, folder):
        self.chance = Random(seed)
        self.folder = folder
        self.is_prompt = seed % 2 == 1
        self.count = self.kills = 0
        self.groups = [Group("popper"), Group("puller"), Group("later")]
        self.open(folder / "0", 0)
        self.send()

    def open(self, data_dir, now_ms):
        self.data_dir = data_dir
        self.site = DoorSite(data_dir, make_engine=EmbeddedEngine, is_prompt=self.is_prompt)
        self.site.now_ms += now_ms
        self.since_ms = self.site.now_ms
        self.site.broker.lasting_endings.begin(MACHINE_START, self.since_ms)
        self.site.now_ms += 1
        self.peers = {name: self.enter(name) for name in ("one", "two")}
        for peer in self.peers.values():
            peer.take()  # also that the other came
        self.peer = self.peers["one"]

    def enter(self, name):
        """Return a client that is a member of the groups."""
        peer = self.site.connect()
        said = {"clientID": name, "consumerDataSet": [{"groupName": group.name} for group in self.groups]}
        start_tool(peer, 34, json.dumps(said).encode())
        return peer

    # Steps

    def send(self):
        for _ in range(self.chance.randrange(1, 4)):
            assert self.peer.send(b"%d" % self.count, topic="T", e="0").code == 0
            self.count += 1
        self.site.now_ms += 1

    def take(self):
        group = self.groups[0]
        invisible_ms = self.chance.choice([100, 60_000])
        group.popped += pop(self.peer, consumerGroup=group.name, maxMsgNums=3, queueId=0, invisibleTime=invisible_ms)

    def acknowledge(self):
        group = self.groups[0]
        self.chance.shuffle(group.popped)
        for message in group.popped[:2]:
            name = self.chance.choice([*self.peers])
            was_hidden = self.is_hidden(message.offset)
            ack(self.peers[name], message, consumerGroup=group.name)
            group.done.add(message.offset)
            if was_hidden and not self.is_hidden(message.offset):
                group.by[message.offset] = name
                group.before_reset.discard(message.offset)
        del group.popped[:2]

    def is_hidden(self, offset):
        taken = self.site.door.claims.find(b"popper", KEY)
        return taken is not None and taken.is_hidden(offset)

    def commit(self):
        """Have a group that pulls say that it is done with some more messages."""
        group = self.chance.choice(self.groups[1:])
        if group.name == "later" and not group.first and self.chance.random() < 0.8:
            group.place = self.count  # it begins behind what there is
        reached = min(group.place + self.chance.randrange(4), self.count)
        if reached:
            fields = {"consumerGroup": group.name, "topic": "T", "queueId": 0, "commitOffset": reached}
            group.first = reached if group.first is None else group.first
            name = self.chance.choice([*self.peers])
            if group.has_committed:
                before = self.site.broker.consumer_offsets.get(group.name.encode(), KEY)
                group.by.update(dict.fromkeys(range(before, reached), name))
            group.has_committed = True
            assert self.peers[name].ask(15, **fields).code == 0
            group.done.update(range(group.place, reached))
            group.place = reached

    def reset(self):
        group = self.chance.choice(self.groups)
        offset = self.chance.randrange(self.count + 1)
        before = self.site.broker.consumer_offsets.get(group.name.encode(), KEY)
        if before is None and group.name != "popper":
            return
        fields = {"topic": "T", "group": group.name, "queueId": 0, "offset": offset, "timestamp": 0, "isForce": "true"}
        answer = ask_tool(self.peer, 222, **fields)
        assert answer.code in {0, 17}, answer.remark  # no such topic yet
        if not answer.code:
            group.passed.update(range(before or 0, offset))
            group.has_committed |= group.name != "popper" and before is not None
            group.place = offset
            group.before_reset.update(group.by)

    def pass_time(self):
        self.site.now_ms += self.chance.choice([1, 1_000])
        self.site.turn()
        self.site.door.claims.commit_floors()

    def kill(self):
        for group in self.groups:
            group.popped = []
            if group.name != "popper":
                group.by = {}  # places are numbers, which name nobody
        self.kills += 1
        self.site.broker.when_kept(lambda error: None)  # the names of members, too
        self.site.turn()
        passed_ms = self.site.now_ms + 10 - NOW_MS
        made = shutil.copytree(self.data_dir, self.folder / str(self.kills))
        self.site.close()
        self.open(made, passed_ms)

    # What is told

    def check(self):
        broker = self.site.broker
        view = SimpleNamespace(broker=broker, trail=Trail(), since_ms=self.since_ms)
        batch, queue_ref, offset = StoredBatch(64), broker.find_queue(KEY), 0
        while queue_ref >= 0 and broker.read(queue_ref, offset, batch, 64, 1 << 20) > 0:
            for i in range(batch.count):
                stored = StoredRecord(bytes(batch.buf[batch.record_start[i] : batch.record_end[i]]), batch, i)
                self.check_message(Outcomes(view, stored), batch.queue_offset[i])
            offset = batch.next_offset

    def check_message(self, outcomes, offset):
        groups = {one.name: one for one in self.groups}
        for fate in self.site.door.inventory().fates(KEY, offset):
            one = None if fate is None else groups.get(fate.reader)
            if one is not None and fate.stage is Stage.DONE:
                told = asyncio.run(outcomes.tell(fate))
                assert self.is_true(one, offset, told["outcome"]), (one.name, offset, told, vars(one))
                is_acknowledged = told["outcome"].startswith("acknowledged")
                assert not is_acknowledged or fate.holder in {one.by.get(offset, ""), ""}, (offset, told, one.by)
                is_named = told["outcome"] == ACKNOWLEDGED and offset in {*one.by} - one.before_reset
                assert not is_named or fate.holder == one.by[offset], (one.name, offset, told, one.by)

    def is_true(self, one, offset, outcome):
        """Return whether a group's own knowledge allows what is told."""
        is_passed = offset in one.done or offset in one.passed
        return {
            ACKNOWLEDGED: offset in one.done,
            PASSED: is_passed,
            BEGAN: one.first is not None and offset < one.first,
            "subscribed later": is_passed,  # its first place was set by a reset
        }.get(outcome, False)

    def run(self):
        steps = [self.send] * 5 + [self.take] * 4 + [self.acknowledge] * 4 + [self.commit] * 4 + [self.pass_time] * 2
        steps += [self.reset, self.kill]
        for _ in range(STEPS):
            self.chance.choice(steps)()
            if self.chance.random() < 0.2:
                self.check()
        for _ in range(2):
            self.check()
            self.kill()


@pytest.fixture(autouse=True)
def small_journal(monkeypatch):
    monkeypatch.setattr(lasting_endings, "COMPACT_BYTES_MIN", 2_000)


@pytest.mark.slow
@pytest.mark.at_once(reason="reads the queue by itself")
def test_what_is_told_of_a_message_is_what_its_groups_did(tmp_path):
    for seed in range(FIRST, FIRST + LIVES):
        life = Life(seed, tmp_path / str(seed))
        with told(seed, life, lambda life=life: life.site.close()):
            life.run()
