"""The engine of a gateway that traces: it shows a tracer what is written, read, taken and done.

A gateway that does not trace has `EmbeddedEngine` itself, so that nothing is asked on the way of its messages.
"""

from __future__ import annotations

import struct
from array import array
from collections import Counter
from collections.abc import Mapping
from typing import Any

from core.message import PublishBatch, StoredBatch
from core.pop.changes import ACK, TAKE
from core.record_journal import RecordJournal
from core.store.embedded import EmbeddedEngine
from gateway.telemetry.tracer import MessageTracer, Place

POP = "pop"
_CHANGE = struct.Struct(">IIqq")


class TracedEngine(EmbeddedEngine):
    """An engine with a tracer, which is set before anything is published."""

    tracer: MessageTracer | None = None
    pop_names: Mapping[bytes, int] = {}
    _by_number: Mapping[int, bytes] = {}

    def append_batch(self, batch: PublishBatch, now_ms: int) -> None:
        """Append, and have the spans made of what is traced."""
        tracer = self.tracer
        if tracer is None:
            EmbeddedEngine.append_batch(self, batch, now_ms)
            return
        chosen, began_ns = tracer.choose(batch)
        try:
            EmbeddedEngine.append_batch(self, batch, now_ms)
        finally:
            if chosen:
                tracer.note_written(batch, chosen, began_ns, lambda i: self._find_places(batch, i))

    def _find_places(self, batch: PublishBatch, i: int) -> list[Place]:
        """Return the queues of message `i` of a batch that was just written, with its offset in each."""
        route = batch.routes[batch.route_index[i]]
        assert route is not None
        behind = Counter(batch.route_index[i + 1 : batch.appended])
        if not route.dispatch.count:
            return [(self.queue_key(route.topic_ref), batch.queue_offset[i])]
        places: list[Place] = []
        for name in route.dispatch.names[:64]:
            later = sum(count for index, count in behind.items() if _leads_to(batch, index, name))
            places.append((name, self.max_offset(self.find_queue(name)) - 1 - later))
        return places

    def read(self, queue_ref: int, offset: int, into: StoredBatch, count_max: int, bytes_max: int) -> int:
        """Read on in a queue, and note what was."""
        count = EmbeddedEngine.read(self, queue_ref, offset, into, count_max, bytes_max)
        self._note_read(queue_ref, into)
        return count

    def read_offsets(self, queue_ref: int, offsets: array[int], count: int, into: StoredBatch) -> int:
        """Read chosen offsets, and note what was read."""
        done = EmbeddedEngine.read_offsets(self, queue_ref, offsets, count, into)
        self._note_read(queue_ref, into)
        return done

    def _note_read(self, queue_ref: int, into: StoredBatch) -> None:
        tracer = self.tracer
        if tracer is not None and tracer.is_following and into.count:
            key = self.queue_key(queue_ref)
            if tracer.is_read(key):
                tracer.note_read(key, into.queue_offset[: into.count])

    def journal(self, name: str) -> Any:  # noqa: ANN401 - as `EmbeddedEngine`, or what stands for it
        """Return a journal; that of shared consumption shows what is taken and done."""
        inner = EmbeddedEngine.journal(self, name)
        return _WatchedJournal(inner, self) if name == POP else inner

    def note_changes(self, records: bytes | bytearray | memoryview) -> None:
        """Note what consumers took and finished."""
        tracer = self.tracer
        if tracer is None or not tracer.is_following:
            return
        for number, word, first, _ in _CHANGE.iter_unpack(records):
            kind, count = word >> 24, word & 0xFFFFFF
            if kind in {TAKE, ACK}:
                note = tracer.note_taken if kind == TAKE else tracer.note_done
                note(self._find_queue(number), first, count)

    def _find_queue(self, number: int) -> bytes:
        """Return the queue of a pop queue, empty where it is no more."""
        if number not in self._by_number and len(self._by_number) != len(self.pop_names):
            self._by_number = {known: key for key, known in self.pop_names.items()}
        return self._by_number.get(number, b"").partition(b"\0")[0]


def _leads_to(batch: PublishBatch, index: int, name: bytes) -> bool:
    route = batch.routes[index]
    return route is not None and name in route.dispatch.names


class _WatchedJournal:
    """The journal of shared consumption, whose changes are shown before they are written."""

    def __init__(self, inner: RecordJournal, engine: TracedEngine) -> None:
        self._inner = inner
        self._engine = engine

    def append_many(self, records: bytes | bytearray | memoryview, size: int) -> None:
        """Append records."""
        if size == _CHANGE.size:
            self._engine.note_changes(records)
        self._inner.append_many(records, size)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - all else is the journal's
        return getattr(self._inner, name)
