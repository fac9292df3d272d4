"""What a connection may not say: the answer is the protocol's own code, and the end."""

from __future__ import annotations

import pytest
from pamqp.commands import Basic, Channel, Connection

from gateway.amqp.errors import PeerSilentError
from gateway.amqp.events import (
    ConnectionEnded,
)
from gateway.amqp.reply_codes import ReplyCode
from tests.support import amqp
from tests.support.amqp_machine import HANDSHAKE, NOW, OPEN_1, feed, make, ready, refuse, sent

HARD = {
    "frame larger than agreed": (b"\x01\x00\x01\x00\x01\x00\x00", 501),
    "frame of no type": (b"\x05\x00\x01\x00\x00\x00\x00\xce", 501),
    "frame without its end": (amqp.method(1, Basic.Qos())[:-1] + b"\x00", 501),
    "heartbeat on a channel": (amqp.raw_frame(8, 1, b""), 505),
    "heartbeat with a payload": (amqp.raw_frame(8, 0, b"x"), 501),
    "unknown method": (amqp.raw_frame(1, 1, b"\x00\x3c\x03\xe7"), 503),
    "unknown class": (amqp.raw_frame(1, 1, b"\x03\xe7\x00\x0a"), 503),
    "unknown class on channel 0": (amqp.raw_frame(1, 0, b"\x03\xe7\x00\x0a"), 503),
    "content of an unknown class": (amqp.publish(1, b"x")[:18] + amqp.raw_frame(2, 1, b"\x03\xe7" + bytes(12)), 505),
    "header that says more bytes than a body may have": (
        amqp.publish(1, b"x")[:18] + amqp.raw_frame(2, 1, b"\x00\x3c\x00\x00\xff" + bytes(9)),
        501,
    ),
    "arguments too deep": (
        amqp.raw_frame(1, 1, b"\x00\x32\x00\x0a\x00\x00\x01q\x00" + b"\0\0\0\x77" + b"\0F\0\0\0\x71" * 20),
        501,
    ),
    "arguments whose table says more than there is": (
        amqp.raw_frame(1, 1, b"\x00\x32\x00\x0a\x00\x00\x01q\x00" + b"\xff\xff\xff\xff"),
        501,
    ),
    "method too short": (amqp.raw_frame(1, 1, b"\x00\x3c"), 501),
    "arguments cut short": (amqp.raw_frame(1, 1, b"\x00\x3c\x00\x0a\x00"), 501),
    "publish cut short": (amqp.raw_frame(1, 1, b"\x00\x3c\x00\x28\x00\x00\x05a"), 501),
    "publish too long": (amqp.raw_frame(1, 1, b"\x00\x3c\x00\x28\x00\x00\x00\x00\x00\x00"), 501),
    "publish of nothing": (amqp.raw_frame(1, 1, b"\x00\x3c\x00\x28"), 501),
    "acknowledgement of odd size": (amqp.raw_frame(1, 1, b"\x00\x3c\x00\x50" + bytes(8)), 501),
    "channel that is not open": (amqp.method(2, Basic.Qos()), 504),
    "publish on a channel that is not open": (amqp.publish(2, b"x"), 504),
    "content on a channel that is not open": (amqp.publish(2, b"x")[18:], 505),
    "channel that is open": (OPEN_1, 504),
    "more channels than agreed": (b"".join(amqp.method(i, Channel.Open()) for i in range(60_000, 60_010)), 530),
    "content header without a publish": (amqp.raw_frame(2, 1, b"\x00\x3c" + bytes(12)), 505),
    "content body without a publish": (amqp.raw_frame(3, 1, b"x"), 505),
    "content body instead of a header": (amqp.publish(1, b"x")[:18] + amqp.raw_frame(3, 1, b"x"), 505),
    "method instead of a header": (amqp.publish(1, b"x")[:18] + amqp.method(1, Basic.Qos()), 505),
    "publish instead of a body": (amqp.publish(1, b"x")[:-9] + amqp.publish(1, b"y"), 505),
    "second content header": (amqp.publish(1, b"x")[:-9] + amqp.publish(1, b"x")[18:], 505),
    "header of another class": (
        amqp.publish(1, b"x")[:18] + amqp.raw_frame(2, 1, b"\x00\x0a" + bytes(12)),
        505,
    ),
    "header with a weight": (
        amqp.publish(1, b"x")[:18] + amqp.raw_frame(2, 1, b"\x00\x3c\x00\x01" + bytes(10)),
        505,
    ),
    "header too short": (amqp.publish(1, b"x")[:18] + amqp.raw_frame(2, 1, b"\x00\x3c"), 501),
    "properties that are none": (
        amqp.publish(1, b"")[:18] + amqp.raw_frame(2, 1, b"\x00\x3c" + bytes(10) + b"\xff\xfc\x05"),
        502,
    ),
    "table too deep": (
        amqp.publish(1, b"")[:18]
        + amqp.raw_frame(2, 1, b"\x00\x3c" + bytes(10) + b"\x20\x00" + b"\0\0\0\x77" + b"\0F\0\0\0\x71" * 20),
        502,
    ),
    "body longer than its header says": (amqp.publish(1, b"xxxx")[:-12] + amqp.raw_frame(3, 1, b"12345"), 501),
    "immediate publish": (amqp.publish(1, b"x", immediate=True), 540),
    "connection method on a channel": (amqp.method(1, Connection.Unblocked()), 503),
    "channel method on channel 0": (amqp.method(0, Basic.Qos()), 504),
    "start-ok again": (amqp.method(0, Connection.StartOk({}, "PLAIN", "\0a\0b", "en_US")), 504),
    "content on channel 0": (amqp.raw_frame(3, 0, b"x"), 505),
}  # fmt: skip


