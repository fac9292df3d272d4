"""A broker with its timer, and a clock that the test moves; messages are told apart by their bodies."""

from __future__ import annotations

import shutil

from core.broker import Broker
from core.message import PublishBatch
from core.metrics import Metrics
from core.properties import decode_properties, encode_properties
from core.schedule.hand_on import Destination
from core.schedule.slots import encode_due
from core.settings import RetentionSettings, StoreSettings
from core.store.embedded import EmbeddedEngine
from core.store.message_store import MessageStore
from tests.support.store import NOW_MS, flush_as_asked, read_queue

SETTINGS = StoreSettings(segment_bytes=64 * 1024, retention=RetentionSettings(age_hours=1))
TOPIC = b"T"


class TimerSite:
    """Puts messages and looks at what came to queue 0 of topic `T`."""

    def __init__(self, folder, now_ms=NOW_MS, make_engine=EmbeddedEngine, settings=SETTINGS):
        self.folder = folder
        self.settings = settings
        self.now_ms = now_ms
        self.make_engine = make_engine
        self.wakes = []
        self._generation = 0
        self._open()

    def _open(self):
        self.store = MessageStore.open(self.folder, self.settings, now_ms=self.now_ms)
        self.engine = self.make_engine(self.store, is_sync=True)
        self.broker = Broker(self.engine, parent_topic=b"LMQ_PARENT", metrics=Metrics())
        self.timer = self.broker.timer
        self.timer.wake_at = self.wakes.append
        self.timer.resolve(b"REAL_TOPIC", self._resolve)

    def _resolve(self, text, flag):
        topic = decode_properties(text)[b"REAL_TOPIC"]
        return Destination(self.broker.route_rocketmq(topic, 0, ()), topic, text, flag)

    def put(self, body, delay_ms, *, extra=b"", turn=True):
        """Put a message that is due so much later; return when that is."""
        due_ms, queue_id = self.timer.admit(self.now_ms + delay_ms, self.now_ms)
        route = self.timer.route(queue_id, encode_properties([(b"REAL_TOPIC", TOPIC)]))
        batch = PublishBatch(1)
        batch.topics.append(route.topic)
        batch.routes.append(route)
        batch.buf, batch.body_end[0] = body, len(body)
        batch.extra = extra + encode_due(due_ms)
        batch.extra_end[0] = len(batch.extra)
        batch.count = 1
        self.broker.publish_batch(batch, self.now_ms)
        if turn:
            self.turn()
        return due_ms

    def turn(self, *, flush=True):
        """Let turns of the loop go by until the timer has nothing more to do at once."""
        self.broker.request_run(self.timer)
        while True:
            while self.broker.has_work:
                self.broker.run_turn(self.now_ms)
            if flush:
                flush_as_asked(self.store, self.engine.durability)
            if not (self.broker.has_work or getattr(self.engine, "is_busy", False)):
                return

    def run_by_alarm(self, until_ms):
        """Let the clock go on, woken by nothing but the alarm that was asked for; each turn takes a millisecond.

        Returns:
            The moment at which each message came, in their order.
        """
        came_at = []
        seen = len(self.came())
        rung = 0  # wakes before that are over
        while True:
            while self.broker.has_work:
                self.broker.run_turn(self.now_ms)
                flush_as_asked(self.store, self.engine.durability)
                end = self._end()
                came_at += [self.now_ms] * (end - seen)
                seen = end
                self.now_ms += 1
            alarm_ms = min(self.wakes[rung:], default=until_ms)
            if alarm_ms >= until_ms:
                self.now_ms = max(self.now_ms, until_ms)
                return came_at
            rung = len(self.wakes)
            self.now_ms = max(self.now_ms, alarm_ms)
            self.timer.ring()

    def _end(self):
        queue_ref = self.broker.find_queue(TOPIC + b"/0")
        return 0 if queue_ref < 0 else self.broker.max_offset(queue_ref)

    def advance(self, by_ms):
        self.now_ms += by_ms
        self.turn()

    def came(self):
        """Return the bodies that came, in their order."""
        return [body for _, body in read_queue(self.store, TOPIC + b"/0")]

    def reopen(self):
        self.store.close()
        self._open()

    def crash(self):
        """Go on with the folder as it is now, as another process finds it after a kill."""
        self._generation += 1
        copied = self.folder.with_name(f"{self.folder.name}.{self._generation}")
        shutil.copytree(self.folder, copied)
        self.store.close()
        self.folder = copied
        self._open()
