"""Any bytes at a RocketMQ connection, and at what else reads bytes and texts of its peers.

No crash, no hang, no growth; cut in pieces, frames mean what they mean whole; a send that is read in place says what
the ordinary decoder says of it. `python -m tests.fault.fuzz_rocketmq --cases 10000000`. Where atheris is installed it
chooses the bytes by what they reach; else they are mutations of the kept cases, which are reproducible by `--seed`.
"""

from __future__ import annotations

from contextlib import suppress

from gateway.rocketmq import codec
from gateway.rocketmq.connection import Connection, FramePool, Limits, Login
from gateway.rocketmq.errors import CommandRefusedError
from gateway.rocketmq.filters.matching import parse_filter
from gateway.rocketmq.filters.sql_filter import SQL92, SqlFilter
from gateway.rocketmq.pop.receipts import parse_receipt
from gateway.rocketmq.send_run import RunPool, SendRun
from gateway.rocketmq.states import State
from gateway.rocketmq.uniq_key import UniqPrefix
from lmq.remoting.commands import decode_header, encode_command
from lmq.remoting.errors import FrameError, RecordError
from lmq.remoting.frames import Frames, cut_frames
from lmq.remoting.message_codec import decode_batch, decode_properties, decode_records
from lmq.remoting.signature import is_signed_with
from tests.fault.fuzzing import Fuzz
from tests.support.rocketmq import LOCALHOST, request_frame

FRAME_BYTES_MAX = 65_536
BODY_BYTES_MAX = 2_048
PROPERTIES_BYTES_MAX = 2_048
FRAMES_AT_A_TIME = 4
NOW_MS = 1_000
SECRET = b"secret"  # of the only user
STRANGER, SIGNED, RECORDS, TEXTS = 0, 5, 6, 7  # states of case[0] % 8; those between the first two are open to anybody
FIRST = request_frame(105)
SEND_CODES = (10, 310)
DECODER = ("codec", "connection", "property_kinds", "send_codec", "send_run", "states", "tag_filter")
FILTERS = ("sql_filter", "sql_program", "sql_syntax", "sql_tokens")
REMOTING = ("commands", "frames", "message_codec", "signature")
FRAMES, RUNS = FramePool(FRAMES_AT_A_TIME), RunPool(BODY_BYTES_MAX, PROPERTIES_BYTES_MAX)
LIMITS = Limits(FRAME_BYTES_MAX, 30_000)
UNIQ = UniqPrefix(1)


def run_case(case):
    """Check one case: its first byte says what takes the rest, the second how that is cut."""
    if len(case) < 2:
        return
    state, data = case[0] % 8, case[2:]
    if state == RECORDS:
        _read_records(data)
    elif state == TEXTS:
        _read_texts(data)
    else:
        _compare_sends(data)
        whole = _outcome(state, data, size=len(case))
        if case[1] % 32:
            assert _outcome(state, data, size=case[1] % 32) == whole


def _outcome(state, data, *, size):
    """Return what a connection tells of bytes that come `size` at a time, up to the end of the connection."""
    connection = Connection(FRAMES, RUNS, LIMITS, UNIQ, LOCALHOST)
    told = []
    if state != STRANGER:
        _feed(connection, FIRST, [], is_open=state != SIGNED)
    try:
        for start in range(0, len(data), size):
            _feed(connection, data[start : start + size], told, is_open=state != SIGNED)
    except FrameError as error:
        told.append(error.reason)
    connection.stop()
    return told


def _feed(connection, data, told, *, is_open):
    connection.receive_data(data, NOW_MS)
    for event in connection.events():
        if isinstance(event, SendRun):
            _tell_run(event, told)
            event.release()
        elif isinstance(event, Login):
            told.append(("login", event.request.opaque))
            if is_open or is_signed_with(event.request, SECRET):
                connection.accept(b"" if is_open else SECRET)
            else:
                connection.refuse()
                assert connection.state == State.NEW
        else:
            told.append(_fields_of(event))
            assert decode_again(event) == _fields_of(event)


