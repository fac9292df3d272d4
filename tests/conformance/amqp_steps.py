"""What an AMQP server is sent in an exchange, made by hand or by name, and how its replies are written down."""

from __future__ import annotations

import struct

from pamqp import base, commands, header
from pamqp.commands import Basic, Connection, Queue

from tests.support import amqp

Channel = commands.Channel
DECLARE = Queue.Declare(queue="q", exclusive=True)
BIND = Queue.Bind(queue="q", exchange="amq.direct", routing_key="k")
UNBIND = Queue.Unbind(queue="q", exchange="amq.direct", routing_key="k")
CONSUME = Basic.Consume(queue="q", consumer_tag="c")
MESSAGE = amqp.publish(1, b"1", key="q")
UNKNOWN_TAG = Basic.Ack(5)
RECOVER_ASYNC = 0x003C0064  # pamqp warns of it
CAPABILITIES = {"consumer_cancel_notify": True, "authentication_failure_close": True}


class Step:
    """One method (or frames made by hand) on a channel of the first connection, or of the other."""

    def __init__(self, said, channel=1, *, by_other=False):
        self.data = said if isinstance(said, bytes) else amqp.method(channel, said)
        self.by_other = by_other


def at(channel, method):
    return Step(method, channel)


def other(method):
    return Step(method, by_other=True)


def steps_of(exchange):
    return [step if isinstance(step, Step) else Step(step) for step in exchange]


def show(channel, frame):
    """Return a frame that the server sent as one line."""
    if isinstance(frame, Channel.Close | Connection.Close):
        ids = f"{frame.class_id}/{frame.method_id}"
        return f"{channel} {frame.name.lower()} {frame.reply_code} {ids} {frame.reply_text}"
    if isinstance(frame, base.Frame):
        values = [str(getattr(frame, name)) for name in frame.__slots__ if name != "channel_id"]  # means nothing
        return " ".join([str(channel), frame.name.lower(), *values])
    return f"{channel} header {frame.body_size}" if isinstance(frame, header.ContentHeader) else f"{channel} body"


def raw(index, arguments, channel=1):
    return amqp.raw_frame(1, channel, struct.pack(">I", index) + arguments)


def table(*fields):
    data = b"".join(bytes([len(name)]) + name + value for name, value in fields)
    return struct.pack(">I", len(data)) + data


def nested(depth):
    data = table()
    for _ in range(depth):
        data = table((b"a", b"F" + data))
    return data


def number(value):
    return b"I" + struct.pack(">i", value)


def long(value):
    return b"l" + struct.pack(">q", value)


def text(value):
    return b"S" + struct.pack(">I", len(value)) + value


def declare_raw(arguments, name=b"q", bits=4):
    return raw(Queue.Declare.index, b"\0\0" + bytes([len(name)]) + name + bytes([bits]) + arguments)


def declare_with(**arguments):
    named = {"x-" + name.replace("_", "-"): value for name, value in arguments.items()}
    return Queue.Declare(queue="q", exclusive=True, arguments=named)


def ttl(value):
    return declare_raw(table((b"x-message-ttl", value)))


def content_header(size, class_id=60, weight=0):
    return amqp.raw_frame(2, 1, struct.pack(">HHQH", class_id, weight, size, 0))
