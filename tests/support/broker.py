"""A broker without a runtime: what stands in the loop's place, batches of one topic, a reader that counts."""

from __future__ import annotations

from core.broker import Broker
from core.lmq.waiters import Reader
from core.message import FLAG_MARK, FLAG_RETAIN, PublishBatch
from core.metrics import Metrics
from core.store.embedded import EmbeddedEngine


class Turns:
    """Stands where the loop and the flush thread are: what the broker asked for."""

    def __init__(self):
        self.turns = 0
        self.flushes = 0

    def schedule(self):
        self.turns += 1

    def request_flush(self):
        self.flushes += 1


class CountingReader(Reader):
    def __init__(self):
        self.runs = 0

    def on_ready(self, now_ms):
        self.runs += 1
        return False

    def reader_count(self):
        return 4


def make_broker(store, *, is_sync=True):
    broker = Broker(EmbeddedEngine(store, is_sync=is_sync), parent_topic=b"LMQ_PARENT", metrics=Metrics())
    turns = Turns()
    broker.schedule = turns.schedule
    broker.engine.durability.request_flush = turns.request_flush
    return broker, turns


def make_batch(broker, topic, *bodies, flag=0):
    batch = PublishBatch(max(1, len(bodies)))
    batch.topics.append(topic)
    batch.routes.append(broker.route_topic(topic))
    batch.buf = b"".join(bodies)
    end = 0
    for i, body in enumerate(bodies):
        batch.body_start[i] = end
        batch.body_end[i] = end = end + len(body)
        batch.flag[i] = FLAG_MARK | flag
        batch.retained_count += bool(flag & FLAG_RETAIN)
    batch.count = len(bodies)
    return batch
