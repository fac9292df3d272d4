from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings, strategies as st
from pamqp import commands
from pamqp.commands import Basic, Channel, Connection, Queue

from core.metrics import DoorMetrics
from gateway.amqp.connection import AmqpConnection
from gateway.amqp.errors import AmqpError, PeerSilentError
from gateway.amqp.events import (
    ChannelEnded,
    ConnectionEnded,
    CutterPool,
    LoginAsked,
    MethodCame,
    OpenAsked,
    PublishRun,
    SecretCame,
    SettleRun,
)
from gateway.amqp.handshake import ConnectionLimits
from gateway.amqp.reply_codes import ReplyCode
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


STREAM = b"".join(
    [
        HANDSHAKE,
        OPEN_1,
        amqp.method(1, Queue.Declare(queue="q", arguments={"a": {"b": [1, 2]}})),
        amqp.publish(1, b"one"),
        amqp.publish(1, b"two", key="other", content_type="text/plain"),
        amqp.raw_frame(8, 0, b""),
        amqp.publish(1, b"x" * 9_000, piece=4_000),
        amqp.publish(1, b""),
        amqp.method(1, Basic.Qos(prefetch_count=7)),
    ]
)
EXPECTED = [
    (1, "Queue.Declare"),
    (1, b"\x00\x01q", b"one"),
    (1, b"\x00\x05other", b"two"),
    (1, b"\x00\x01q", b"x" * 9_000),
    (1, b"\x00\x01q", b""),
    (1, "Basic.Qos"),
]


def shorten(events):
    kept = [event for event in events if isinstance(event, tuple)]
    return [event[:2] if isinstance(event[1], str) else event for event in kept]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 61, 1_000, 100_000])
def test_the_events_are_the_same_however_the_bytes_are_cut(size):
    connection = make()
    found = []
    for start in range(0, len(STREAM), size):
        found += feed(connection, STREAM[start : start + size])
    assert shorten(found) == EXPECTED
    assert connection.state == State.OPEN


@given(st.lists(st.integers(1, 400), max_size=80))
@settings(max_examples=50, deadline=None)
def test_the_events_are_the_same_for_any_cuts(sizes):
    connection = make()
    found, start = [], 0
    for size in [*sizes, len(STREAM)]:
        found += feed(connection, STREAM[start : start + size])
        start += size
    assert shorten(found) == EXPECTED


@given(st.integers(0, len(STREAM)), st.binary(min_size=1, max_size=40))
@settings(max_examples=200, deadline=None)
def test_no_bytes_break_the_machine(at, noise):
    connection = make()
    feed(connection, STREAM[:at])
    feed(connection, noise)
    feed(connection, STREAM[at:])
    connection.data_to_send()


def test_a_wrong_protocol_header_is_answered_with_the_right_one():
    for header in (b"AMQP\x00\x01\x00\x00", b"GET / HT", b"AMQP\x01\x01\x00\x0a", b"\x16\x03\x01"):
        connection = make()
        (event,) = feed(connection, header)
        assert isinstance(event, ConnectionEnded)
        assert connection.data_to_send() == amqp.PROTOCOL_HEADER
        assert connection.is_closed


@pytest.mark.parametrize("size", [1, 5, 8])
def test_a_client_that_begins_with_the_header_of_0_9_is_let_in(size):
    connection = make()
    header = b"AMQP\x01\x01\x00\x09"
    for at in range(0, len(header), size):
        feed(connection, header[at : at + size])
    (start,) = sent(connection)
    assert isinstance(start, Connection.Start)
    assert (start.version_major, start.version_minor) == (0, 9)


def refuse(data, connection=None):
    """Feed what is not allowed; return the connection.close that it brings."""
    connection = connection or ready()
    ended = [event for event in feed(connection, data) if isinstance(event, ConnectionEnded)]
    assert len(ended) == 1
    (close,) = [frame for frame in sent(connection) if isinstance(frame, Connection.Close)]
    assert connection.state == State.CLOSING
    return close


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


def test_a_soft_error_ends_a_channel_and_what_follows_on_it_is_ignored():
    connection = ready(OPEN_1 + amqp.method(2, Channel.Open()))
    events = feed(
        connection, amqp.publish(1, b"x" * 100_001, piece=4_000) + amqp.publish(1, b"y") + amqp.publish(2, b"z")
    )
    assert isinstance(events[0], ChannelEnded)
    assert events[1:] == [(2, b"\x00\x01q", b"z")]
    (close,) = sent(connection)
    assert isinstance(close, Channel.Close)
    assert close.reply_code == 406
    feed(connection, amqp.method(1, Channel.CloseOk()) + OPEN_1)
    assert isinstance(sent(connection)[0], Channel.OpenOk)
    assert feed(connection, amqp.publish(1, b"again")) == [(1, b"\x00\x01q", b"again")]


def test_both_sides_may_close_a_channel_at_once():
    connection = ready()
    connection.fail(AmqpError(ReplyCode.NOT_FOUND, "x"), connection.channels[1])
    feed(connection, amqp.method(1, Channel.Close(200, "", 0, 0)))
    assert [type(frame) for frame in sent(connection)] == [Channel.Close, Channel.CloseOk]
    assert connection.channels == {}


def test_what_is_late_for_a_channel_that_is_closed_is_ignored():
    connection = ready()
    close = amqp.method(1, Channel.Close(200, "", 0, 0))
    feed(connection, close + amqp.method(1, Channel.CloseOk()) + OPEN_1 + amqp.method(1, Channel.CloseOk()))
    assert [type(frame) for frame in sent(connection)] == [Channel.CloseOk, Channel.OpenOk]
    assert feed(connection, amqp.publish(1, b"x")) == [(1, b"\x00\x01q", b"x")]


