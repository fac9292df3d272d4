"""What is told of each message in each queue of a virtual host, beside what its clients really did with it.

Of a stream it is told how far each consumer is that reads it: where it began, what it has and has not acknowledged.
Readers of other queues take nothing, and are not told as what has a message.

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
from tests.support.amqp_streams import OFFSET, STREAM, offset_of
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


READERS_MAX = 3
EVERY, NONE = "x-stream-match-unfiltered", "none"
FILTERED = "acknowledged or not wanted by its filter"


class Reader:
    """A consumer of a stream that acknowledges when it is told to.

    With `wanted` it has a filter that every message passes, or none.
    """

    def __init__(self, world, tag, start, *, prefetch, first, wanted):
        self.tag, self.prefetch, self.first, self.wanted = tag, prefetch, first, wanted
        self.held = {}  # by delivery tag: offset
        self.done = set()  # offsets
        self.peer = world.client()
        said = {} if start is None else {OFFSET: start}
        if wanted is not None:
            said |= {"x-stream-filter": "red", EVERY: wanted == EVERY}
        self.peer.send(Basic.Qos(prefetch_count=prefetch))
        self.peer.consume(STREAM, tag, arguments=said)

    def read(self):
        self.held |= {one.tag: offset_of(one) for one in self.peer.messages()}

    def acknowledge(self, chance):
        self.read()
        if self.held:
            tag, multiple = chance.choice([*self.held]), chance.random() < 0.3
            self.peer.send(Basic.Ack(tag, multiple=multiple))
            for each in [each for each in self.held if each == tag or (multiple and each < tag)]:
                self.done.add(self.held.pop(each))
        self.read()

    def expects(self, offset):
        """Return how far it is with a message, how that ended, and whether it is told as the one that has or had it."""
        if offset < self.first:
            return Stage.DONE, {"subscribed later"}, False
        if offset in self.held.values():
            return Stage.TAKEN, {None}, True
        if offset in self.done:
            return Stage.DONE, {"acknowledged", FILTERED} if self.wanted else {"acknowledged"}, None
        return (Stage.DONE, {FILTERED}, False) if self.wanted == NONE else (Stage.WAITS, {None}, False)


class Told(Life):
    """A history in which it is asked, again and again, what became of all messages."""

    def __init__(self, *args):
        self.trail = Trail()
        self.had = {}  # by uid: the consumer that a message was given to last
        self.readers, self.reader_count = [], 0  # of the stream
        super().__init__(*args)

    # What happens to it

    def given(self, client, name, message, channel, consumer, *, no_ack):
        super().given(client, name, message, channel, consumer, no_ack=no_ack)
        if not no_ack:
            self.had[client.held[channel, message.tag][1]] = consumer

    def restart(self, how):
        super().restart(how)
        self.trail = Trail()
        self.readers = []

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

    # Readers

    def delete_stream(self):
        super().delete_stream()
        self.end_readers()

    def end_readers(self):
        for one in self.readers:
            one.peer.vanish()
        self.readers = []

    def begin_reader(self):
        """Have a consumer read the stream from somewhere on."""
        if len(self.readers) == READERS_MAX:
            return
        shown = self.world.amqp.vhost.find(STREAM)
        queue_ref = self.world.broker.find_queue(shown.light_name)
        end = max(self.world.broker.max_offset(queue_ref) if queue_ref >= 0 else 0, shown.first_offset)
        at = self.chance.randrange(end + 2)
        start = self.chance.choice([None, "next", "first", "last", at, at])
        first = {None: end, "next": end, "first": 0, "last": end - 1, at: at}[start]
        self.reader_count += 1
        said = {"prefetch": self.chance.choice([1, 2, 9]), "first": max(first, shown.first_offset)}
        said["wanted"] = self.chance.choice([None, None, EVERY, NONE])
        self.note("begin reader", self.reader_count, start, said)
        self.readers.append(Reader(self.world, f"r{self.reader_count}", start, **said))

    def acknowledge_as_reader(self):
        if self.readers:
            one = self.chance.choice(self.readers)
            self.note("acknowledge as reader", one.tag)
            one.acknowledge(self.chance)

    def end_reader(self):
        if self.readers:
            one = self.readers.pop(self.chance.randrange(len(self.readers)))
            self.note("end reader", one.tag)
            if self.chance.random() < 0.5:
                one.peer.send(Basic.Cancel(one.tag))
            else:
                one.peer.vanish()

    def check_beside_reader(self):
        """Ask for all messages of a queue while a reader that takes nothing has some of them."""
        name = self.chance.choice(self.names_for())
        if self.oracle.queues[name].has_exclusive:
            return
        self.note("read beside", name)
        self.oracle.queues[name].unused_ms = None
        reader = self.world.client().consume(name, "beside", arguments={OFFSET: "first"})
        for one in reader.messages():
            if self.chance.random() < 0.5:
                reader.send(Basic.Ack(one.tag))
        self.check_all_of(name)
        reader.vanish()

    # What is told

    def check_stream_told(self):
        """Ask for all messages of the stream."""
        for one in self.readers:
            one.read()
        shown, batch = self.world.amqp.vhost.find(STREAM), StoredBatch(16)
        for at, stored, _ in self.stored_in(shown.light_name, batch, shown.first_offset):
            found = [fate for fate in self.world.amqp.inventory().fates(shown.light_name, at) if fate is not None]
            view = SimpleNamespace(broker=self.world.broker, trail=self.trail, since_ms=self.world.begin_ms)
            said = {}
            for fate in found:
                answer = asyncio.run(self.await_answer(Outcomes(view, stored), fate))
                said[fate.reader.partition(" of ")[0]] = fate.stage, answer["outcome"], answer["by"]
            assert said.pop(f"{STREAM} in /") == (Stage.WAITS, None, ""), (at, found)
            assert said.keys() == {f"consumer {one.tag}" for one in self.readers}, (at, found)
            for one in self.readers:
                stage, ways, is_its = one.expects(at)
                told_stage, outcome, by = said[f"consumer {one.tag}"]
                assert (told_stage, outcome in ways) == (stage, True), (one.tag, at, stage, ways, found)
                assert is_its in {None, bool(by)}, (one.tag, at, found)
                assert not by or by.startswith(f"consumer {one.tag} of guest "), by
                assert stage is not Stage.WAITS or len(one.held) == one.prefetch, (one.tag, at, "was not given")

    def stored_in(self, light_name, batch, offset):
        """Give offset, record and number of each message of a light queue."""
        broker = self.world.broker
        queue_ref = broker.find_queue(light_name)
        while queue_ref >= 0 and (count := broker.read(queue_ref, offset, batch, 16, 1 << 20)):
            if count == AWAY:
                self.world.turn()
                continue
            messages = [self.read_message(batch, i) for i in range(count)]
            offset = batch.next_offset
            yield from messages

    def check(self):
        """Ask for all messages of all queues."""
        self.check_stream_told()
        for name in self.oracle.queues:
            self.check_all_of(name)

    def check_all_of(self, name):
        queue, shown = self.oracle.queues[name], self.world.amqp.vhost.find(name)
        for light_name in self.world.amqp.vhost.pops.light_names(shown.light_name, shown.terms):
            self.check_queue(queue, light_name)

    def check_queue(self, queue, light_name):
        for at, stored, like in self.stored_in(light_name, StoredBatch(16), 0):
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
        words = WORDS[how] | (WORDS[MAXLEN] if uid in self.oracle.either else set())
        is_known = fate.stage is Stage.DONE and answer["outcome"] in words
        letter = answer["letter"]
        is_its = letter is None or how in {letter["reason"], None}
        return is_known and is_timely and is_its and (not fate.holder or self.is_holder(uid, fate.holder))

    def is_holder(self, uid, by):
        if uid not in self.had:
            return True
        tag = self.had[uid]
        return by.startswith("a get" if tag is None else f"consumer {tag} ")

    def run_told(self):
        steps = self.draw_steps() + [self.begin_reader] * 3 + [self.acknowledge_as_reader] * 5 + [self.end_reader]
        steps += [self.check_beside_reader] * 2
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
