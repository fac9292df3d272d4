"""The state machine of an AMQP connection, fed as a handler feeds it."""

from __future__ import annotations

from pamqp.commands import Channel, Connection

from core.metrics import DoorMetrics
from gateway.amqp.connection import AmqpConnection
from gateway.amqp.events import (
    ConnectionEnded,
    CutterPool,
    LoginAsked,
    MethodCame,
    OpenAsked,
    PublishRun,
    SettleRun,
)
from gateway.amqp.handshake import ConnectionLimits
from gateway.amqp.states import State
from tests.support import amqp

NOW = 1_000_000
LIMITS = ConnectionLimits(
    frame_max=131_072, channel_max=2_047, heartbeat_s=60, body_bytes_max=100_000, handshake_ms=10_000, product="p"
)
HANDSHAKE = b"".join(
    [
        amqp.PROTOCOL_HEADER,
        amqp.method(0, Connection.StartOk({}, "PLAIN", "\0guest\0guest", "en_US")),
        amqp.method(0, Connection.TuneOk(10, 4_096, 30)),
        amqp.method(0, Connection.Open("/")),
    ]
)
OPEN_1 = amqp.method(1, Channel.Open())


def make():
    return AmqpConnection(LIMITS, CutterPool(64), NOW, "1.0", DoorMetrics("amqp"))


def feed(connection, data, now_ms=NOW):
    """Feed bytes as a handler would; return what came in a comparable form, contents copied out."""
    found = []
    connection.receive_data(data, now_ms)
    for event in connection.events():
        if isinstance(event, LoginAsked):
            connection.accept_login(event.user.encode())
        elif isinstance(event, OpenAsked):
            connection.accept_open()
        elif isinstance(event, PublishRun):
            batch = event.batch
            for i in range(batch.count):
                body = bytes(batch.buf[batch.body_start[i] : batch.body_end[i]])
                found.append((event.channel.number, batch.topics[batch.route_index[i]], body))
            continue
        elif isinstance(event, MethodCame):
            found.append((event.channel.number, event.method.name, dict(event.method)))
            continue
        elif isinstance(event, SettleRun):
            found.append((event.channel.number, "settled", event.channel.unacked.settled_count))
            continue
        found.append(event)
    return found


def ready(data=OPEN_1):
    connection = make()
    feed(connection, HANDSHAKE + data)
    connection.data_to_send()
    assert connection.state == State.OPEN
    return connection


def sent(connection):
    return [frame for _, frame in amqp.decode_frames(connection.data_to_send())]


def refuse(data, connection=None):
    """Feed what is not allowed; return the connection.close that it brings."""
    connection = connection or ready()
    ended = [event for event in feed(connection, data) if isinstance(event, ConnectionEnded)]
    assert len(ended) == 1
    (close,) = [frame for frame in sent(connection) if isinstance(frame, Connection.Close)]
    assert connection.state == State.CLOSING
    return close