def decode_again(command):
    """Return the fields of a command that was encoded, and decoded again."""
    frames = Frames(1)
    data = encode_command(command)
    assert cut_frames(data, 0, frames, len(data)) == len(data)
    start, body = frames.header_start[0], frames.header_end[0]
    return _fields_of(decode_header(frames.header_type[0], data[start:body], data[body : frames.body_end[0]]))


def _fields_of(command):
    texts = (tuple(command.ext.items()), command.remark or None, bytes(command.body))
    numbers = (command.code, command.opaque, command.flag, command.version, command.language, command.header_type)
    return numbers + texts


def _tell_run(run, told):
    batch = run.batch
    for i in range(run.count):
        target = run.targets[batch.route_index[i]]
        start, end = batch.extra_start[i], batch.extra_end[i]
        key = (run.uniq_start[i], run.uniq_end[i])
        assert start <= key[0] <= key[1] <= end <= run.extra_used
        extra = bytes(run.extra[start:end])
        is_ours = b"UNIQ_KEY\x01" + UNIQ.at(NOW_MS) in extra  # the count behind it is another each time
        about = (target.topic, target.queue_id, target.dispatch, target.space_topic, target.refusal, target.delay_level)
        body = bytes(batch.buf[batch.body_start[i] : batch.body_end[i]])
        told.append(("send", batch.tag[i], about, body, batch.flag[i], batch.sys_flag[i], is_ours or extra))


def _compare_sends(data):
    """Check that what is read in place of each frame is what the ordinary decoder reads."""
    frames, header = Frames(FRAMES_AT_A_TIME), codec.SendHeader()
    with suppress(FrameError):
        cut_frames(data, 0, frames, FRAME_BYTES_MAX)
    for i in range(frames.count):
        kind, start, end = frames.header_type[i], frames.header_start[i], frames.header_end[i]
        if frames.code[i] not in SEND_CODES or not codec.read_header(data, start, end, kind, header):
            continue
        try:
            command = decode_header(kind, data[start:end])
        except FrameError:
            continue  # what is read in place is looked at where it is needed
        assert (header.code, header.opaque, header.flag) == (command.code, command.opaque, command.flag)
        known = [name for name in command.ext if _number_of(name) >= 0]
        if len({_number_of(name) for name in known}) == len(known):
            for name in known:
                _compare_field(data, header, name, command.ext[name])


def _number_of(name):
    if len(name) == 1:
        return ord(name) - ord("a") if "a" <= name <= "n" else -1
    return codec.FIELD_NAMES.get(name.encode(), -1)


def _compare_field(data, header, name, text):
    """Check that a field's bytes in the frame are its text."""
    field = _number_of(name)
    found = data[header.start[field] : header.end[field]]
    if not header.is_binary and b"\\" in found:
        room = bytearray(len(found))
        used = codec.unescape(found, 0, len(found), room)
        assert used >= 0
        found = bytes(room[:used])
    assert found == text.encode() or (found, text) == (b"-0", "0")


def _read_records(data):
    """Read the bytes as what the SDK pulls, and as the body of a batch."""
    for decode in (decode_records, decode_batch):
        with suppress(RecordError):
            for one in decode(data):
                assert len(one.body) <= 64 << 20
    decode_properties(data)


def _read_texts(data):
    """Read the bytes as a condition, which bounds its own work, then as tags and as a receipt."""
    text, _, properties = data.decode(errors="replace").partition("\n")
    for read in (lambda: parse_filter(SQL92, text), lambda: parse_filter("TAG", text), lambda: parse_receipt(text)):
        found = None
        with suppress(CommandRefusedError):
            found = read()
        if isinstance(found, SqlFilter):
            assert found.messages_max >= 1
            assert found.wants(properties.encode()) in {True, False}


FUZZ = Fuzz(
    "rocketmq_cases.txt",
    run_case,
    [
        *(f"gateway.rocketmq.{name}" for name in DECODER),
        *(f"gateway.rocketmq.filters.{name}" for name in FILTERS),
        *(f"lmq.remoting.{name}" for name in REMOTING),
    ],
)

if __name__ == "__main__":
    FUZZ.main()
