"""Messages with a time to live: finds the expired ones among those that were read.

Such a message has FLAG_EXPIRES in its record's flag, and the milliseconds from its store time on as `LMQ_TTL_MS`. The
record stays in the log, where a reader of raw records still finds it.

Source: docs/storage-format.md, "Properties".
"""

from __future__ import annotations

from core import octets
from core.envelope import read_decimal
from core.message import FLAG_EXPIRES, FLAG_MARK, FLAG_MARK_MASK, StoredBatch
from core.properties import TTL_MS

_MARKS = FLAG_MARK_MASK | FLAG_EXPIRES
_MARKED = FLAG_MARK | FLAG_EXPIRES
_TTL_NAME = TTL_MS + b"\x01"


def is_expired(stored: StoredBatch, i: int, now_ms: int, limit_ms: int) -> bool:
    """Return whether message `i` has outlived its time to live, or its queue's, which is `limit_ms`, -1 for none."""
    if limit_ms >= 0 and stored.store_ms[i] + limit_ms <= now_ms:
        return True
    if stored.flag[i] & _MARKS != _MARKED:
        return False
    ttl_ms = read_ttl(stored.buf, stored.properties_start[i], stored.properties_end[i])
    return ttl_ms >= 0 and stored.store_ms[i] + ttl_ms <= now_ms


def expires_at(stored: StoredBatch, i: int, limit_ms: int) -> int:
    """Return the moment at which message `i` outlives its time to live or its queue's, -1 for never."""
    life_ms = limit_ms
    if stored.flag[i] & _MARKS == _MARKED:
        ttl_ms = read_ttl(stored.buf, stored.properties_start[i], stored.properties_end[i])
        if ttl_ms >= 0 and (life_ms < 0 or ttl_ms < life_ms):
            life_ms = ttl_ms
    return stored.store_ms[i] + life_ms if life_ms >= 0 else -1


def read_ttl(src: bytes | bytearray | memoryview, pos: int, end: int) -> int:
    """Return the milliseconds that the properties in [pos, end) give a message, or -1 where they say nothing clear."""
    buf = src
    while pos < end:
        after = octets.find_byte(buf, 2, pos, end)
        if after < 0:
            after = end
        if octets.starts_with(buf, pos, _TTL_NAME):
            return read_decimal(buf, pos + len(_TTL_NAME), after)
        pos = after + 1
    return -1


def count_expired(stored: StoredBatch, now_ms: int, limit_ms: int) -> int:
    """Return how many messages are expired before the first that is not."""
    for i in range(stored.count):
        if not is_expired(stored, i, now_ms, limit_ms):
            return i
    return stored.count


def take_expired(stored: StoredBatch, now_ms: int, limit_ms: int, fresh_from: int) -> list[int]:
    """Take the messages that are expired out of `stored`; return their queue offsets.

    Those from the queue offset `fresh_from` on stay in any case: they came in just now.
    """
    gone: list[int] = []
    kept = 0
    for i in range(stored.count):
        may_be = limit_ms >= 0 or stored.flag[i] & _MARKS == _MARKED
        if may_be and stored.queue_offset[i] < fresh_from and is_expired(stored, i, now_ms, limit_ms):
            gone.append(stored.queue_offset[i])
            continue
        if kept < i:
            move(stored, i, kept)
        kept += 1
    stored.count = kept
    return gone


def move(stored: StoredBatch, i: int, to: int) -> None:
    """Put message `i` in place of message `to`."""
    stored.fill_number += 1
    stored.record_start[to] = stored.record_start[i]
    stored.record_end[to] = stored.record_end[i]
    stored.topic_start[to] = stored.topic_start[i]
    stored.topic_end[to] = stored.topic_end[i]
    stored.body_start[to] = stored.body_start[i]
    stored.body_end[to] = stored.body_end[i]
    stored.properties_start[to] = stored.properties_start[i]
    stored.properties_end[to] = stored.properties_end[i]
    stored.flag[to] = stored.flag[i]
    stored.sys_flag[to] = stored.sys_flag[i]
    stored.attempt[to] = stored.attempt[i]
    stored.queue_offset[to] = stored.queue_offset[i]
    stored.physical_offset[to] = stored.physical_offset[i]
    stored.born_ms[to] = stored.born_ms[i]
    stored.store_ms[to] = stored.store_ms[i]
