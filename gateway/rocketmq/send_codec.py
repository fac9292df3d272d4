"""Read runs of sends as one batch: columns of positions, the properties made ready for the log, targets gathered.

What sends ask for beyond storing (topic, queue, dispatch) is kept once for each distinct target of a run, so that the
front decides once for each. A message's own properties are copied as sent, less those that are not the producer's to
say: `WAIT`, `POP_CK`, `REAL_TOPIC`, `REAL_QID`, the log's own names, and those that begin with `LMQ_` but for the
envelope's fields.

Source: docs/protocols/rocketmq.md, "Sends".
"""

from __future__ import annotations

from core import octets
from gateway.rocketmq import codec, property_kinds
from gateway.rocketmq.codec import NO_INTEGER, SendHeader
from gateway.rocketmq.property_kinds import (
    DROP,
    IS_DELAY,
    IS_DISPATCH,
    IS_GROUP,
    IS_REQUEST,
    IS_SPACE_TOPIC,
    IS_TIMER,
    IS_TRAN,
    IS_UNIQ,
)
from gateway.rocketmq.send_run import (
    HALF,
    REFUSED_BODY,
    REFUSED_DELAY,
    REFUSED_HALF,
    REFUSED_HALF_LATER,
    REFUSED_NO_GROUP,
    REFUSED_PROPERTIES,
    REFUSED_TEXT,
    TIMED,
    UNIQ_PREFIX_BYTES,
    SendRun,
    SendTarget,
)
from lmq.remoting.frames import Frames

_NO_INTEGER = NO_INTEGER
_DROP = DROP
_IS_DISPATCH = IS_DISPATCH
_IS_UNIQ = IS_UNIQ
_IS_SPACE_TOPIC = IS_SPACE_TOPIC
_IS_DELAY = IS_DELAY
_IS_TIMER = IS_TIMER
_IS_TRAN = IS_TRAN
_IS_GROUP = IS_GROUP
_IS_REQUEST = IS_REQUEST
_SEND = 10
_SEND_V2 = 310
_ONE_WAY = 0x2
_UNIQ_PREFIX_BYTES = UNIQ_PREFIX_BYTES
_GROWTH_BYTES = 128  # UNIQ_KEY, where we add it, and a half message's name of it
_TIMED = TIMED
_HALF = HALF
_REFUSED_DELAY = REFUSED_DELAY
_REFUSED_HALF = REFUSED_HALF
_REFUSED_HALF_LATER = REFUSED_HALF_LATER
_REFUSED_NO_GROUP = REFUSED_NO_GROUP
_REFUSED_TEXT = REFUSED_TEXT
_REFUSED_PROPERTIES = REFUSED_PROPERTIES
_REFUSED_BODY = REFUSED_BODY
_PREPARED = 0x4  # sysFlag: a half message
_ENDED = 0x8  # sysFlag: committed, or with the bit above rolled back
_TARGETS_MAX = 256  # of a run: where its routes have to be made, what is left of it is read again
_LEVEL_MAX = 0xFF  # of delay levels; what is over the highest one is the highest one
_KEPT_BITS = 0x703  # sysFlag: whether and how the body is compressed; the store says what its hosts are

# numbers of the header's fields: the letters of the second version, from `a`
_TOPIC = 1
_DEFAULT_TOPIC = 2
_DEFAULT_QUEUES = 3
_QUEUE_ID = 4
_SYS_FLAG = 5
_BORN_MS = 6  # bornTimestamp
_FLAG = 7
_PROPERTIES = 8
_RECONSUMES = 9
_RECONSUMES_MAX = 11  # maxReconsumeTimes
_BATCH = 12  # whether the body is several messages

_UNIQ_NAME = b"UNIQ_KEY\x01"
_TRANSACTION_NAME = b"__transactionId__\x01"
_RETRY_PREFIX = b"%RETRY%"
_NO_TOPIC = b"\0"  # of an LMQ_TOPIC that is empty: said, and none that can be published to


