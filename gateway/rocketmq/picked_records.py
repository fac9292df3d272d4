"""The records of a pull's answer: chosen among those that were read, and copied.

Source: docs/protocols/rocketmq.md, "Pulls".
"""

from __future__ import annotations

from array import array

from core import octets
from core.message import StoredBatch
from core.properties import (
    CRC,
    DISPATCH_SET,
    INNER_MULTI_DISPATCH,
    INNER_MULTI_QUEUE_OFFSET,
    PROPERTIES_BYTES_MAX,
)
from gateway.rocketmq.key_filters import hash_key

_TAGS = b"TAGS\x01"
_SET = DISPATCH_SET + b"\x01"
_CRC = CRC + b"\x01"
_NAMES = INNER_MULTI_DISPATCH + b"\x01"
_OFFSETS = b"\x02" + INNER_MULTI_QUEUE_OFFSET + b"\x01"
_PROPERTIES_BYTES_MAX = PROPERTIES_BYTES_MAX
_NUMBER_BYTES = len(_NAMES) + len(_OFFSETS) + 20  # that a record's number in a light queue takes at most, and the name


def pick_tagged(batch: StoredBatch, tags: frozenset[bytes], picked: array[int]) -> int:
    """Put the numbers of the messages whose TAGS is one of `tags` into `picked`; return how many there are."""
    buf = batch.buf
    count = 0
    for i in range(batch.count):
        start = _value_at(buf, batch.properties_start[i], batch.properties_end[i], _TAGS)
        if start < 0:
            continue
        end = _value_end(buf, start, batch.properties_end[i])
        if octets.read_bytes(buf, start, end) in tags:
            picked[count] = i
            count += 1
    return count


def pick_keyed(
    batch: StoredBatch,
    name: bytes | memoryview,
    key: bytes,
    is_list: bool,  # noqa: FBT001 - as C has it
    picked: array[int],
) -> int:
    """Put the numbers of the messages whose property `name` is `key` into `picked`; return how many.

    Args:
        batch: The messages.
        name: The property's name, with the 0x01 that ends it.
        key: What its value is to be.
        is_list: Whether the value has words between spaces, of which one is to be `key`.
        picked: Has room for all messages of `batch`.
    """
    buf = batch.buf
    count = 0
    for i in range(batch.count):
        start = _value_at(buf, batch.properties_start[i], batch.properties_end[i], name)
        if start < 0:
            continue
        end = _value_end(buf, start, batch.properties_end[i])
        value = octets.read_bytes(buf, start, end)
        if value == key if not is_list else key in value.split(b" "):
            picked[count] = i
            count += 1
    return count


def hash_words(batch: StoredBatch, name: bytes | memoryview, hashes: list[int]) -> None:
    """Add to `hashes` each word, between spaces, of the property `name` of each message, as `hash_key` has it."""
    buf = batch.buf
    for i in range(batch.count):
        start = _value_at(buf, batch.properties_start[i], batch.properties_end[i], name)
        if start < 0:
            continue
        end = _value_end(buf, start, batch.properties_end[i])
        hashes.extend([hash_key(word) for word in octets.read_bytes(buf, start, end).split(b" ")])


def _value_at(buf: bytes | bytearray | memoryview, pos: int, end: int, name: bytes | memoryview) -> int:
    """Return where the value of the property `name`, which ends in 0x01, begins in [pos, end); -1 without it."""
    size = len(name)
    while pos + size <= end:
        if octets.equal_bytes(buf, pos, name, 0, size):
            return pos + size
        pos = octets.find_byte(buf, 0x02, pos, end) + 1
        if pos == 0:
            return -1
    return -1


def _value_end(buf: bytes | bytearray | memoryview, start: int, end: int) -> int:
    """Return where the value that begins at `start` ends, at the latest at `end`, where the properties do."""
    at = octets.find_byte(buf, 0x02, start, end)
    return end if at < 0 else at


