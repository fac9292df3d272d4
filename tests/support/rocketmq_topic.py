"""The history of a topic of RocketMQ beside lists: its sends, transactions, pulls and offsets."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from random import Random

from core.store.embedded import EmbeddedEngine
from gateway.settings.models import RocketmqSettings
from lmq.remoting.message_codec import BatchItem, encode_batch
from tests.support.full_engine import FullEngine
from tests.support.rocketmq import request_frame, send_ext, send_frame
from tests.support.rocketmq_door import NOW_MS, DoorSite, records_of
from tests.support.rocketmq_transactions import beat, checks, end_ext, half

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


class Topic:
    """A topic and its groups, beside what was sent, committed and given; all but POP."""

    def __init__(self, seed, folder, make_engine):
        self.chance = Random(seed)
        self.folder = folder
        self.is_prompt = seed % 2 == 1
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
        said = {"now_ms": self.now_ms, "is_prompt": self.is_prompt}
        self.site = DoorSite(self.data_dir, settings, make_engine=self.make_engine, **said)
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
            assert self.is_full, answer.remark  # and nothing of it is there
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


def text_of(said):
    return "".join(f"{name}\x01{value}\x02" for name, value in said.items())