def read_sends(frames: Frames, first: int, run: SendRun) -> int:
    """Add frames from `first` on to `run` while they are sends of the known shape; return the first that is not.

    A frame that is no send, a batch, or unusual ends the run; so does a run that is full.
    """
    buf = frames.buf
    header = run.header
    i = first
    while i < frames.count and run.count < run.batch.capacity and len(run.targets) < _TARGETS_MAX:
        if frames.code[i] != _SEND and frames.code[i] != _SEND_V2:
            break
        start = frames.header_start[i]
        end = frames.header_end[i]
        if not codec.read_header(buf, start, end, frames.header_type[i], header):
            break
        _make_room(run, end - start)
        if not _add_message(buf, end, frames.body_end[i], run):
            break
        run.header_type[run.count - 1] = frames.header_type[i]
        i += 1
    run.batch.count = run.count
    run.batch.extra = run.extra
    return i


def _make_room(run: SendRun, header_bytes: int) -> None:
    """Grow the buffers so that a message with such a header fits, whatever its properties say."""
    if len(run.scratch) < header_bytes:
        run.scratch = bytearray(2 * header_bytes)
    wanted = run.extra_used + 2 * header_bytes + len(run.origin) + len(run.cluster) + _GROWTH_BYTES
    if len(run.extra) < wanted:
        grown = bytearray(2 * wanted)
        octets.copy_bytes(grown, 0, run.extra, 0, run.extra_used)
        run.extra = grown


def _add_message(buf: bytes | bytearray | memoryview, body_start: int, body_end: int, run: SendRun) -> bool:
    """Add the message whose header was read to the run; False where a field is missing or no number."""
    i = run.count
    batch = run.batch
    header = run.header
    queue_id = _number(buf, header, _QUEUE_ID, _NO_INTEGER)
    queues = _number(buf, header, _DEFAULT_QUEUES, _NO_INTEGER)
    sys_flag = _number(buf, header, _SYS_FLAG, _NO_INTEGER)
    flag = _number(buf, header, _FLAG, _NO_INTEGER)
    reconsumes = _number(buf, header, _RECONSUMES, 0)
    born_ms = _number_64(buf, header, _BORN_MS)
    if header.code not in {_SEND, _SEND_V2}:
        return False
    if _NO_INTEGER in {queue_id, queues, sys_flag, flag, reconsumes} or born_ms < 0:
        return False
    if not _has_known_texts(buf, header):
        return False
    batch.extra_start[i] = run.extra_used
    if not _take_properties(buf, run, i):
        return False
    _note_half(run, sys_flag, reconsumes)
    _finish_properties(run, i)
    if run.extra_used - batch.extra_start[i] > run.properties_bytes_max:
        run.refusal = _REFUSED_PROPERTIES
    if body_end - body_start > run.body_bytes_max:
        run.refusal = _REFUSED_BODY
    batch.route_index[i] = _find_target(buf, run, queue_id, queues, reconsumes)
    batch.extra_end[i] = run.extra_used
    batch.body_start[i] = body_start
    batch.body_end[i] = body_end
    batch.flag[i] = flag
    batch.sys_flag[i] = sys_flag & _KEPT_BITS
    batch.reconsume_times[i] = reconsumes
    batch.born_ms[i] = born_ms
    batch.tag[i] = header.opaque
    batch.physical_offset[i] = -1
    run.is_one_way[i] = header.flag & _ONE_WAY
    run.count = i + 1
    return True


def _number(buf: bytes | bytearray | memoryview, header: SendHeader, field: int, otherwise: int) -> int:
    """Return the 32-bit number of the field, `otherwise` where it is absent, NO_INTEGER where it is none."""
    start = header.start[field]
    if start < 0:
        return otherwise
    value = codec.read_integer(buf, start, header.end[field])
    return value if -0x80000000 <= value <= 0x7FFFFFFF else _NO_INTEGER


def _number_64(buf: bytes | bytearray | memoryview, header: SendHeader, field: int) -> int:
    start = header.start[field]
    return _NO_INTEGER if start < 0 else codec.read_integer(buf, start, header.end[field])


