"""Answers to a run of stored sends.

Source: docs/protocols/rocketmq.md, "Sends".
"""

from __future__ import annotations

from core import octets
from core.message import Route
from gateway.rocketmq.recall_handle import Handles
from gateway.rocketmq.send_run import SendRun, SendTarget
from lmq.remoting.commands import VERSION

REGION = b"DefaultRegion"
_BINARY = 1
_LANGUAGE_JAVA = 0
_VERSION = VERSION
_ANSWER_BYTES = 384  # of one answer, without the ids in it
_BINARY_START_BYTES = 21  # code 2, language 1, version 2, opaque 4, flag 4, two lengths of 4
_HEX = b"0123456789ABCDEF"
_ESCAPE = b"\\u00"

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
