"""An AMQP queue over deletions, kills and power cuts: no confirmed message is lost, none is given for good twice.

Steps come in any order: messages of all priorities, commits, rejections, purges, deletions of which some are never
answered, nor are declarations behind them, readers of all that was ever in it. What a kill must keep is more than what
a power cut must.
"""

from __future__ import annotations

import os
import shutil
from random import Random

import pytest
from pamqp.commands import Basic, Queue, Tx

from gateway.amqp.door import EXPIRY_INTERVAL_MS
from tests.gateway.amqp.test_open_letters import LEFT, TO_DEAD
from tests.support.amqp_door import AmqpWorld, Message
from tests.support.simulated_disk import SimulatedDisk, cut_power

FIRST = int(os.environ.get("TORTURE_FIRST", "0"))
LIVES = int(os.environ.get("TORTURE_LIVES", "10"))
STEPS = 50
LIMITS = ({}, {}, {"x-max-length": 4}, {"x-max-length-bytes": 40}, {"x-message-ttl": 5_000})
OTHERS = ({}, {"x-max-priority": 5}, {"x-max-length-bytes": 10}, {"x-message-ttl": 1})
COMMITS = 2  # the channel of transactions


class Sent:
    """What is known of one message."""

    def __init__(self, number, level, generation, *, expires):
        self.number = number
        self.level = level
        self.generation = generation  # how many queues of that name were there before
        self.expires = expires
        self.is_confirmed = False
        self.is_rejected = False
        self.done = ""  # by an acknowledgement, or a purge: "now", "surely" after a kill, "perhaps" after a power cut


UNKNOWN = Sent(0, 0, -1, expires=False)


