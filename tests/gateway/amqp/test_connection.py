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
    SecretCame,
)
from gateway.amqp.reply_codes import ReplyCode
from gateway.amqp.states import State
from tests.support import amqp
from tests.support.amqp_machine import HANDSHAKE, LIMITS, NOW, OPEN_1, feed, make, ready, refuse, sent

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
