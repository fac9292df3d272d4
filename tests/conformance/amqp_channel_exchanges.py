"""What is said to an AMQP server of channels and connections: a part of `amqp_exchanges.py`."""

from __future__ import annotations

import struct

from pamqp.commands import Basic, Connection, Queue

from tests.conformance.amqp_steps import (
    MESSAGE,
    UNKNOWN_TAG,
    Channel,
    at,
    content_header,
    raw,
    table,
)
from tests.support import amqp

CLOSE = Channel.Close(200, "", 0, 0)

CHANNELS = {
    # Channels
    "open twice": [Channel.Open()],
    "method on no channel": [at(5, Basic.Qos())],
    "body on no channel": [amqp.raw_frame(3, 5, b"x")],
    "open the highest number": [at(65_535, Channel.Open()), at(65_535, Basic.Qos())],
    "stop the flow": [Channel.Flow(active=False)],
    "start the flow": [Channel.Flow(active=True)],
    "close": [CLOSE, Channel.Open()],
    "use after close": [CLOSE, Basic.Qos()],
    "closed by us": [UNKNOWN_TAG, Channel.CloseOk(), Channel.Open()],
    "closed by us, others go on": [at(2, Channel.Open()), UNKNOWN_TAG, at(2, Basic.Qos())],
    "closed by both": [UNKNOWN_TAG, CLOSE, Channel.CloseOk(), Channel.Open(), Basic.Qos()],
    "closed by both, late answer": [UNKNOWN_TAG, CLOSE, Channel.Open(), Channel.CloseOk(), Basic.Qos()],
    "closed by us, used before the answer": [UNKNOWN_TAG, Basic.Qos(), MESSAGE, Channel.CloseOk(), Channel.Open()],
    "close-ok late": [CLOSE, Channel.CloseOk(), at(2, Channel.Open())],
    "close-ok twice": [UNKNOWN_TAG, Channel.CloseOk(), Channel.CloseOk(), Channel.Open()],
    "close of no channel": [at(9, CLOSE)],
    # Connection
    "new secret": [at(0, Connection.UpdateSecret("guest", "why"))],
    "new secret that is wrong": [at(0, Connection.UpdateSecret("odd", "why"))],
    "new secret on a channel": [Connection.UpdateSecret("odd", "why")],
    "close of the connection on a channel": [Connection.Close(200, "", 0, 0)],
    "open of the connection again": [at(0, Connection.Open("/"))],
    "channel method on channel 0": [at(0, Channel.Open())],
    "basic method on channel 0": [at(0, Basic.Qos())],
    "method of the server": [Queue.PurgeOk(message_count=0)],
    "unknown method": [raw(0x003C00FF, b"")],
    "octets too few for a method": [amqp.raw_frame(1, 1, b"\0\x32")],
    "arguments cut short": [raw(Queue.Declare.index, b"\0")],
    "arguments too long": [raw(Basic.Qos.index, bytes(7) + b"more")],
    "name that is no text": [raw(Queue.Declare.index, b"\0\0\1\xff\4" + table())],
    "key that is no text": [raw(Basic.Publish.index, b"\0\0\0\1\xff\0") + content_header(0)],
    "heartbeat on a channel": [amqp.raw_frame(8, 1, b"")],
    "heartbeat with a payload": [amqp.raw_frame(8, 0, b"x")],
    "frame of an unknown type": [amqp.raw_frame(7, 1, b"")],
    "frame without its end": [amqp.raw_frame(1, 1, struct.pack(">I", Basic.Qos.index) + bytes(7), 0)],
    "long frame without its end": [amqp.raw_frame(3, 1, b"0123456789abcdefghi", 7)],
}  # fmt: skip
