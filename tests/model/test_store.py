"""The store against a model of lists: any order of publishing, failing, flushing, retiring, closing and crashing.

A crash is the folder as it is at that moment, copied and opened: what another process finds after a kill -9.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from core.errors import MessageTooLargeError
from core.settings import RetentionSettings, StoreSettings
from tests.support.files import memory_folder
from tests.support.store import NOW_MS, make_batch, open_store, read_queue, retire

HOUR_MS = 3_600_000
SETTINGS = StoreSettings(
    segment_bytes=64 * 1024,
    inline_dispatch_bytes=200,
    message_bytes_max=40_000,
    segments_mapped_max=2,
    retention=RetentionSettings(age_hours=1),
)
QUEUES = [b"%%LMQ%%q%02d" % k for k in range(12)]
TOPICS = [b"T/0", b"T/1", b"U/0"]
KEYS = TOPICS + QUEUES

queue_lists = st.lists(st.sampled_from(QUEUES), max_size=12, unique=True)
sizes = st.one_of(st.integers(0, 40), st.integers(1_000, 30_000), st.just(40_001))
messages = st.lists(st.tuples(st.sampled_from(TOPICS), queue_lists, sizes), min_size=1, max_size=6)


class StoreMachine(RuleBasedStateMachine):
    @initialize()
    def open(self):
        self.root = Path(tempfile.mkdtemp(dir=memory_folder()))
        self.generation = 0
        self.now_ms = NOW_MS
        self.stored = {key: [] for key in KEYS}  # every body ever, by queue
        self.store = self.open_at(self.root / "0")

    def open_at(self, data_dir):
        return open_store(data_dir, SETTINGS, self.now_ms)

    def copy(self):
        self.generation += 1
        copied = self.root / str(self.generation)
        shutil.copytree(self.store.data_dir, copied)
        return copied

    @rule(messages=messages)
    def publish(self, messages):
        self.now_ms += 1000
        messages = [
            (topic, names, (b"%d." % (self.now_ms + i) * size)[:size])
            for i, (topic, names, size) in enumerate(messages)
        ]
        routes = [
            (self.store.make_route(topic[:1], int(topic[2:]), b"LMQ_TOPIC\x01a\x02", names), body)
            for topic, names, body in messages
        ]
        fails_at = next((i for i, (_, body) in enumerate(routes) if len(body) > SETTINGS.message_bytes_max), None)
        batch = make_batch(routes)
        if fails_at is None:
            self.store.append_batch(batch, self.now_ms)
            fails_at = len(messages)
        else:
            with pytest.raises(MessageTooLargeError):
                self.store.append_batch(batch, self.now_ms)
        assert batch.appended == fails_at
        for i, (topic, names, body) in enumerate(messages[:fails_at]):
            assert batch.queue_offset[i] == len(self.stored[topic])
            for key in (topic, *names):
                self.stored[key].append(body)

    @rule()
    def flush(self):
        assert self.store.flush() == self.store.written_until

    @rule()
    def prepare(self):
        self.store.prepare()

    @rule(hours=st.integers(0, 2))
    def retire(self, hours):
        self.now_ms += hours * HOUR_MS
        retire(self.store, self.now_ms)

    @rule()
    def reopen(self):
        data_dir = self.store.data_dir
        self.store.close()
        self.store = self.open_at(data_dir)
        self.check()

    @rule()
    def crash(self):
        copied = self.copy()
        self.store.close()
        self.store = self.open_at(copied)
        assert not self.store.report.damaged_at
        assert not self.store.report.entries_lost
        self.check()

    @rule(lost=st.sampled_from(["index", "index/queues", "index/offsets"]))
    def rebuild(self, lost):
        copied = self.copy()
        if (copied / lost).is_dir():
            shutil.rmtree(copied / lost)
        else:
            (copied / lost).unlink(missing_ok=True)
        rebuilt = self.open_at(copied)
        for key in KEYS:
            assert read_queue(rebuilt, key) == read_queue(self.store, key)
        rebuilt.close()

    def check(self):
        for key, stored in self.stored.items():
            queue_ref = self.store.intern_queue(key)
            first = self.store.min_offset(queue_ref)
            assert self.store.max_offset(queue_ref) == len(stored)
            assert read_queue(self.store, key) == list(enumerate(stored))[first:]

    @invariant()
    def newest_messages_are_read_back(self):
        for key in QUEUES[:2]:
            stored = self.stored[key]
            queue_ref = self.store.intern_queue(key)
            assert self.store.max_offset(queue_ref) == len(stored)
            kept_from = self.store.min_offset(queue_ref)
            tail = max(len(stored) - 2, kept_from)
            assert read_queue(self.store, key, tail) == list(enumerate(stored))[tail:]

    def teardown(self):
        self.store.close()
        shutil.rmtree(self.root)


# Each build runs so many, others each time.
StoreMachine.TestCase.settings = settings(
    max_examples=20, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
TestStore = pytest.mark.slow(StoreMachine.TestCase)