def _has_known_texts(buf: bytes | bytearray | memoryview, header: SendHeader) -> bool:
    """Return whether both topics are there and have no escapes, and the message is surely no batch."""
    for field in range(_TOPIC, _DEFAULT_TOPIC + 1):
        start = header.start[field]
        if start < 0 or octets.find_byte(buf, 0x5C, start, header.end[field]) >= 0:
            return False
    start = header.start[_BATCH]
    if start < 0 or start == header.end[_BATCH]:
        return True
    return buf[start] not in {0x31, 0x5C} and buf[start] | 0x20 != 0x74  # "1", an escape, t(rue); C++ says "0" and "1"


def _take_properties(buf: bytes | bytearray | memoryview, run: SendRun, i: int) -> bool:
    """Put the message's properties into `extra`; False where their text has a bad escape."""
    header = run.header
    run.dispatch = b""
    run.space_topic = b""
    run.delay_level = 0
    run.is_request = False
    run.refusal = 0
    run.is_half = False
    run.has_group = False
    run.uniq_start[i] = 0
    run.uniq_end[i] = 0
    start = header.start[_PROPERTIES]
    if start < 0:
        return True
    end = header.end[_PROPERTIES]
    if header.is_binary or octets.find_byte(buf, 0x5C, start, end) < 0:
        _copy_properties(buf, start, end, run, i)
        return True
    scratch = run.scratch
    end = codec.unescape(buf, start, end, scratch)
    if end < 0:
        return False
    _copy_properties(scratch, 0, end, run, i)
    return True


def _copy_properties(text: bytes | bytearray | memoryview, pos: int, end: int, run: SendRun, i: int) -> None:
    """Copy the properties in [pos, end) that are the producer's to say, each with its closing separator."""
    extra = run.extra
    used = run.extra_used
    while pos < end:
        close = octets.find_byte(text, 0x02, pos, end)
        if close < 0:
            close = end
        name_end = octets.find_byte(text, 0x01, pos, close)
        if name_end > pos and _keep(text, pos, name_end, close, run):
            octets.copy_bytes(extra, used, text, pos, close - pos)
            if run.kind == _IS_UNIQ:
                run.uniq_start[i] = used + name_end + 1 - pos
                run.uniq_end[i] = used + close - pos
            used += close - pos
            extra[used] = 0x02
            used += 1
        pos = close + 1
    if not _is_text(extra, run.extra_used, used):
        run.refusal = _REFUSED_TEXT
    run.extra_used = used


def _keep(text: bytes | bytearray | memoryview, pos: int, name_end: int, close: int, run: SendRun) -> bool:
    """Return whether the property [pos, close) is stored as it is; note what others ask for."""
    kind = property_kinds.kind_of(text, pos, name_end)
    run.kind = kind
    start = name_end + 1
    if kind == _IS_DISPATCH:
        run.dispatch = octets.read_bytes(text, start, close)
    elif kind == _IS_SPACE_TOPIC:
        run.space_topic = octets.read_bytes(text, start, close) if close > start else _NO_TOPIC
    elif kind in {_IS_DELAY, _IS_TIMER} and start == close:
        return False  # official brokers have no properties without a value
    elif kind == _IS_DELAY:
        level = codec.read_integer(text, start, close)
        if level > 0 or run.delay_level != _TIMED:
            run.delay_level = max(0, min(level, _LEVEL_MAX))
        if level == _NO_INTEGER:
            run.refusal = _REFUSED_DELAY
    elif kind == _IS_TIMER:
        run.delay_level = run.delay_level or _TIMED
    elif kind == _IS_REQUEST:
        run.is_request = True
    elif kind == _IS_TRAN and close > start and text[start] in {0x74, 0x54}:  # t(rue)
        run.is_half = True
    elif kind == _IS_GROUP:
        run.has_group = close > start
    return kind not in {_DROP, _IS_DISPATCH, _IS_SPACE_TOPIC}


def _note_half(run: SendRun, sys_flag: int, reconsumes: int) -> None:
    """Let a half message wait for the end of its transaction; what a consumer sends to be tried again is none."""
    if sys_flag & _ENDED:
        run.refusal = _REFUSED_HALF
    elif sys_flag & _PREPARED:
        run.is_half = True
    if run.is_half and (reconsumes == 0 or run.delay_level == 0):
        if run.delay_level != 0:
            run.refusal = _REFUSED_HALF_LATER
        elif not run.has_group:
            run.refusal = _REFUSED_NO_GROUP
        run.delay_level = _HALF
    else:
        run.is_half = False


