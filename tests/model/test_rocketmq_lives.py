"""A topic of RocketMQ beside lists: all ways to send, pulls, POP, retries, transactions, with kills at any step.

What is unanswered when a kill comes may be there or not; the next answers tell.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from dataclasses import dataclass
from random import Random

import pytest

from core.store.embedded import EmbeddedEngine
from gateway.settings.models import RocketmqSettings
from lmq.remoting.message_codec import BatchItem, encode_batch
from tests.support.engines import MAKERS
from tests.support.full_engine import FullEngine
from tests.support.lives import told
from tests.support.rocketmq import request_frame, send_ext, send_frame
from tests.support.rocketmq_door import NOW_MS, DoorSite, records_of
from tests.support.rocketmq_pop import ack, ask_change, pop
from tests.support.rocketmq_transactions import beat, checks, end_ext, half

FIRST = int(os.environ.get("TORTURE_FIRST", "0"))
LIVES = int(os.environ.get("TORTURE_ROCKETMQ_LIVES", "8"))
STEPS = int(os.environ.get("TORTURE_ROCKETMQ_STEPS", "60"))
TOPIC, LIGHT, RETRY, DEAD = "T", "%LMQ%a", "%RETRY%g", "%DLQ%g"
QUEUES = ((TOPIC, 0), (TOPIC, 1), (LIGHT, 0))
RETRIES = 2  # of the group
TIMEOUT_MS, INTERVAL_MS = 3_000, 4_000
COMMIT, ROLLBACK, UNKNOWN = 8, 12, 0


@dataclass
class Entry:
    """A message of one queue, as the group that pops sees it."""

    body: bytes
    given: int = 0
    may_be_given: int = 0  # times more, by requests that a kill left unanswered
    hidden_until: int = 0
    is_done: bool = False
    may_be_done: bool = False  # by an acknowledgement that was not answered
    is_dead: bool = False
    receipt: object = None


@dataclass
class Pending:
    """What comes to a queue at a moment."""

    due_ms: int
    key: tuple
    body: bytes
    lights: bool = False
    may_be: bool = False
    is_batch: bool = False


class Life:
    """The history of a topic."""

    def __init__(self, seed, folder, make_engine):
        self.chance = Random(seed)
        self.folder = folder
        self.is_late = make_engine is not EmbeddedEngine
        self.make_engine = make_engine if self.is_late else FullEngine
        self.ends = self.sent = 0
        self.now_ms = NOW_MS
        self.log = []
        self.queues = {key: [] for key in [*QUEUES, (RETRY, 0), (DEAD, 0)]}  # entries in order
        self.unsure = {key: [] for key in self.queues}  # messages that may be there
        self.pending = []
        self.halves = {}  # open transactions by their bodies: answer, queue
        self.committed = {}  # offsets of the group that pulls, by queue
        self.may_be_dead = Counter()  # bodies of those that were given too often before a reset
        self.asked = set()  # keys of transactions that the producer was asked about
        self.folder.mkdir(parents=True)
        self.data_dir = folder / "0"
        self.open()
        for group in "gp":
            said = json.dumps({"groupName": group, "retryMaxTimes": RETRIES}).encode()
            assert self.peer.ask(200, said).code == 0
        self.queues["%DLQ%p", 0] = []
        self.unsure["%DLQ%p", 0] = []
        said = {"topic": TOPIC, "defaultTopic": "TBW102", "readQueueNums": 2, "writeQueueNums": 2, "perm": 6}
        said |= {"topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "order": "false"}
        assert self.peer.ask(17, **said).code == 0

    def open(self):
        settings = RocketmqSettings(
            transaction_timeout_ms=TIMEOUT_MS, transaction_check_interval_ms=INTERVAL_MS, transaction_checks_max=1_000
        )
        self.site = DoorSite(self.data_dir, settings, make_engine=self.make_engine, now_ms=self.now_ms)
        self.peer = self.site.connect()
        self.producer = self.site.connect()
        self.settle()
        beat(self.producer, "p")

    def settle(self):
        self.site.broker.request_run(self.site.broker.timer)
        for _ in range(64):
            self.site.turn()
            if not self.site.broker.has_work:
                return
        raise AssertionError("the gateway finds no rest")

    def note(self, *what):
        self.log.append(what)

    # Sends

    def body(self):
        self.sent += 1
        return b"%d" % self.sent

    def draw_send(self):
        """Return a queue, whether light queues get the message, and how it waits: None, a level or a moment."""
        queue_id, lights = self.chance.randrange(2), self.chance.random() < 0.3
        wait = self.chance.choice(
            [None, None, None, ("DELAY", 1, 1_000), ("DELAY", 2, 5_000), ("TIMER_DELAY_MS", 2_500, 2_500)]
        )
        return queue_id, lights, wait

    def send(self):
        queue_id, lights, wait = self.draw_send()
        body = self.body()
        said = {"UNIQ_KEY": body.decode()} | ({"INNER_MULTI_DISPATCH": LIGHT} if lights else {})
        said |= {wait[0]: wait[1]} if wait else {}
        self.note("send", body, queue_id, lights, wait)
        frame = send_frame(body, topic=TOPIC, e=str(queue_id), properties=text_of(said), opaque=5)
        made = [Pending(self.now_ms + (wait[2] if wait else 0), (TOPIC, queue_id), body, lights)]
        self.give(frame, made)

    def send_batch(self):
        queue_id = self.chance.randrange(2)
        bodies = [self.body() for _ in range(self.chance.randint(1, 4))]
        self.note("batch", bodies, queue_id)
        data = encode_batch(BatchItem(0, body, text_of({"UNIQ_KEY": body.decode()}).encode()) for body in bodies)
        frame = request_frame(320, data, opaque=5, **send_ext(TOPIC, m="true", e=str(queue_id)))
        self.give(frame, [Pending(self.now_ms, (TOPIC, queue_id), body, is_batch=True) for body in bodies])

    def give(self, frame, made):
        """Send a frame that stores messages: they are there if it is answered so, and may be where a kill comes."""
        self.peer.give(frame)
        if self.is_torn():
            answers = [one for one in self.peer.take() if one.is_response]
            is_stored = bool(answers) and answers[0].code == 0
            for one in made:
                one.may_be = not is_stored
            self.pending += made
            self.kill()
            return
        self.settle()
        (answer,) = [one for one in self.peer.take() if one.is_response]
        if answer.code == 0:
            self.pending += made
        else:
            assert self.is_full, answer.remark
            for one in made[: len(made) - 1]:  # the first of a batch may have found room
                self.unsure[one.key].append(one.body)
        self.come()

    def is_torn(self):
        return self.chance.random() < 0.12

    @property
    def is_full(self):
        return getattr(self.site.engine, "left", None) is not None

    def fill_disk(self):
        """Let the disk be full for a while."""
        if self.is_late:
            return
        self.site.engine.left = self.chance.randrange(3)
        self.note("full", self.site.engine.left)
        for _ in range(self.chance.randint(1, 3)):
            self.chance.choice([self.send, self.send_batch, self.send_back, self.let_time_pass, self.ack])()
        if self.is_full:
            self.site.engine.left = None
        self.note("room")
        self.now_ms += 2_000
        self.pass_on()
        self.look()

    # Transactions

    def begin(self):
        queue_id, body = self.chance.randrange(2), self.body()
        self.note("half", body, queue_id)
        if self.is_full:
            return
        sent = self.peer.send(body, topic=TOPIC, e=str(queue_id), f="4", properties=half(body.decode()))
        assert sent.code == 0, sent.remark
        self.settle()
        self.halves[body] = sent, queue_id

    def finish(self):
        if not self.halves or self.is_full:
            return
        body = self.chance.choice(list(self.halves))
        sent, queue_id = self.halves[body]
        how = self.chance.choice([COMMIT, COMMIT, ROLLBACK, UNKNOWN])
        self.note("end", body, how)
        self.peer.give(request_frame(37, opaque=77, **end_ext(sent, how)))
        if self.is_torn():
            answered = [one for one in self.peer.take() if one.is_response]
            if how == COMMIT:
                self.pending.append(Pending(self.now_ms, (TOPIC, queue_id), body, may_be=not answered))
            if how != UNKNOWN:
                del self.halves[body]
            self.kill()
            return
        self.settle()
        (answer,) = [one for one in self.peer.take() if one.is_response]
        assert answer.code == 0, answer.remark
        if how == COMMIT:
            self.pending.append(Pending(self.now_ms, (TOPIC, queue_id), body))
        if how != UNKNOWN:
            del self.halves[body]
        self.come()

    def read_checks(self):
        for one in checks(self.producer):
            key = one.ext["transactionId"].encode()
            self.asked.add(key)

    # Time

    def let_time_pass(self):
        self.now_ms += self.chance.choice([500, 1_000, 1_000, 4_000, 10_000])
        self.note("time", self.now_ms - NOW_MS)
        self.pass_on()

    def pass_on(self):
        self.site.now_ms = self.now_ms
        self.settle()
        self.settle()
        self.read_checks()
        self.come()

    def come(self):
        """Have what is due come to its queue, as it is there: in what order, the gateway says."""
        due = [one for one in self.pending if one.due_ms <= self.now_ms]
        if not due:
            return
        if self.is_full:  # what waits finds no room
            return
        self.pending = [one for one in self.pending if one not in due]
        for key in sorted({one.key for one in due}):
            self.compare(key, [one for one in due if one.key == key])
        self.compare((LIGHT, 0), [one for one in due if one.lights])

    def compare(self, key, due=()):
        """See that a queue has what it had, and then what is due."""
        known = self.queues[key]
        told = self.pull_all(key)
        assert [body for body, *_ in told[: len(known)]] == [one.body for one in known], (key, told, known)
        new = Counter(body for body, *_ in told[len(known) :])
        sure = Counter(one.body for one in due if not one.may_be)
        assert sure <= new, ("lost", key, sure - new)
        allowed = sure + Counter(one.body for one in due if one.may_be) + Counter(self.unsure[key])
        assert new <= allowed, ("made up", key, new - allowed)
        unseen = [one.body for one in due if one.may_be]  # where the topic is not there yet, it may come with it
        self.unsure[key] = [body for body in self.unsure[key] + unseen if body not in new]
        at_once = [int(one.body) for one in due if one.due_ms == self.now_ms and one.is_batch]
        order = [int(body) for body, *_ in told[len(known) :] if int(body) in at_once]
        assert order == sorted(order)
        known += [Entry(body) for body, *_ in told[len(known) :]]

    def pull_all(self, key):
        topic, queue_id = key
        found, offset = [], 0
        for _ in range(200):
            answer = self.peer.pull(topic, offset, queueId=queue_id, sysFlag=4, consumerGroup="watch")
            if answer.code == 17:
                return []
            if answer.code != 0:
                if answer.code in (19, 21) and (answer.code != 21 or int(answer.ext["nextBeginOffset"]) in (offset, 0)):
                    return found
                assert answer.code in (19, 20, 21), (answer.code, answer.remark)
                if answer.code == 20:
                    self.settle()
                continue
            found += [(one.body, one.reconsume_times, one.physical_offset) for one in records_of(answer)]
            offset = int(answer.ext["nextBeginOffset"])
        raise AssertionError("a pull that has no end")

    # A group that pulls

    def commit(self):
        queue_id = self.chance.randrange(2)
        offset = self.chance.randrange(len(self.queues[TOPIC, queue_id]) + 1)
        self.note("commit", queue_id, offset)
        assert self.peer.ask(15, consumerGroup="g", topic=TOPIC, queueId=queue_id, commitOffset=offset).code == 0
        self.committed[queue_id] = offset
        self.look_at_offsets()

    def look_at_offsets(self):
        for queue_id, offset in self.committed.items():
            answer = self.peer.ask(14, consumerGroup="g", topic=TOPIC, queueId=queue_id)
            assert answer.ext["offset"] == str(offset)

    def reset(self):
        at_ms = self.chance.choice([0, -1])
        self.note("reset", at_ms)
        ext = {"topic": TOPIC, "group": "g", "timestamp": at_ms, "isForce": "true"}
        assert self.peer.ask(222, **ext).code == 0
        self.peer.take()
        for queue_id in range(2):
            self.committed[queue_id] = 0 if at_ms == 0 else len(self.queues[TOPIC, queue_id])
        self.look_at_offsets()

    def send_back(self):
        key = self.chance.choice([(TOPIC, 0), (TOPIC, 1), (RETRY, 0)])
        told = self.pull_all(key)
        if not told:
            return
        body, attempts, offset = self.chance.choice(told)
        level = self.chance.choice([1, 1, 2, -1])
        self.note("send back", key, body, attempts, level)
        is_spent = level < 0 or attempts >= RETRIES
        due_ms = self.now_ms if is_spent else self.now_ms + {1: 1_000, 2: 5_000}[level]
        ext = {"offset": offset, "group": "g", "delayLevel": level, "originMsgId": "k", "originTopic": TOPIC}
        made = [Pending(due_ms, (DEAD if is_spent else RETRY, 0), body)]
        self.give(request_frame(36, opaque=5, unitMode="false", maxReconsumeTimes=RETRIES, **ext), made)

    # A group that pops

    def reset_pops(self):
        """Have the group begin anew, or behind all that is there: what it took is forgotten."""
        at_ms = self.chance.choice([0, -1])
        self.note("reset of pops", at_ms)
        ext = {"topic": TOPIC, "group": "p", "timestamp": at_ms, "isForce": "true"}
        assert self.peer.ask(222, **ext).code == 0
        self.peer.take()
        for key in QUEUES[:2]:
            spent = [one.body for one in self.queues[key] if one.given + one.may_be_given > RETRIES]
            self.may_be_dead.update(spent)
            self.queues[key] = [Entry(one.body, is_done=at_ms != 0) for one in self.queues[key]]

    def visible(self, key):
        return [
            one for one in self.queues[key] if not one.is_done and not one.is_dead and one.hidden_until <= self.now_ms
        ]

    def pop(self):
        topic, queue_id = self.chance.choice([*QUEUES, (TOPIC, -1)])
        count, invisible_ms = self.chance.choice([1, 2, 32]), self.chance.choice([1_000, 5_000, 60_000])
        self.note("pop", topic, queue_id, count, invisible_ms)
        keys = [key for key in QUEUES if key[0] == topic and queue_id in (-1, key[1])]
        for key in keys:  # those that were given too often are dead letters
            self.bury(key)
        if self.is_full:
            return
        found = pop(self.peer, topic, consumerGroup="p", queueId=queue_id, maxMsgNums=count, invisibleTime=invisible_ms)
        self.note("  popped", [(one.body, one.queue_id, one.offset, one.attempts) for one in found])
        visible = [one for key in keys for one in self.visible(key)]
        for one in found:
            entry = self.queues[topic, one.queue_id][one.offset]
            assert entry in visible, (topic, one, entry)
            assert entry.body == one.body
            assert entry.given <= one.attempts <= entry.given + entry.may_be_given, (one, entry)
            entry.given, entry.may_be_given, entry.may_be_done = one.attempts + 1, 0, False
            entry.hidden_until = self.now_ms + invisible_ms
            entry.receipt = topic, one
        left = [one for one in visible if one.receipt is None or one.hidden_until <= self.now_ms]
        if not found and not self.is_late:  # those that come again and others come by answers of their own
            assert not [one for one in left if not one.may_be_done and not one.may_be_given], ("not given", left)
        self.settle()
        self.come()

    def bury(self, key):
        for one in self.visible(key):
            if one.given > RETRIES and not one.may_be_done:
                one.is_dead = True
            elif one.given + one.may_be_given > RETRIES:
                one.may_be_done = True

    def choose(self):
        held = [one for key in QUEUES for one in self.queues[key] if one.receipt is not None]
        return self.chance.choice(held) if held else None

    def is_held(self, one):
        return one.hidden_until > self.now_ms and not one.is_done and not one.is_dead

    def ack(self):
        one = self.choose()
        if one is None:
            return
        topic, popped = one.receipt
        self.note("ack", topic, popped.body, self.is_held(one))
        ext = {
            "consumerGroup": "p",
            "topic": topic,
            "queueId": popped.queue_id,
            "offset": popped.offset,
            "extraInfo": popped.receipt,
        }
        self.peer.give(request_frame(200_051, opaque=5, **ext))
        one.may_be_done |= one.hidden_until <= self.now_ms  # too late: good if it was not shown again yet
        if self.is_torn():
            if self.is_held(one):
                answered = any(each.is_response for each in self.peer.take())
                one.is_done, one.may_be_done = answered, not answered
            self.kill()
            return
        self.settle()
        (answer,) = [each for each in self.peer.take() if each.is_response]
        assert answer.code == 0, answer.remark
        one.is_done |= self.is_held(one)

    def change(self):
        one = self.choose()
        if one is None or not self.is_held(one):
            return
        topic, popped = one.receipt
        invisible_ms = self.chance.choice([1_000, 4_000, 30_000])
        self.note("change", topic, popped.body, invisible_ms)
        answer = ask_change(self.peer, popped, invisible_ms, topic, consumerGroup="p")
        assert answer.code == 0, answer.remark
        one.hidden_until = self.now_ms + invisible_ms
        ext, parts = answer.ext, popped.receipt.split(" ")
        popped.receipt = " ".join(
            (
                str(popped.offset),
                ext["popTime"],
                ext["invisibleTime"],
                ext["reviveQid"],
                *parts[4:7],
                str(popped.offset),
            )
        )

    # Ends

    def end(self):
        self.note("end of the process")
        self.kill(is_clean=self.chance.random() < 0.4)

    def kill(self, *, is_clean=False):
        self.note("stop" if is_clean else "kill")
        self.ends += 1
        data_dir = self.folder / str(self.ends)
        if is_clean:
            self.settle()
            self.site.close()
            shutil.copytree(self.data_dir, data_dir)
        else:
            shutil.copytree(self.data_dir, data_dir)
            self.site.close()
        shutil.rmtree(self.data_dir)
        self.data_dir = data_dir
        self.open()
        self.pass_on()
        self.look()

    def look(self):
        for key in self.queues:
            if not key[0].startswith("%DLQ%p"):
                self.compare(key)
        self.look_at_offsets()

    def run(self):
        steps = [self.send] * 5 + [self.send_batch] * 2 + [self.pop] * 6 + [self.ack] * 5 + [self.let_time_pass] * 5
        steps += [self.begin, self.finish, self.finish, self.commit, self.reset, self.send_back, self.send_back]
        steps += [self.change, self.change, self.end, self.look, self.fill_disk]
        steps += [self.reset_pops]
        for _ in range(STEPS):
            self.chance.choice(steps)()
        self.wind_up()

    def wind_up(self):
        """Let everything come to its end: each message is done, is a dead letter, or is given once more."""
        self.asked.clear()
        for _ in range(40):
            self.now_ms += 2_000
            self.pass_on()
        assert {*self.halves} <= self.asked, ("not asked about", {*self.halves} - self.asked)
        for key in QUEUES:
            self.bury(key)
        for _ in range(3 * RETRIES):
            for topic, queue_id in QUEUES:
                while found := pop(self.peer, topic, consumerGroup="p", queueId=queue_id, invisibleTime=1_000):
                    for one in found:
                        entry = self.queues[topic, queue_id][one.offset]
                        assert not entry.is_done, (topic, one, entry)
                        assert not entry.is_dead, (topic, one, entry)
                        entry.is_done = True
                        assert ack(self.peer, one, topic, consumerGroup="p").code == 0
            self.now_ms += 2_000
            self.pass_on()
        dead = Counter(body for body, *_ in self.pull_all(("%DLQ%p", 0)))
        sure = Counter(one.body for key in QUEUES for one in self.queues[key] if one.is_dead)
        maybe = Counter(one.body for key in QUEUES for one in self.queues[key] if one.may_be_done and not one.is_done)
        maybe += self.may_be_dead
        assert sure <= dead <= sure + maybe, (sure - dead, dead - sure - maybe)
        left = [
            one
            for key in QUEUES
            for one in self.queues[key]
            if not one.is_done and not one.is_dead and not one.may_be_done
        ]
        assert not left, ("never given", left)
        self.look()


def text_of(said):
    return "".join(f"{name}\x01{value}\x02" for name, value in said.items())


@pytest.mark.slow
@pytest.mark.parametrize("make_engine", MAKERS.values(), ids=MAKERS)
def test_each_message_is_where_its_sender_and_its_groups_left_it(tmp_path, make_engine):
    for seed in range(FIRST, FIRST + LIVES):
        life = Life(seed, tmp_path / str(seed), make_engine)
        with told(seed, life, lambda life=life: life.site.close()):
            life.run()
