"""What is told of each message in each queue of a virtual host, beside what its clients really did with it.

The histories are those of `test_amqp_hosts.py`: a model follows which message is where, and how each ended. Of what a
kill in the middle of a step left open anything may be told; all else is told as it was: how far a message is, who has
it, how and between which moments it ended, and its dead letter, also after stops and kills.
"""

from __future__ import annotations

import asyncio
import os
from types import SimpleNamespace

import pytest
from pamqp.commands import Basic

from core.message import AWAY, StoredBatch
from core.stage import Stage
from gateway.admin.outcomes import Outcomes
from gateway.admin.stored import StoredRecord
from gateway.admin.trail import Trail
from gateway.amqp.queue_pops import GROUP
from gateway.amqp.stored_properties import StoredProperties
from tests.support.amqp_host import deaths_of
from tests.support.amqp_life import STEPS, Life
from tests.support.amqp_oracle import DONE, EXPIRED, LIMIT, MAXLEN, PURGED, REJECTED
from tests.support.engines import MAKERS
from tests.support.lives import told

FIRST = int(os.environ.get("TORTURE_FIRST", "0"))
LIVES = int(os.environ.get("TORTURE_FATE_LIVES", "4"))
OPEN = "open", 0  # how one ended that a torn step may have let go
EITHER = "acknowledged or purged"
WORDS = {
    EXPIRED: {"expired"},
    REJECTED: {"rejected"},
    MAXLEN: {"dropped: its queue was full"},
    LIMIT: {"given up: it was given back too often"},
    PURGED: {"purged", EITHER},
    DONE: {"acknowledged", EITHER},
}


class Told(Life):
    """A history in which it is asked, again and again, what became of all messages."""

    def __init__(self, *args):
        self.trail = Trail()
        self.had = {}  # by uid: the consumer that a message was given to last
        super().__init__(*args)

    # What happens to it

    def given(self, client, name, message, channel, consumer, *, no_ack):
        super().given(client, name, message, channel, consumer, no_ack=no_ack)
        if not no_ack:
            self.had[client.held[channel, message.tag][1]] = consumer

    def restart(self, how):
        super().restart(how)
        self.trail = Trail()

    def tear(self):
        before = self.oracle.ends.copy()
        super().tear()
        ends = self.oracle.ends = {}
        for queue in self.oracle.queues.values():
            left = {*queue.ready, *queue.unacked}
            ends.update((one.uid, before.get(one.uid, OPEN)) for one in queue.ever if one.uid not in left)

    def note_places(self):
        """Look at the places of queues, as the admin door does every few seconds."""
        for name in self.oracle.queues:
            pop = self.world.broker.pop.find(self.world.amqp.vhost.light_name(name), GROUP)
            if pop is not None:
                reader = self.world.amqp.vhost.light_name(name), GROUP
                self.trail.note(reader, self.world.now_ms, pop.next_offset, pop.floor)

    # What is told

    def check(self):
        """Ask for all messages of all queues."""
        for name, queue in self.oracle.queues.items():
            shown = self.world.amqp.vhost.find(name)
            for light_name in self.world.amqp.vhost.pops.light_names(shown.light_name, shown.terms):
                self.check_queue(queue, light_name)

    def check_queue(self, queue, light_name):
        broker = self.world.broker
        batch, queue_ref, offset = StoredBatch(16), broker.find_queue(light_name), 0
        while count := broker.read(queue_ref, offset, batch, 16, 1 << 20):
            if count == AWAY:
                self.world.turn()
                continue
            messages = [self.read_message(batch, i) for i in range(count)]
            offset = batch.next_offset
            for at, stored, like in messages:
                for fate in self.world.amqp.inventory().fates(light_name, at):
                    if fate is not None and stored.place >= fate.first_place:
                        self.check_fate(queue, fate, stored, like)

    def read_message(self, batch, i):
        """Return the offset of a message of a batch, its record, its number, and of what it died."""
        properties, reader = Basic.Properties(), StoredProperties()
        reader.read(batch.buf, batch.properties_start[i], batch.properties_end[i])
        block = reader.amqp_block(batch.buf)
        if block is not None:
            properties.unmarshal(int.from_bytes(block[:2]), block[2:])
        deaths = deaths_of(SimpleNamespace(properties=properties))
        number = int(bytes(batch.buf[batch.body_start[i] : batch.body_end[i]]).rstrip(b"."))
        record = bytes(batch.buf[batch.record_start[i] : batch.record_end[i]])
        return batch.queue_offset[i], StoredRecord(record, batch, i), (number, deaths)

    def check_fate(self, queue, fate, stored, like):
        view = SimpleNamespace(broker=self.world.broker, trail=self.trail, since_ms=self.world.begin_ms)
        answer = asyncio.run(self.await_answer(Outcomes(view, stored), fate))
        alike = [one.uid for one in queue.ever if like_of(one) == like]
        said = (queue.name, like, fate.stage, str(answer), fate.holder)
        assert alike, (*said, "was never there")
        assert any(self.is_true(queue, uid, fate, answer, stored) for uid in alike), (
            *said, [(uid in queue.ready, uid in queue.unacked, self.oracle.ends.get(uid)) for uid in alike],
        )  # fmt: skip

    async def await_answer(self, outcomes, fate):
        task = asyncio.ensure_future(outcomes.tell(fate))
        while not task.done():
            await asyncio.sleep(0)
            self.world.turn()
        return task.result()

    def is_true(self, queue, uid, fate, answer, stored):
        """Return whether a message may be told so."""
        if uid in queue.ready:
            return fate.stage in {Stage.WAITS, Stage.BACK} and answer["outcome"] is None
        if uid in queue.unacked:
            return fate.stage is Stage.TAKEN and answer["outcome"] is None and self.is_holder(uid, answer["by"])
        how, at_ms = self.oracle.ends[uid]
        if (how, at_ms) == OPEN:
            return True
        is_timely = answer["from_ms"] <= at_ms <= (answer["until_ms"] or at_ms) and answer["from_ms"] >= 0
        is_known = fate.stage is Stage.DONE and answer["outcome"] in WORDS[how]
        letter = answer["letter"]
        is_its = letter is None or how in {letter["reason"], None}
        return is_known and is_timely and is_its and (not fate.holder or self.is_holder(uid, fate.holder))

    def is_holder(self, uid, by):
        if uid not in self.had:
            return True
        tag = self.had[uid]
        return by.startswith("a get" if tag is None else f"consumer {tag} ")

    def run_told(self):
        steps = self.draw_steps()
        for _ in range(STEPS):
            self.oracle.begin_step()
            self.chance.choice(steps)()
            if self.oracle.is_open:
                return
            if self.chance.random() < 0.3:
                self.note_places()
            if self.chance.random() < 0.3:
                self.check()
        for how in ("kill", "stop"):
            self.check()
            self.oracle.begin_step()
            self.restart(how)
            self.settle()
            if self.oracle.is_open:
                return
        self.check()


def like_of(one):
    return one.number, [each[:3] for each in one.deaths]


@pytest.mark.slow
@pytest.mark.parametrize("make_engine", MAKERS.values(), ids=MAKERS)
def test_what_is_told_of_each_message_of_each_queue_is_what_became_of_it(tmp_path, make_engine):
    for seed in range(FIRST, FIRST + LIVES):
        life = Told(seed, tmp_path / str(seed), make_engine)
        with told(seed, life, lambda life=life: life.world.close()):
            life.run_told()
