"""Answers of the data path: those to a run of stored sends, and the records of a pull.

Source: docs/protocols/rocketmq.md, "Sends" and "Pulls".
"""

from __future__ import annotations

from array import array

from core import octets
from core.message import Route, StoredBatch
from core.properties import (
    CRC,
    DISPATCH_SET,
    INNER_MULTI_DISPATCH,
    INNER_MULTI_QUEUE_OFFSET,
    PROPERTIES_BYTES_MAX,
)
from gateway.rocketmq.key_filters import hash_key
from gateway.rocketmq.recall_handle import Handles
from gateway.rocketmq.send_run import SendRun, SendTarget
from lmq.remoting.commands import VERSION

REGION = b"DefaultRegion"
_BINARY = 1
_LANGUAGE_JAVA = 0
_VERSION = VERSION
_ANSWER_BYTES = 384  # of one answer, without the ids in it
_BINARY_START_BYTES = 21
_HEX = b"0123456789ABCDEF"
_ESCAPE = b"\\u00"
_TAGS = b"TAGS\x01"
_SET = DISPATCH_SET + b"\x01"
_CRC = CRC + b"\x01"
_NAMES = INNER_MULTI_DISPATCH + b"\x01"
_OFFSETS = b"\x02" + INNER_MULTI_QUEUE_OFFSET + b"\x01"
_PROPERTIES_BYTES_MAX = PROPERTIES_BYTES_MAX
_NUMBER_BYTES = len(_NAMES) + len(_OFFSETS) + 20  # that a record's number in a light queue takes at most, and the name

# a JSON answer: what stands before each of its values, and at its end
_START = b'{"code":0,"extFields":{"'
_HANDLE = b'recallHandle":"'
_NEXT = b'","'
_QUEUE_ID = b'queueId":"'
_MSG_ID = b'","TRACE_ON":"true","MSG_REGION":"' + REGION + b'","msgId":"'
_OFFSET = b'","queueOffset":"'
_TRANSACTION_ID = b'","transactionId":"'
_OPAQUE = b'"},"flag":1,"language":"JAVA","opaque":'
_END = b',"serializeTypeCurrentRPC":"JSON","version":%d}' % VERSION

# a binary one: names with their lengths
_BINARY_FIXED = b"\x00\x08TRACE_ON\x00\x00\x00\x04true\x00\x0aMSG_REGION\x00\x00\x00\x0d" + REGION
_BINARY_QUEUE_ID = b"\x00\x07queueId"
_BINARY_MSG_ID = b"\x00\x05msgId"
_BINARY_OFFSET = b"\x00\x0bqueueOffset"
_BINARY_TRANSACTION_ID = b"\x00\x0dtransactionId"
_BINARY_HANDLE = b"\x00\x0crecallHandle"


def encode_send_answers(run: SendRun, host_hex: bytes, first: int, end: int, handles: Handles | None = None) -> bytes:
    """Return the answers to those of the sends [first, end) that were stored and want one.

    Args:
        run: The run, after its batch was appended.
        host_hex: Our address and port as 16 or 40 hexadecimal digits, for message ids.
        first: Number of the first send.
        end: Number after the last.
        handles: What those whose messages wait are taken back by.
    """
    batch = run.batch
    size = 0
    for i in range(first, end):
        size += _ANSWER_BYTES + len(host_hex) + 6 * (run.uniq_end[i] - run.uniq_start[i])
        if handles is not None:
            size += handles.measure(run, i)
    out = bytearray(size)
    view = out
    host = host_hex
    pos = 0
    for i in range(first, end):
        if batch.physical_offset[i] < 0 or run.is_one_way[i]:
            continue
        start = pos
        header_type = run.header_type[i]
        if header_type == _BINARY:
            pos = _write_binary(view, pos + 8, run, i, host, handles)
        else:
            pos = _write_json(view, pos + 8, run, i, host, handles)
        octets.write_u32(view, start, pos - start - 4)
        octets.write_u32(view, start + 4, header_type << 24 | (pos - start - 8))
    return octets.read_bytes(view, 0, pos)


def _queue_id_of(run: SendRun, i: int) -> int:
    """Return the queue of the message's topic, which of a delayed one is not the queue that its record lies in yet."""
    index = run.batch.route_index[i]
    target: SendTarget = run.targets[index]
    if target.answer_queue >= 0:
        return target.answer_queue
    route: Route | None = run.batch.routes[index]
    assert route is not None
    return route.queue_id


