"""Builders for the store's tests: batches, routes, what a queue holds."""

from __future__ import annotations

from core.message import PublishBatch, StoredBatch
from core.settings import StoreSettings
from core.store.message_store import MessageStore
from core.store.reader import StoreReader
from core.store.record_codec import Record

NOW_MS = 1_790_000_000_000
SMALL = StoreSettings(segment_bytes=64 * 1024)


def open_store(data_dir, settings=SMALL, now_ms=NOW_MS):
    return MessageStore.open(data_dir, settings, now_ms=now_ms)


def make_batch(messages):
    """Return a batch of (route, body) or (route, body, extra properties)."""
    messages = [(*message, b"")[:3] for message in messages]
    batch = PublishBatch(max(len(messages), 1))
    body_at = 0
    extra_at = 0
    for i, (route, body, extra) in enumerate(messages):
        batch.topics.append(route.topic if route is not None else b"")
        batch.routes.append(route)
        batch.route_index[i] = i
        batch.body_start[i] = body_at
        batch.body_end[i] = body_at = body_at + len(body)
        batch.extra_start[i] = extra_at
        batch.extra_end[i] = extra_at = extra_at + len(extra)
    batch.buf = b"".join(body for _, body, _ in messages)
    batch.extra = b"".join(extra for _, _, extra in messages)
    batch.count = len(messages)
    return batch


def publish(store, route, *bodies, now_ms=NOW_MS):
    batch = make_batch([(route, body) for body in bodies])
    store.append_batch(batch, now_ms)
    return batch


def retire(store, now_ms, *held):
    """Let go of what is due and not `held`, pairs of a queue and an offset; return how many segments went."""
    store.retention.begin(now_ms, [lambda: held])
    while store.retention.step():
        pass
    return store.retention.take_dropped()


def give_back(store, now_ms, *held):
    """Retire until nothing more can be given back in the middle of the log either."""
    before = None
    while before != (before := (store.log_bytes(), store.retention.bytes_punched)):
        for _ in range(3):
            retire(store, now_ms, *held)
            for _ in range(400):
                store.prepare()


def light(*names):
    return [b"%LMQ%" + name.encode() for name in names]


def read_queue(store, key, offset=0):
    """Return all of a queue from `offset` on, as (queue offset, body)."""
    queue_ref = store.find_queue(key)
    if queue_ref < 0:
        return []
    into = StoredBatch(64)
    found = []
    while store.read(queue_ref, offset, into, 64, 1 << 30):
        found += [
            (into.queue_offset[i], bytes(into.buf[into.body_start[i] : into.body_end[i]])) for i in range(into.count)
        ]
        offset = into.next_offset
    into.clear()
    return found


def make_record(**fields):
    values = {"topic": b"T", "queue_id": 3, "queue_offset": 7, "physical_offset": 0, "body": b"hi", "properties": b""}
    return Record(**(values | fields))


def read_folder(data_dir):
    """Return the bodies that a reader of the folder meets, and where it met damage."""
    reader = StoreReader.open(data_dir)
    into = StoredBatch(64)
    bodies = []
    for info in reader.segments():
        start = info.base
        while start < info.end:
            start = reader.scan(info.base, start, info.end, into)
            bodies += [bytes(into.buf[into.body_start[i] : into.body_end[i]]) for i in range(into.count)]
    into.clear()
    damaged = [stretch.start for stretch in reader.damaged]
    reader.close()
    return bodies, damaged


def begin_as_asked(store, durability):
    """Do what a flush thread does until all is on disk: the log alone is forced there where nobody waits for more."""
    store.begin_flush(is_all=durability.begin_flush()).run()


def end_as_asked(store, durability):
    """Tell those that waited for what was begun."""
    store.end_flush()
    durability.end_flush(None)


def flush_as_asked(store, durability):
    """Do all that a flush thread does."""
    begin_as_asked(store, durability)
    end_as_asked(store, durability)


class PromptFlush:
    """Stands in the flush thread's place, of which a kill leaves what the gateway's own would leave.

    A commit begins on the stack of the first that asks for it, and has the rows so far; those that wait are told by
    `flush`. What is written meanwhile is of the next commit.

    Args:
        store: What is flushed.
        durability: Asks for it; this sets its `request_flush`.
        schedule: Called when a commit was begun.
    """

    def __init__(self, store, durability, schedule):
        self.is_begun = False
        self._store = store
        self._durability = durability
        self._schedule = schedule
        durability.request_flush = self._begin

    def _begin(self):
        if not self.is_begun:
            self.is_begun = True
            begin_as_asked(self._store, self._durability)
            self._schedule()

    def flush(self):
        """Tell those that wait for the commit that was begun; another may be begun by that."""
        self._begin()
        self.is_begun = False
        end_as_asked(self._store, self._durability)

    def settle(self):
        """Do that until nobody waits."""
        self.flush()
        while self.is_begun:
            self.flush()

    def let_go(self):
        """End what was begun, of which nobody is told any more."""
        if self.is_begun:
            self.is_begun = False
            self._store.end_flush()