def pick_all(batch: StoredBatch, picked: array[int]) -> int:
    """Put the numbers of all messages into `picked`; return how many there are."""
    for i in range(batch.count):
        picked[i] = i
    return batch.count


def copy_records(
    batch: StoredBatch, picked: array[int], count: int, light_name: bytes, out: bytearray | memoryview, pos: int
) -> int:
    """Copy the records of the first `count` picked messages, as a pull's answer has them: as stored, with one change.

    A record whose list of queues is stored once refers to it, which means nothing to a client: to one that pulls a
    light queue it says its number in that queue instead, as a record with a list does. The checksum of the stored
    record is left out then. A record whose properties would get too long for the format is copied as stored.

    Args:
        batch: What was read from the queue.
        picked: Numbers of messages in `batch`.
        count: How many of these.
        light_name: The queue, where it is a light one; empty for a topic's.
        out: Has room for `copied_bytes_max` from `pos` on.
        pos: Where to begin.

    Returns:
        The position after the records.
    """
    buf = batch.buf
    name = light_name
    is_light = len(light_name) > 0
    for k in range(count):
        i = picked[k]
        after = -1
        if is_light:
            at = _value_at(buf, batch.properties_start[i], batch.properties_end[i], _SET)
            if at >= 0:
                after = _copy_with_number(batch, i, at, name, out, pos)
        if after < 0:
            size = batch.record_end[i] - batch.record_start[i]
            octets.copy_bytes(out, pos, buf, batch.record_start[i], size)
            after = pos + size
        pos = after
    return pos


def _copy_with_number(
    batch: StoredBatch, i: int, set_at: int, name: bytes | memoryview, out: bytearray | memoryview, pos: int
) -> int:
    """Copy a record to `pos`, with its number in `name` for the reference at `set_at`.

    Returns:
        The position after it, or -1 where its properties got too long.
    """
    buf = batch.buf
    start = batch.record_start[i]
    end = batch.properties_end[i]
    size = set_at - len(_SET) - start
    octets.copy_bytes(out, pos, buf, start, size)
    at = _put(out, pos + size, _NAMES)
    at = _put(out, at, name)
    at = _put(out, at, _OFFSETS)
    at = octets.write_decimal(out, at, batch.queue_offset[i])
    rest = octets.find_byte(buf, 0x02, set_at, end)
    if rest < 0:
        return -1
    crc_at = _value_at(buf, rest + 1, end, _CRC)
    if crc_at >= 0:
        end = crc_at - len(_CRC)
    octets.copy_bytes(out, at, buf, rest, end - rest)
    at += end - rest
    properties_at = pos + batch.properties_start[i] - start
    if at - properties_at > _PROPERTIES_BYTES_MAX:
        return -1
    octets.write_u16(out, properties_at - 2, at - properties_at)
    octets.write_u32(out, pos, at - pos)
    return at


def copied_bytes_max(batch: StoredBatch, picked: array[int], count: int, light_name: bytes) -> int:
    """Return the room in bytes that `copy_records` wants, which it may not fill."""
    total = (_NUMBER_BYTES + len(light_name)) * count if light_name else 0
    for at in range(count):
        i = picked[at]
        total += batch.record_end[i] - batch.record_start[i]
    return total


def sum_bodies(batch: StoredBatch, picked: array[int], first: int, end: int) -> int:
    """Return the bytes of the bodies of the picked messages [first, end)."""
    total = 0
    for at in range(first, end):
        i = picked[at]
        total += batch.body_end[i] - batch.body_start[i]
    return total


def count_fitting(batch: StoredBatch, picked: array[int], count: int, size_max: int) -> int:
    """Return how many of the first `count` picked messages have bodies of at most `size_max` bytes together."""
    total = 0
    for at in range(count):
        i = picked[at]
        total += batch.body_end[i] - batch.body_start[i]
        if total > size_max:
            return at
    return count


def _put(out: bytearray | memoryview, pos: int, piece: bytes | memoryview) -> int:
    size = len(piece)
    octets.copy_bytes(out, pos, piece, 0, size)
    return pos + size