def _write_json(
    out: bytearray | memoryview,
    pos: int,
    run: SendRun,
    i: int,
    host: bytes | memoryview,
    handles: Handles | None,
) -> int:
    batch = run.batch
    pos = _put(out, pos, _START)
    if handles is not None and handles.dues[i]:
        pos = _put(out, pos, _HANDLE)
        pos = _put(out, handles.write(run, i, out, pos), _NEXT)
    pos = _put(out, pos, _QUEUE_ID)
    pos = octets.write_decimal(out, pos, _queue_id_of(run, i))
    pos = _put(out, pos, _MSG_ID)
    pos = _put(out, pos, host)
    pos = _write_hex(out, pos, batch.physical_offset[i])
    pos = _put(out, pos, _OFFSET)
    pos = octets.write_decimal(out, pos, batch.queue_offset[i])
    pos = _put(out, pos, _TRANSACTION_ID)
    pos = _write_escaped(out, pos, run.extra, run.uniq_start[i], run.uniq_end[i])
    pos = _put(out, pos, _OPAQUE)
    pos = _write_integer(out, pos, batch.tag[i])
    return _put(out, pos, _END)


def _write_binary(
    out: bytearray | memoryview,
    pos: int,
    run: SendRun,
    i: int,
    host: bytes | memoryview,
    handles: Handles | None,
) -> int:
    batch = run.batch
    start = pos
    octets.write_u16(out, pos, 0)
    octets.write_u8(out, pos + 2, _LANGUAGE_JAVA)
    octets.write_u16(out, pos + 3, _VERSION)
    octets.write_u32(out, pos + 5, batch.tag[i])
    octets.write_u32(out, pos + 9, 1)
    octets.write_u32(out, pos + 13, 0)
    pos = _put(out, pos + _BINARY_START_BYTES, _BINARY_FIXED)
    pos = _put(out, pos, _BINARY_QUEUE_ID)
    pos = _write_sized_decimal(out, pos, _queue_id_of(run, i))
    pos = _put(out, pos, _BINARY_MSG_ID)
    octets.write_u32(out, pos, len(host) + 16)
    pos = _put(out, pos + 4, host)
    pos = _write_hex(out, pos, batch.physical_offset[i])
    pos = _put(out, pos, _BINARY_OFFSET)
    pos = _write_sized_decimal(out, pos, batch.queue_offset[i])
    pos = _put(out, pos, _BINARY_TRANSACTION_ID)
    size = run.uniq_end[i] - run.uniq_start[i]
    octets.write_u32(out, pos, size)
    octets.copy_bytes(out, pos + 4, run.extra, run.uniq_start[i], size)
    pos += 4 + size
    if handles is not None and handles.dues[i]:
        pos = _put(out, pos, _BINARY_HANDLE)
        octets.write_u32(out, pos, handles.measure(run, i))
        pos = handles.write(run, i, out, pos + 4)
    octets.write_u32(out, start + 17, pos - start - _BINARY_START_BYTES)
    return pos


def _put(out: bytearray | memoryview, pos: int, piece: bytes | memoryview) -> int:
    size = len(piece)
    octets.copy_bytes(out, pos, piece, 0, size)
    return pos + size


def _write_sized_decimal(out: bytearray | memoryview, pos: int, value: int) -> int:
    end = octets.write_decimal(out, pos + 4, value)
    octets.write_u32(out, pos, end - pos - 4)
    return end


def _write_integer(out: bytearray | memoryview, pos: int, value: int) -> int:
    if value < 0:
        octets.write_u8(out, pos, 0x2D)
        return octets.write_decimal(out, pos + 1, -value)
    return octets.write_decimal(out, pos, value)


def _write_hex(out: bytearray | memoryview, pos: int, value: int) -> int:
    """Write 16 hexadecimal digits."""
    for shift in range(60, -4, -4):
        out[pos] = _HEX[(value >> shift) & 0xF]
        pos += 1
    return pos


def _write_escaped(
    out: bytearray | memoryview, pos: int, text: bytes | bytearray | memoryview, at: int, end: int
) -> int:
    """Write [at, end) of `text` as the inside of a JSON string."""
    while at < end:
        byte = text[at]
        if byte in {0x22, 0x5C}:
            out[pos] = 0x5C
            out[pos + 1] = byte
            pos += 2
        elif byte < 0x20:
            _put(out, pos, _ESCAPE)
            out[pos + 4] = _HEX[byte >> 4]
            out[pos + 5] = _HEX[byte & 0xF]
            pos += 6
        else:
            out[pos] = byte
            pos += 1
        at += 1
    return pos


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


def count_stored(run: SendRun, first: int, end: int) -> int:
    """Return how many of the sends [first, end) were stored."""
    batch = run.batch
    total = 0
    for i in range(first, end):
        if batch.physical_offset[i] >= 0:
            total += 1
    return total


def sum_stored(run: SendRun, first: int, end: int) -> int:
    """Return the bytes of the bodies of those of the sends [first, end) that were stored."""
    batch = run.batch
    total = 0
    for i in range(first, end):
        if batch.physical_offset[i] >= 0:
            total += batch.body_end[i] - batch.body_start[i]
    return total
