"""A topic of RocketMQ beside lists: all ways to send, pulls, POP, retries, transactions, with kills at any step.

What is unanswered when a kill comes may be there or not; the next answers tell.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter

import pytest

from tests.support.engines import MAKERS
from tests.support.lives import told
from tests.support.rocketmq import request_frame
from tests.support.rocketmq_pop import ack, ask_change, pop
from tests.support.rocketmq_topic import QUEUES, RETRIES, TOPIC, Entry, Topic

FIRST = int(os.environ.get("TORTURE_FIRST", "0"))
LIVES = int(os.environ.get("TORTURE_ROCKETMQ_LIVES", "8"))
STEPS = int(os.environ.get("TORTURE_ROCKETMQ_STEPS", "60"))


class Life(Topic):
    """The history of a topic."""

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


@pytest.mark.slow
@pytest.mark.parametrize("make_engine", MAKERS.values(), ids=MAKERS)
def test_each_message_is_where_its_sender_and_its_groups_left_it(tmp_path, make_engine):
    for seed in range(FIRST, FIRST + LIVES):
        life = Life(seed, tmp_path / str(seed), make_engine)
        with told(seed, life, lambda life=life: life.site.close()):
            life.run()
