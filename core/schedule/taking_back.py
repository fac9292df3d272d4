"""Messages that wait, as operators see them, and how one is taken back, by whatever door it came.

What a message is known by is a digest of its record: it outlives the copy that is made when its day is spread. Two
that are the same in all their bytes, born in the same millisecond, are one for this.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple, Protocol

from core.message import PublishBatch, Route, StoredBatch
from core.properties import CANCEL, encode_properties
from core.schedule.slots import TIMER_TOPIC, encode_due, strip_due

BORN_HOST = bytes(8)
REMEMBERED_MAX = 100_000  # some 15 MB
_DIGEST_BYTES = 16  # 128 bits: no two messages share one by chance


class Waiting(NamedTuple):
    """One of the timer's queues in which something waits."""

    queue_id: int
    queue_ref: int
    first: int  # offsets
    end: int


class Publisher(Protocol):
    """Where messages go: the broker."""

    def publish_batch(self, batch: PublishBatch, now_ms: int) -> None:
        """Append messages and wake their readers."""


class TakenBack:
    """Which messages were taken back since the start, so that they are listed no more; 100,000 at most."""

    def __init__(self) -> None:
        self._dues: dict[bytes, int] = {}

    def add(self, identity: bytes, due_ms: int, now_ms: int) -> None:
        """Note a message that was taken back."""
        if len(self._dues) >= REMEMBERED_MAX:
            self._dues = {known: then_ms for known, then_ms in self._dues.items() if then_ms > now_ms}
        if len(self._dues) < REMEMBERED_MAX:
            self._dues[identity] = due_ms

    def has(self, found: StoredBatch, i: int) -> bool:
        """Return whether a message was taken back."""
        return bool(self._dues) and identity_of(found, i) in self._dues


def identity_of(found: StoredBatch, i: int) -> bytes:
    """Return what a waiting message is known by, 32 hexadecimal digits."""
    text = strip_due(bytes(found.buf[found.properties_start[i] : found.properties_end[i]]))
    body = bytes(found.buf[found.body_start[i] : found.body_end[i]])
    whole = b"%d\0%d\0%b\0%b" % (found.born_ms[i], len(text), text, body)
    return hashlib.blake2b(whole, digest_size=_DIGEST_BYTES).hexdigest().encode()


def cancel_prefix(identity: bytes) -> bytes:
    """Return the property that takes a message back: as RocketMQ's recalls, of no topic."""
    return encode_properties([(CANCEL, b"+" + identity)])


def put_cancel(publisher: Publisher, route: Route, due_ms: int, now_ms: int) -> int:
    """Store what takes a message back beside the message; return the ticket that it is safe with."""
    batch = PublishBatch(1)
    batch.buf, batch.extra, batch.born_host = b"0", encode_due(due_ms), BORN_HOST
    batch.topics.append(TIMER_TOPIC)
    batch.routes.append(route)
    batch.body_end[0], batch.extra_end[0] = 1, len(batch.extra)
    batch.born_ms[0] = now_ms
    batch.count = 1
    publisher.publish_batch(batch, now_ms)
    return batch.ticket