def _is_text(buf: bytes | bytearray | memoryview, start: int, end: int) -> bool:
    """Return whether [start, end) is UTF-8."""
    text = octets.read_bytes(buf, start, end)
    if text.isascii():
        return True
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _finish_properties(run: SendRun, i: int) -> None:
    """Add what the gateway says.

    A UNIQ_KEY where there is none, the same as that of a half message's transaction, where a request's reply goes, and
    the publisher, beyond the message's topic.
    """
    extra = run.extra
    used = run.extra_used
    if run.uniq_end[i] == 0:
        octets.copy_bytes(extra, used, _UNIQ_NAME, 0, 9)
        run.uniq_start[i] = used + 9
        used = _write_uniq(run, extra, used + 9)
        run.uniq_end[i] = used
        extra[used] = 0x02
        used += 1
    if run.is_request:
        octets.copy_bytes(extra, used, run.cluster, 0, len(run.cluster))
        used += len(run.cluster)
    if run.is_half:
        octets.copy_bytes(extra, used, _TRANSACTION_NAME, 0, 18)
        used += 18
        size = run.uniq_end[i] - run.uniq_start[i]
        octets.copy_bytes(extra, used, extra, run.uniq_start[i], size)
        used += size
        extra[used] = 0x02
        used += 1
    if run.dispatch or run.space_topic:
        octets.copy_bytes(extra, used, run.origin, 0, len(run.origin))
        used += len(run.origin)
    run.extra_used = used


def _write_uniq(run: SendRun, extra: bytearray | memoryview, used: int) -> int:
    """Write a key of our own at `used`; return the position after it."""
    octets.copy_bytes(extra, used, run.uniq_prefix, 0, _UNIQ_PREFIX_BYTES)
    used += _UNIQ_PREFIX_BYTES
    counter = run.uniq_counter
    counter.value = (counter.value + 1) & 0xFFFF
    for shift in range(12, -4, -4):
        digit = counter.value >> shift & 0xF
        extra[used] = 0x30 + digit if digit < 10 else 0x37 + digit
        used += 1
    return used


def _find_target(buf: bytes | bytearray | memoryview, run: SendRun, queue_id: int, queues: int, reconsumes: int) -> int:
    """Return the number of the message's target among the run's, made when it is the first that wants it."""
    header = run.header
    start = header.start[_TOPIC]
    end = header.end[_TOPIC]
    if (
        run.last_index >= 0
        and queue_id == run.last_queue_id
        and not run.refusal
        and not run.delay_level
        and not run.dispatch
        and not run.space_topic
        and end - start == run.last_end - run.last_start
        and octets.equal_bytes(buf, start, buf, run.last_start, end - start)
    ):
        return run.last_index
    topic = octets.read_bytes(buf, start, end)
    is_retry = topic.startswith(_RETRY_PREFIX)
    reconsumes_max = max(-1, _number(buf, header, _RECONSUMES_MAX, -1)) if is_retry else -1
    if not is_retry:
        reconsumes = 0
    key = (topic, queue_id, run.dispatch, run.space_topic, run.refusal, run.delay_level, reconsumes, reconsumes_max)
    index = run.by_key.get(key, -1)
    if index < 0:
        index = len(run.targets)
        run.by_key[key] = index
        default_topic = octets.read_bytes(buf, header.start[_DEFAULT_TOPIC], header.end[_DEFAULT_TOPIC])
        target = SendTarget(topic, queue_id, run.dispatch, run.space_topic, default_topic, queues, run.refusal)
        target.delay_level = run.delay_level
        target.reconsumes = reconsumes
        target.reconsumes_max = reconsumes_max
        run.targets.append(target)
    plain = not (run.refusal or run.delay_level or run.dispatch or run.space_topic or is_retry)
    run.last_start = start
    run.last_end = end
    run.last_queue_id = queue_id
    run.last_index = index if plain else -1
    return index