class Life:
    """One queue's history, and what must be in it."""

    def __init__(self, seed, folder):
        self.chance = chance = Random(seed)
        self.is_prompt = seed % 2 == 1
        self.folder = folder
        self.highest = chance.choice([0, 3])
        self.limit = chance.choice(LIMITS)
        self.has_letters = chance.random() < 0.6
        levels = {"x-max-priority": self.highest} if self.highest else {}
        self.arguments = {**levels, **self.limit, **(TO_DEAD if self.has_letters else {})}
        self.sent = {}
        self.generation = self.lives = 0
        (folder / "0").mkdir()
        self.open(folder / "0")

    def open(self, root):
        """Begin a process."""
        self.root = root
        self.disk = SimulatedDisk(root)
        self.watching = self.disk.watching()
        self.watching.__enter__()
        self.world = AmqpWorld(root / "data", is_sync=True, is_prompt=self.is_prompt)
        self.peer = self.world.client(channels=COMMITS)
        self.peer.declare("dead", durable=True)
        self.declare()
        self.peer.confirms()
        self.peer.call(Tx.Select(), COMMITS)
        self.waiting, self.tag, self.held = {}, 0, {}

    def declare(self):
        assert isinstance(self.peer.declare("work", durable=True, arguments=self.arguments), Queue.DeclareOk)

    def take(self):
        """Take what came: messages, and which of those that were published are stored."""
        for one in self.peer.take():
            if isinstance(one, Message):
                self.held[one.tag] = self.check_given(one)
            elif isinstance(one, Basic.Ack):
                first = 1 if one.multiple else one.delivery_tag
                for tag in range(first, one.delivery_tag + 1):
                    self.waiting.pop(tag, UNKNOWN).is_confirmed = True

    def check_given(self, message):
        found = self.sent[int(message.body.split(b".")[0])]
        assert found.generation == self.generation, found.number
        assert found.done in {"", "now", "perhaps"}, (found.number, found.done)
        return found

    def make(self, *, expires=False):
        number, priority = len(self.sent) + 1, self.chance.randrange(5)
        made = Sent(number, min(priority, self.highest), self.generation, expires=expires)
        self.sent[number] = made
        body = b"%d." % number + b"." * self.chance.randrange(12)
        return made, body, {"key": "work", "priority": priority, "delivery_mode": 2}

    def publish(self):
        for _ in range(self.chance.randrange(1, 5)):
            expires = self.chance.random() < 0.2
            made, body, options = self.make(expires=expires)
            self.tag += 1
            self.waiting[self.tag] = made
            self.peer.publish(body, **options, **({"expiration": "3000"} if expires else {}))
        self.take()

    def commit(self):
        if not self.world.flushes_by_itself:
            return
        made = []
        for _ in range(self.chance.randrange(1, 4)):
            one, body, options = self.make()
            self.peer.publish(body, channel=COMMITS, **options)
            made.append(one)
        is_kept = self.chance.random() < 0.7
        self.take()
        answer = self.peer.call(Tx.Commit() if is_kept else Tx.Rollback(), COMMITS)
        for one in made:
            one.is_confirmed = isinstance(answer, Tx.CommitOk)

    def get(self):
        self.peer.send(*[Basic.Get(queue="work")] * self.chance.randrange(1, 4))
        self.take()

    def settle(self):
        """Acknowledge, give back or reject some that were taken."""
        method = self.chance.choice(["ack", "give back", "reject"])
        for tag in list(self.held)[: self.chance.randrange(1, 4)]:
            one = self.held.pop(tag)
            if method == "ack":
                self.peer.send(Basic.Ack(tag))
            else:
                self.peer.send(Basic.Nack(tag, requeue=method == "give back"))
            one.is_rejected |= method == "reject"
            if method == "ack" or (method == "reject" and not self.has_letters):
                one.done = "now"
        self.take()

    def purge(self):
        if self.chance.random() < 0.2:
            self.peer.send(Queue.Purge(queue="work"))
            self.take()
            for one in self.of_this_queue():
                if one not in self.held.values() and not one.done:
                    one.done = "now"

    def of_this_queue(self):
        return [one for one in self.sent.values() if one.generation == self.generation]

    def delete(self):
        if self.chance.random() < 0.5:
            self.take()
            self.peer.send(Queue.Delete(queue="work"))
            if any(isinstance(one, Queue.DeleteOk) for one in self.peer.take()):
                self.generation += 1
                self.held = {}
                self.declare()
            else:  # nobody was told: it is there as it was, or was deleted when the process stopped
                is_again = self.chance.random() < 0.5
                if is_again:
                    self.declare_behind()
                self.end(is_deleting=True, is_stopping=not is_again)

    def declare_behind(self):
        """Have another connection declare, use and perhaps consume a queue of that name: it is not answered either."""
        other = self.world.client()
        other.send(Queue.Declare(queue="work", durable=True, arguments=self.chance.choice(OTHERS)))
        other.publish(b"0.", key="work", priority=1, delivery_mode=2)
        if self.chance.random() < 0.5:
            other.send(Basic.Get(queue="work", no_ack=True))
        assert other.take() == []

    def let_time_pass(self):
        self.world.now_ms += self.chance.choice([EXPIRY_INTERVAL_MS, 4_000])
        self.world.amqp.vhosts.expire_first(self.world.now_ms)
        self.world.turn()
        self.take()

    def hold_flushes(self):
        self.world.flushes_by_itself = self.chance.random() < 0.5
        self.world.turn()
        self.take()

    def read(self):
        """Return what was ever in the queue: nothing of that is lost by being consumed."""
        reader = self.world.client().consume("work", "r", no_ack=True, arguments={"x-stream-offset": "first"})
        found = [int(body.split(b".")[0]) for body in reader.bodies()]
        reader.vanish()
        return found

    def read_all(self):
        self.take()
        found = self.read()
        assert found == sorted(set(found))
        assert {self.sent[number].generation for number in found} <= {self.generation}
        assert {one.number for one in self.of_this_queue() if one.is_confirmed and not one.expires} <= set(found)

    def end(self, *, is_deleting=False, is_stopping=True):
        """End the process in some way, and begin the next one; cleanly only where `is_stopping`."""
        self.take()
        how = self.chance.choice(["stop"] * is_stopping + ["kill", "kill", "power cut", "power cut"])
        self.lives += 1
        root, now_ms = self.folder / str(self.lives), self.world.now_ms
        if how == "power cut":
            cut_power(self.world, self.disk, root, LEFT[self.chance.choice(list(LEFT))])
        elif how == "kill":
            shutil.copytree(self.root, root)
            self.world.close()
        else:
            self.world.flushes_by_itself = True
            self.world.turn()
            self.take()
            self.world.close()
            shutil.copytree(self.root, root)
        self.watching.__exit__(None, None, None)
        for one in self.sent.values():
            if one.done == "now":
                one.done = "perhaps" if how == "power cut" else "surely"
        self.open(root)
        self.world.now_ms = now_ms
        self.generation += is_deleting and not self.read()
        self.check()

    def peek(self, queue):
        """Return what a queue holds, and give it back."""
        peer, found = self.world.client(), []
        while isinstance(one := peer.call(Basic.Get(queue=queue)), Message):
            found.append(one)
        peer.vanish()
        return found

    def check(self):
        here = [self.check_given(one).number for one in self.peek("work")]
        letters = [int(one.body.split(b".")[0]) for one in self.peek("dead")]
        assert len(set(here)) == len(here)
        told = [number for number in here + letters if self.sent[number].is_confirmed]  # others may have two letters
        assert len(set(told)) == len(told)
        assert here == sorted(here, key=lambda number: (-self.sent[number].level, number))
        may_go = not self.has_letters and bool(self.limit)
        for one in self.of_this_queue():
            if one.is_confirmed and not one.done and not may_go and (self.has_letters or not one.expires):
                assert one.number in here or one.number in letters

    def run(self):
        steps = [self.publish] * 4 + [self.get] * 2 + [self.settle] * 3
        steps += [
            self.commit,
            self.purge,
            self.delete,
            self.let_time_pass,
            self.read_all,
            self.end,
            self.hold_flushes,
            self.hold_flushes,
        ]
        for _ in range(STEPS):
            self.chance.choice(steps)()
        self.end()

    def close(self):
        self.world.close()
        self.watching.__exit__(None, None, None)


@pytest.mark.slow
def test_confirmed_messages_are_there_and_finished_ones_are_not_whatever_happens(tmp_path):
    for seed in range(FIRST, FIRST + LIVES):
        folder = tmp_path / str(seed)
        folder.mkdir()
        life = Life(seed, folder)
        try:
            life.run()
        except BaseException as error:
            error.add_note(f"in the life of seed {seed}")
            raise
        finally:
            life.close()
        shutil.rmtree(folder)
