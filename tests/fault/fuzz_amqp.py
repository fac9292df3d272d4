"""Any bytes at an AMQP connection: no crash, no hang, no growth, and cut in pieces they mean what they mean whole.

`python -m tests.fault.fuzz_amqp --cases 10000000`. Where atheris is installed it chooses the bytes by what they reach;
else they are mutations of the kept cases, which are reproducible by `--seed`.
"""

from __future__ import annotations

from pamqp.commands import Channel, Connection

from core.message import StoredBatch
from core.metrics import DoorMetrics
from gateway.amqp.connection import AmqpConnection
from gateway.amqp.events import (
    ChannelEnded,
    ConnectionEnded,
    Credential,
    CutterPool,
    FramesTaken,
    MethodCame,
    OpenAsked,
    PublishRun,
    SettleRun,
)
from gateway.amqp.field_table import Field
from gateway.amqp.handshake import ConnectionLimits, not_amqp
from gateway.amqp.states import State
from tests.fault.fuzzing import Fuzz
from tests.support import amqp

BODY_BYTES_MAX = 65_536
NOW_MS = 1_000
UNACKED = 40  # deliveries that the channel has at first
LIMITS = ConnectionLimits(
    frame_max=131_072, channel_max=15, heartbeat_s=60, body_bytes_max=BODY_BYTES_MAX, handshake_ms=10_000, product="p"
)
LOGIN = amqp.method(0, Connection.StartOk({}, "PLAIN", "\0guest\0guest", "en_US"))
TUNED = amqp.method(0, Connection.TuneOk(15, 4_096, 60)) + amqp.method(0, Connection.Open("/"))
STAGES = (b"", amqp.PROTOCOL_HEADER, amqp.PROTOCOL_HEADER + LOGIN)
OPENED = STAGES[2] + TUNED + amqp.method(1, Channel.Open()) + amqp.method(2, Channel.Open())
DECODER = (
    "channel",
    "codec",
    "connection",
    "copies",
    "direct_reply",
    "errors",
    "field_table",
    "handshake",
    "methods",
    "property_block",
    "states",
    "unacked",
)
POOL = CutterPool(64)


def run_case(case):
    """Check one case: its first byte says how far a connection is, the second how the rest is cut."""
    if len(case) < 2:
        return
    stage = case[0] % 8
    whole = _outcome(stage, case[2:], size=len(case))
    if case[1] % 32:
        assert _outcome(stage, case[2:], size=case[1] % 32) == whole


def _outcome(stage, data, *, size):
    """Return what a connection tells of bytes that come `size` at a time, and what it says at last."""
    connection = AmqpConnection(LIMITS, POOL, NOW_MS, "1", DoorMetrics("amqp"))
    told = []
    before = STAGES[stage] if stage < len(STAGES) else OPENED
    if before:
        _feed(connection, before, [])
    if stage >= len(STAGES):
        _deliver(connection.channels[1], is_transactional=stage == 7)
        connection.channels[1].is_confirming = stage == 6
    assert (connection.state == State.OPEN) == (stage >= len(STAGES))
    connection.data_to_send()
    for start in range(0, len(data), size):
        _feed(connection, data[start : start + size], told)
    said = connection.data_to_send()
    told.append(said)
    assert len(said) <= 1_000 + 12 * len(data)  # a few octets are a channel.open, and have their answer
    return told


def _deliver(channel, *, is_transactional):
    batch = StoredBatch(UNACKED)
    batch.count = UNACKED
    for number in range(UNACKED):
        batch.queue_offset[number] = number
    channel.unacked.push(batch, 0)
    if is_transactional:
        channel.unacked.held = {}


def _feed(connection, data, told):
    if connection.is_closed:
        return
    connection.receive_data(data, NOW_MS)
    _take_events(connection, told)
    while connection.state == State.LOGIN:  # what came behind it waits for the answer
        connection.accept_login(b"guest")
        connection.take_up(NOW_MS)
        _take_events(connection, told)


def _take_events(connection, told):
    for event in connection.events():
        _tell(event, connection, told)


def _plain(value):
    """Return a value of a method in a form that compares, also where it is no number."""
    if isinstance(value, dict):
        return [(name, _plain(each)) for name, each in value.items()]
    return (value.kind, repr(value.value)) if isinstance(value, Field) else repr(value)


def _tell(event, connection, told):
    if isinstance(event, PublishRun):
        batch = event.batch
        for i in range(batch.count):
            body = bytes(batch.buf[batch.body_start[i] : batch.body_end[i]])
            extra = bytes(batch.extra[batch.extra_start[i] : batch.extra_end[i]])
            raw = batch.topics[batch.route_index[i]]
            told.append((event.channel.number, raw, body, batch.flag[i], batch.tag[i], extra, event.copies.get(i)))
        event.release()
    elif isinstance(event, SettleRun):
        unacked = event.channel.unacked
        columns = zip(unacked.settled_offset, unacked.settled_kind, strict=True)
        told.extend((offset, kind) for (offset, kind), _ in zip(columns, range(unacked.settled_count), strict=False))
        if unacked.unknown_in:
            told.append((unacked.unknown_tag, unacked.unknown_in, unacked.held and dict(unacked.held)))
    elif isinstance(event, MethodCame):
        told.append((event.channel.number, event.method.name, _plain(dict(event.method))))
    elif isinstance(event, ChannelEnded):
        told.append(("channel ended", event.channel.number))
    elif isinstance(event, OpenAsked):
        connection.accept_open()
    elif not isinstance(event, FramesTaken):
        assert isinstance(event, Credential | ConnectionEnded)
        is_other = isinstance(event, ConnectionEnded) and event.reason.startswith(not_amqp(b""))
        told.append("another protocol" if is_other else event)  # the log says which, as far as the first piece tells


FUZZ = Fuzz("amqp_cases.txt", run_case, [f"gateway.amqp.{name}" for name in DECODER])

if __name__ == "__main__":
    FUZZ.main()
