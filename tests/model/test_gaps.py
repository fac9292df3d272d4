"""The store against a model of lists, with queues that a reader holds while the log is punched around what they need.

What is held is all there, byte for byte; of the rest whatever is served is right. So it is after a crash at any moment,
and when the indexes are built anew from the log.
"""

from __future__ import annotations

import shutil

import pytest
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import invariant, precondition, rule

from core.message import StoredBatch
from core.store import gap_plan, puncher
from core.store.gap import GAP_BYTES_MIN
from core.store.layout import MAGIC_BLANK
from core.store.reader import StoreReader
from tests.model.test_store import HOUR_MS, KEYS, QUEUES, TOPICS, StoreMachine
from tests.support.store import read_queue, retire

few_queues = st.lists(st.sampled_from(QUEUES), max_size=4, unique=True)
queue_lists = st.one_of(few_queues, few_queues.map(lambda names: [name for name in QUEUES if name not in names]))
sizes = st.integers(0, 3_000)
some_messages = st.lists(st.tuples(st.sampled_from(TOPICS), queue_lists, sizes), min_size=1, max_size=8)


@pytest.fixture(autouse=True)
def small_gaps(monkeypatch):
    """Let gaps of a few records be worth it, so that small segments have many."""
    monkeypatch.setattr(gap_plan, "GAP_WORTH", 400)
    monkeypatch.setattr(puncher, "GAP_WORTH", 1)
    monkeypatch.setattr(gap_plan.GapPlan, "needed_bytes", 0)


class GapMachine(StoreMachine):
    def __init__(self):
        super().__init__()
        self.held = {QUEUES[0]: 0, TOPICS[2]: 0}  # key -> first offset that is needed

    @rule(messages=some_messages, times=st.integers(5, 40))
    def publish_much(self, messages, times):
        self.publish(messages * times)

    @rule(messages=some_messages, others=some_messages, times=st.integers(5, 20), steps=st.integers(5, 40))
    def age(self, messages, others, times, steps):
        self.publish(messages * times + others * times + messages)
        self.store.flush()
        self.retire(4, steps)

    @precondition(lambda self: QUEUES[0] in self.held and any(self.is_free(topic) for topic in TOPICS))
    @rule(times=st.integers(50, 80), steps=st.integers(10, 40))
    def fill_a_segment_that_nobody_needs(self, times, steps):
        """Between two that a reader needs: it is emptied, not deleted."""
        topic = next(topic for topic in TOPICS if self.is_free(topic))
        free = [queue for queue in QUEUES if self.is_free(queue)]
        self.publish([(topic, [QUEUES[0]], 10)])
        self.publish([(topic, free, 2_500)] * times)
        self.publish([(topic, [QUEUES[0]], 10)])
        self.store.flush()
        self.retire(4, steps)

    def is_free(self, key):
        return key not in self.held

    @rule(key=st.sampled_from(KEYS))
    def hold(self, key):
        self.held.setdefault(key, len(self.stored[key]))

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def consume(self, data):
        key = data.draw(st.sampled_from(sorted(self.held)))
        self.held[key] = data.draw(st.integers(self.held[key], len(self.stored[key])))

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def let_go(self, data):
        del self.held[data.draw(st.sampled_from(sorted(self.held)))]

    @rule(steps=st.integers(1, 40))
    def prepare(self, steps):
        self.store.flush()
        for _ in range(steps):
            self.store.prepare()

    @rule(rounds=st.integers(1, 4), steps=st.integers(0, 40))
    def retire(self, rounds, steps):
        self.now_ms += 2 * HOUR_MS
        held = [(self.store.intern_queue(key), offset) for key, offset in self.held.items()]
        for _ in range(rounds):
            retire(self.store, self.now_ms, *held)
            for _ in range(steps):
                self.store.prepare()

    @rule(lost=st.sampled_from(["index", "index/queues", "index/offsets"]))
    def rebuild(self, lost):
        copied = self.copy()
        if (copied / lost).is_dir():
            for path in (copied / lost).iterdir():
                if path.suffix != ".gaps":  # what a killed process left belongs to the log
                    path.unlink()
        else:
            (copied / lost).unlink(missing_ok=True)
        rebuilt = self.open_at(copied)
        self.check_store(rebuilt)
        rebuilt.close()

    @rule()
    def scan(self):
        self.store.flush()
        reader = StoreReader.open(self.store.data_dir)
        into = StoredBatch(16)
        bodies = {body for stored in self.stored.values() for body in stored}
        for info in reader.segments():
            start = info.base
            while start < info.end:
                start = reader.scan(info.base, start, info.end, into)
                for i in range(into.count):
                    assert bytes(into.buf[into.body_start[i] : into.body_end[i]]) in bodies
                    assert reader.dispatch_count(into, i) <= len(QUEUES)
        into.clear()
        assert reader.damaged == []
        reader.close()

    def check(self):
        for key, stored in self.stored.items():
            assert self.store.max_offset(self.store.intern_queue(key)) == len(stored)
        self.check_store(self.store)

    def check_store(self, store):
        assert not store.report.damaged_at
        assert not store.report.entries_lost
        for key, stored in self.stored.items():
            served = read_queue(store, key)
            offsets = [offset for offset, _ in served]
            assert offsets == sorted(set(offsets))
            assert all(stored[offset] == body for offset, body in served)
            if key in self.held:
                needed = [offset for offset in offsets if offset >= self.held[key]]
                assert needed == list(range(self.held[key], len(stored)))
        assert store.damaged_count == 0

    @invariant()
    def newest_messages_are_read_back(self):
        for key, floor in self.held.items():
            assert read_queue(self.store, key, floor) == list(enumerate(self.stored[key]))[floor:]

    def teardown(self):
        try:
            self.check()
        finally:
            self.store.close()
            shutil.rmtree(self.root)


class MoreGapsMachine(GapMachine):
    """The same: half of the examples each, so that either ends in time also where nothing is compiled."""


# Each build runs so many, others each time.
GapMachine.TestCase.settings = MoreGapsMachine.TestCase.settings = settings(
    max_examples=15, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
TestGaps = pytest.mark.slow(pytest.mark.usefixtures("small_gaps")(GapMachine.TestCase))
TestMoreGaps = pytest.mark.slow(pytest.mark.usefixtures("small_gaps")(MoreGapsMachine.TestCase))


@pytest.mark.slow
@pytest.mark.usefixtures("small_gaps")
def test_segments_that_nobody_needs_between_two_that_somebody_needs_are_emptied():
    machine = GapMachine()
    machine.open()
    del machine.held[TOPICS[2]]
    for _ in range(3):
        machine.fill_a_segment_that_nobody_needs(60, 40)
    machine.publish([(TOPICS[0], [QUEUES[0]], 10)])
    machine.store.flush()
    machine.retire(6, 40)
    paths = sorted((machine.store.data_dir / "commitlog").iterdir())
    emptied = [path for path in paths if path.read_bytes()[GAP_BYTES_MIN + 4 :][:4] == MAGIC_BLANK.to_bytes(4, "big")]
    assert len(emptied) >= 3
    machine.check()
    machine.rebuild("index")
    machine.scan()
    machine.teardown()