@pytest.mark.parametrize(("data", "code"), HARD.values(), ids=HARD)
def test_a_violation_is_answered_with_its_code(data, code):
    close = refuse(data)
    assert close.reply_code == code
    assert close.reply_text.startswith(f"{ReplyCode(code).name} - ")


@pytest.mark.parametrize(("data", "code"), HARD.values(), ids=HARD)
def test_a_violation_is_answered_also_byte_by_byte(data, code):
    connection = ready()
    for i in range(len(data)):
        feed(connection, data[i : i + 1])
    (close,) = [frame for frame in sent(connection) if isinstance(frame, Connection.Close)]
    assert close.reply_code == code


def test_after_connection_close_only_its_answer_counts():
    connection = ready()
    refuse(amqp.method(2, Basic.Qos()), connection)
    assert feed(connection, amqp.publish(1, b"x") + amqp.method(1, Basic.Qos())) == []
    feed(connection, amqp.method(0, Connection.CloseOk()))
    assert connection.is_closed


def test_both_sides_may_close_at_once():
    connection = ready()
    refuse(amqp.method(2, Basic.Qos()), connection)
    feed(connection, amqp.method(0, Connection.Close(200, "", 0, 0)))
    assert isinstance(sent(connection)[0], Connection.CloseOk)
    assert connection.is_closed


def test_a_close_that_is_not_answered_ends_by_itself():
    connection = ready()
    refuse(amqp.method(2, Basic.Qos()), connection)
    assert connection.next_deadline_ms() == NOW + 5_000
    connection.handle_timer(NOW + 4_999)
    with pytest.raises(PeerSilentError, match=r"no answer to connection\.close"):
        connection.handle_timer(NOW + 5_000)


BEFORE_OPEN = {
    "no start-ok": (HANDSHAKE[:8] + amqp.method(0, Connection.Open("/")), None),
    "frame larger than at first allowed": (HANDSHAKE[:8] + b"\x01\x00\x00\x00\x00\x40\x00", None),
    "unknown mechanism": (HANDSHAKE[:8] + amqp.method(0, Connection.StartOk({}, "EXTERNAL", "", "en_US")), None),
    "malformed response": (HANDSHAKE[:8] + amqp.method(0, Connection.StartOk({}, "PLAIN", "guest", "en_US")), None),
    "no tune-ok": (HANDSHAKE[: HANDSHAKE.index(b"\x00\x0a\x00\x1f") - 7] + amqp.method(0, Connection.Open("/")), 504),
    "frame_max too large": (
        HANDSHAKE[: HANDSHAKE.index(b"\x00\x0a\x00\x1f") - 7] + amqp.method(0, Connection.TuneOk(0, 131_073, 0)),
        530,
    ),
    "frame_max too small": (
        HANDSHAKE[: HANDSHAKE.index(b"\x00\x0a\x00\x1f") - 7] + amqp.method(0, Connection.TuneOk(0, 4_095, 0)),
        530,
    ),
    "channel_max too large": (
        HANDSHAKE[: HANDSHAKE.index(b"\x00\x0a\x00\x1f") - 7] + amqp.method(0, Connection.TuneOk(2_048, 0, 0)),
        530,
    ),
    "channel before open": (HANDSHAKE[: HANDSHAKE.index(b"\x00\x0a\x00\x28") - 7] + OPEN_1, 505),
}


@pytest.mark.parametrize(("data", "code"), BEFORE_OPEN.values(), ids=BEFORE_OPEN)
def test_the_handshake_has_one_order(data, code):
    connection = make()
    events = feed(connection, data)
    assert isinstance(events[-1], ConnectionEnded)
    closes = [frame.reply_code for frame in sent(connection) if isinstance(frame, Connection.Close)]
    assert closes == ([code] if code else [])
    assert connection.is_closed == (code is None)