def test_the_answer_to_an_open_channel_has_an_empty_field_as_rabbitmq_s_has():
    connection = ready(b"")
    connection.data_to_send()
    feed(connection, OPEN_1)
    assert connection.data_to_send() == amqp.raw_frame(1, 1, bytes.fromhex("0014000b 00000000"))


def test_channels_are_counted_and_may_have_any_number():
    connection = ready(b"")
    numbers = [1, 3, 65_535, 40_000, *range(60_000, 60_006)]
    feed(connection, b"".join(amqp.method(number, Channel.Open()) for number in numbers))
    assert len(sent(connection)) == len(numbers) == 10
    feed(connection, amqp.method(3, Channel.Close(200, "", 0, 0)) + amqp.method(50_000, Channel.Open()))
    assert [type(frame) for frame in sent(connection)] == [Channel.CloseOk, Channel.OpenOk]
    close = refuse(amqp.method(2, Channel.Open()), connection)
    said = "NOT_ALLOWED - number of channels opened (10) has reached the negotiated channel_max (10)"
    assert (close.reply_text, close.class_id, close.method_id) == (said, 0, 0)


def test_a_connection_has_only_so_much_that_is_not_complete():
    limits = copy.copy(LIMITS)
    limits.incomplete_bytes_max = 12_000
    connection = AmqpConnection(limits, CutterPool(64), NOW, "1.0", DoorMetrics("amqp"))
    feed(connection, HANDSHAKE + b"".join(amqp.method(number, Channel.Open()) for number in (1, 2, 3)))
    connection.data_to_send()
    whole = {number: amqp.publish(number, b"x" * 8_000, piece=4_000) for number in (1, 2, 3)}
    first = {number: data[:-4_008] for number, data in whole.items()}
    assert feed(connection, first[1] + first[2]) == []
    assert len(feed(connection, whole[1][-4_008:])) == 1
    assert feed(connection, first[1] + first[3]) == []
    close = refuse(whole[1][-4_008:], connection)
    assert close.reply_text == "RESOURCE_ERROR - messages that are not complete have more than 12000 bytes together"


def test_a_new_secret_is_told():
    connection = ready()
    assert feed(connection, amqp.method(0, Connection.UpdateSecret("token", "it runs out"))) == [SecretCame(b"token")]
    assert connection.state == State.OPEN


def test_confirms_are_numbered_from_the_select_on():
    connection = ready()
    channel = connection.channels[1]
    feed(connection, amqp.publish(1, b"a"))
    assert channel.published == 0
    channel.is_confirming = True
    connection.receive_data(amqp.publish(1, b"b") * 3 + amqp.publish(1, b"c" * 5_000, piece=4_000), NOW)
    assert [event.first_number for event in connection.events()] == [1, 4]
    assert channel.published == 4


def test_amqplain_is_understood():
    response = b"\x05LOGINS\x00\x00\x00\x05guest\x08PASSWORDS\x00\x00\x00\x05guest"
    start_ok = commands.Connection.StartOk({}, "AMQPLAIN", response.decode(), "en_US")
    connection = make()
    events = feed(connection, amqp.PROTOCOL_HEADER + amqp.method(0, start_ok))
    assert events == [LoginAsked("AMQPLAIN", "guest", b"guest", "")]


def test_heartbeats_follow_what_was_agreed():
    connection = ready()
    assert connection.next_deadline_ms() == NOW + 15_000
    connection.handle_timer(NOW + 15_000)
    connection.handle_timer(NOW + 30_000)
    assert connection.data_to_send() == b"\x08\x00\x00\x00\x00\x00\x00\xce"
    feed(connection, amqp.raw_frame(8, 0, b""), NOW + 59_000)
    connection.handle_timer(NOW + 60_000)
    with pytest.raises(PeerSilentError, match="missed heartbeats, timeout: 30s"):
        connection.handle_timer(NOW + 59_000 + 60_000)
    assert connection.next_deadline_ms() is None


def test_nothing_is_cut_after_the_end():
    connection = ready()
    connection.receive_eof()
    assert feed(connection, amqp.publish(1, b"x")) == []


@pytest.mark.parametrize("size", [1, 3, 4])
def test_another_protocol_is_told_apart_at_its_first_octet_that_differs(size):
    connection = make()
    for start in range(0, 4, size):
        assert not connection.is_closed
        feed(connection, b"AMQ "[start : start + size])
    assert connection.is_closed
    assert connection.data_to_send() == amqp.PROTOCOL_HEADER


def test_the_size_of_a_frame_that_came_behind_the_login_is_checked_as_soon_as_the_user_is_in():
    connection = make()
    connection.receive_data(
        HANDSHAKE[: HANDSHAKE.index(b"en_US") + 6] + amqp.raw_frame(1, 0, b"")[:3] + bytes(4 * [255]), NOW
    )
    (login,) = connection.events()
    assert isinstance(login, LoginAsked)
    connection.accept_login(b"guest")
    connection.take_up(NOW)
    (end,) = connection.events()
    assert "frame_too_large,4294967295,8184" in end.reason


def test_nothing_is_cut_behind_the_answer_to_a_close():
    connection = ready()
    wrong = amqp.method(5, Basic.Qos())
    (end,) = feed(connection, wrong + amqp.method(0, Connection.CloseOk()) + wrong)
    assert isinstance(end, ConnectionEnded)
    assert connection.is_closed
