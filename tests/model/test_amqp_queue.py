"""An AMQP queue with priorities and limits against a model of lists: any order of use, with kills and restarts.

A kill is the folder as it is at that moment, copied and opened.
"""

from __future__ import annotations

import os
import shutil
from random import Random

import pytest
from pamqp.commands import Basic, Confirm, Queue

from tests.support.amqp_door import AmqpWorld, Message

FIRST = int(os.environ.get("TORTURE_FIRST", "0"))
HISTORIES = int(os.environ.get("TORTURE_QUEUE_HISTORIES", "12"))
STEPS = 40


@pytest.fixture(autouse=True)
def small_marks(monkeypatch):
    monkeypatch.setattr("core.pop.byte_sums.MARK_MESSAGES", 3)
    monkeypatch.setattr("core.pop.counted_queue.PIECE_MESSAGES", 2)


class History:
    """One history: what the queue is told, and what became of its messages so far."""

    def __init__(self, seed, folder):
        self.chance = chance = Random(seed)
        self.highest = chance.choice([0, 0, 3])
        self.length = chance.choice([None, 4])
        self.size = chance.choice([None, 15, 30])
        self.is_refusing = chance.random() < 0.5
        said = {"x-max-priority": self.highest, "x-max-length": self.length, "x-max-length-bytes": self.size}
        self.arguments = {name: value for name, value in said.items() if value is not None}
        if self.is_refusing:
            self.arguments["x-overflow"] = "reject-publish"
        self.folder = folder
        self.kills = 0
        self.sent = 0
        self.ready = []  # (-level, number, size), in order
        self.taken = {}  # by delivery tag
        self.world = AmqpWorld(folder / "0")
        self.peer = self.world.client()
        self.peer.declare("q", durable=True, arguments=self.arguments)
        self.peer.call(Confirm.Select())

    def run(self):
        steps = [self.publish, self.publish, self.get, self.get, self.ack, self.give_back, self.restart, self.purge]
        for _ in range(STEPS):
            self.chance.choice(steps)()
            assert self.peer.declare("q", passive=True).message_count == len(self.ready)
        while self.get():
            pass
        self.world.close()

    def publish(self):
        for _ in range(self.chance.randrange(1, 6)):
            priority, size = self.chance.randrange(6), self.chance.randrange(12)
            self.sent += 1
            self.peer.publish(b"%d" % self.sent + b"." * size, key="q", priority=priority)
            body_size = len(str(self.sent)) + size
            is_taken = not self.is_refusing or self.has_room(body_size)
            (told,) = self.peer.take()
            assert isinstance(told, Basic.Ack if is_taken else Basic.Nack)
            if is_taken:
                self.ready.append((-min(priority, self.highest), self.sent, body_size))
                self.settle()

    def has_room(self, size):
        fits = self.length is None or len(self.ready) < self.length
        return fits and (self.size is None or sum(one[2] for one in self.ready) + size <= self.size)

    def settle(self):
        """Put what is ready in order, and drop what is too much."""
        self.ready.sort()
        while not self.is_refusing and (
            (self.length is not None and len(self.ready) > self.length)
            or (self.size is not None and sum(one[2] for one in self.ready) > self.size)
        ):
            self.ready.pop(0)

    def get(self):
        found = self.peer.call(Basic.Get(queue="q"))
        if not self.ready:
            assert isinstance(found, Basic.GetEmpty)
            return False
        expected = self.ready.pop(0)
        assert isinstance(found, Message)
        assert int(found.body.rstrip(b".")) == expected[1]
        self.taken[found.tag] = expected
        return True

    def ack(self):
        if self.taken:
            tag = self.chance.choice(list(self.taken))
            self.peer.send(Basic.Ack(tag))
            del self.taken[tag]

    def give_back(self):
        if self.taken:
            tag = self.chance.choice(list(self.taken))
            self.peer.send(Basic.Nack(tag, requeue=True))
            self.ready.append(self.taken.pop(tag))
            self.settle()

    def purge(self):
        if self.chance.random() < 0.2:
            assert self.peer.call(Queue.Purge(queue="q")).message_count == len(self.ready)
            self.ready = []

    def restart(self):
        if self.chance.random() < 0.5:
            self.kills += 1
            self.world.data_dir = shutil.copytree(self.world.data_dir, self.folder / str(self.kills))
        self.world.close()
        self.world.open()
        self.peer = self.world.client()
        self.peer.call(Confirm.Select())
        self.ready += self.taken.values()
        self.taken = {}
        self.settle()


@pytest.mark.slow
@pytest.mark.here(reason="what is on its way has no size yet")
def test_a_queue_gives_what_it_holds_in_order_whatever_happens(tmp_path):
    for seed in range(FIRST, FIRST + HISTORIES):
        folder = tmp_path / str(seed)
        folder.mkdir()
        try:
            History(seed, folder).run()
        except BaseException as error:
            error.add_note(f"in the history of seed {seed}")
            raise
        shutil.rmtree(folder)
