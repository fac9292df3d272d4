from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st
from pamqp import commands

from core.message import FLAG_MARK
from core.properties import decode_properties
from gateway.amqp.codec import MANDATORY, PublishCutter, cut_frame
from gateway.amqp.errors import AmqpError
from tests.support import amqp

PAYLOAD_MAX = 131_064
BODY_MAX = 1 << 24


def cut(data, channel=1, payload_max=PAYLOAD_MAX, body_max=BODY_MAX, user=b"guest"):
    cutter = PublishCutter(64)
    end = cutter.cut(data, 0, len(data), channel, payload_max, body_max, user)
    return cutter, end


def bodies(batch):
    return [bytes(batch.buf[batch.body_start[i] : batch.body_end[i]]) for i in range(batch.count)]


def extras(batch):
    return [
        decode_properties(bytes(batch.extra[batch.extra_start[i] : batch.extra_end[i]])) for i in range(batch.count)
    ]


def test_a_run_of_publishes_is_cut_into_one_batch():
    data = b"".join(
        [
            amqp.publish(1, b"one", key="a.b", delivery_mode=2),
            amqp.publish(1, b"", key="a.b", delivery_mode=2),
            amqp.publish(1, b"three", exchange="logs", key="c", content_type="text/plain", mandatory=True),
        ]
    )
    cutter, end = cut(data)
    batch = cutter.batch
    assert end == len(data)
    assert bodies(batch) == [b"one", b"", b"three"]
    assert batch.topics == [b"\x00\x03a.b", b"\x04logs\x01c"]
    assert list(batch.route_index[:3]) == [0, 0, 1]
    assert list(batch.flag[:3]) == [FLAG_MARK | 1, FLAG_MARK | 1, FLAG_MARK]
    assert list(batch.tag[:3]) == [0, 0, MANDATORY]
    assert cutter.mandatory_count == 1
    first, second, third = extras(batch)
    assert first == second
    assert set(first) == {b"LMQ_AMQP"}
    assert third[b"CONTENT_TYPE"] == b"text/plain"


def test_questions_are_of_the_run_where_the_channel_has_a_name_for_answers():
    data = amqp.publish(1, b"1", reply_to="amq.rabbitmq.reply-to") * 2 + amqp.publish(1, b"2")
    cutter = PublishCutter(64)
    end = cutter.cut(data, 0, len(data), 1, PAYLOAD_MAX, BODY_MAX, b"guest", "amq.rabbitmq.reply-to.x")
    assert (end, cutter.batch.count) == (len(data), 3)
    first, second, third = extras(cutter.batch)
    assert first == second
    assert first[b"LMQ_RESPONSE_TOPIC"] == b"amq/rabbitmq/reply-to/x"
    assert b"LMQ_RESPONSE_TOPIC" not in third
    assert cut(data)[1] == 0


def test_publishes_with_the_same_properties_share_them():
    data = amqp.publish(1, b"1", delivery_mode=2) * 3
    batch = cut(data)[0].batch
    assert len(set(batch.extra_start[:3])) == 1
    assert len(set(batch.extra_end[:3])) == 1


@pytest.mark.parametrize("missing", range(1, 60))
def test_a_publish_that_is_not_all_there_is_left_alone(missing):
    whole = amqp.publish(1, b"whole")
    torn = amqp.publish(1, b"x" * 40, content_type="text/plain")
    cutter, end = cut(whole + torn[:-missing])
    assert end == len(whole)
    assert bodies(cutter.batch) == [b"whole"]


def test_a_batch_takes_no_more_than_its_capacity():
    one = amqp.publish(1, b"m")
    cutter, end = cut(one * 100)
    assert cutter.batch.count == 64
    assert end == 64 * len(one)


def test_large_headers_end_a_run_before_the_room_is_gone():
    parts = [amqp.publish(1, b"m", headers={"h": f"{i:05}" + "x" * 17_000}) for i in range(20)]
    data = b"".join(parts)
    cutter = PublishCutter(64)
    pos = total = 0
    while pos < len(data):
        pos = cutter.cut(data, pos, len(data), 1, PAYLOAD_MAX, BODY_MAX, b"guest")
        assert 0 < cutter.batch.count < 20
        total += cutter.batch.count
    assert total == 20


STOPS = {
    "another channel": amqp.publish(2, b"x"),
    "another method": amqp.method(1, commands.Basic.Qos(prefetch_count=1)),
    "immediate": amqp.publish(1, b"x", immediate=True),
    "body in two frames": amqp.publish(1, b"x" * 100, piece=60),
    "body larger than allowed": amqp.publish(1, b"x" * 2_000),
    "user id of somebody else": amqp.publish(1, b"x", user_id="root"),
    "bad frame end in the method": amqp.publish(1, b"x").replace(b"\xce", b"\xcd", 1),
    "bad frame end in the body": amqp.publish(1, b"x")[:-1] + b"\x00",
    "header of another channel": amqp.publish(1, b"x").replace(b"\x02\x00\x01", b"\x02\x00\x07", 1),
    "header of another class": amqp.publish(1, b"x").replace(b"\x00\x3c\x00\x00", b"\x00\x32\x00\x00", 1),
    "header too short": amqp.publish(1, b"")[:-22] + amqp.raw_frame(2, 1, b"\x00\x3c" + bytes(11)),
    "properties cut short": amqp.publish(1, b"")[:-22]
    + amqp.raw_frame(2, 1, b"\x00\x3c" + bytes(10) + b"\x80\x00\x09a"),
    "properties too long": amqp.publish(1, b"")[:-22] + amqp.raw_frame(2, 1, b"\x00\x3c" + bytes(12) + b"a"),
    "continued flags": amqp.publish(1, b"")[:-22] + amqp.raw_frame(2, 1, b"\x00\x3c" + bytes(10) + b"\x00\x01\x00\x00"),
    "routing key past its frame": amqp.raw_frame(1, 1, b"\x00\x3c\x00\x28\x00\x00\x00\xff\x61\x00"),
    "body size of 4 GiB": amqp.publish(1, b"x").replace(b"\x00" * 7 + b"\x01", b"\x00\x00\x00\x01\x00\x00\x00\x01", 1),
    "heartbeat": amqp.raw_frame(8, 0, b""),
    "nonsense": b"GET / HTTP/1.1\r\n\r\n" * 4,
}


@pytest.mark.parametrize("stop", STOPS.values(), ids=STOPS)
def test_whatever_is_not_a_plain_publish_ends_the_run_and_spoils_nothing(stop):
    before = amqp.publish(1, b"before")
    cutter, end = cut(before + stop + amqp.publish(1, b"after"), body_max=1_000)
    assert end == len(before)
    assert bodies(cutter.batch) == [b"before"]


@given(st.binary(max_size=200), st.integers(0, 400))
@settings(max_examples=200, deadline=None)
def test_no_bytes_make_the_cutter_fail(noise, at):
    good = amqp.publish(1, b"m" * 30, content_type="a", headers={"a": "b"}) * 2
    data = good[:at] + noise + good[at:]
    cutter, end = cut(data)
    assert 0 <= end <= len(data)
    assert all(0 <= start <= len(data) for start in cutter.batch.body_start[: cutter.batch.count])


def test_a_frame_is_told_when_it_is_all_there():
    data = amqp.method(3, commands.Basic.Qos(prefetch_count=1))
    for size in range(len(data)):
        assert cut_frame(data, 0, size, PAYLOAD_MAX) == 0
    packed = cut_frame(data, 0, len(data), PAYLOAD_MAX)
    assert (packed & 0xFF, packed >> 8 & 0xFFFF, packed >> 24) == (1, 3, len(data) - 8)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\x07", "FRAME_ERROR - type 7, all octets = <<>>: unknown_frame"),
        (b"\x01\x00\x01\x7f\xff\xff\xff", "{frame_too_large,2147483647,"),
        (b"\x03\x00\x01\xff\xff\xff\xff", "frame_too_large"),
        (b"\x08\x00\x00\x00\x00\x00\x00\x00", "FRAME_ERROR - type 8, all octets = <<>>: {invalid_frame_end_marker,0}"),
    ],
)
def test_what_cannot_be_a_frame_is_refused_before_it_is_all_there(data, text):
    with pytest.raises(AmqpError, match=text):
        cut_frame(data, 0, len(data), PAYLOAD_MAX)


def test_one_message_put_together_elsewhere_makes_a_batch():
    cutter = PublishCutter(4)
    cutter.add(b"\x01x\x01k", MANDATORY, amqp.block(delivery_mode=2), bytearray(b"long body"), b"guest")
    assert cutter.batch.topics == [b"\x01x\x01k"]
    assert bodies(cutter.batch) == [b"long body"]
    with pytest.raises(AmqpError, match="user_id property set to 'me' but authenticated user was 'guest'"):
        cutter.add(b"\x00\x01k", 0, amqp.block(user_id="me"), bytearray(), b"guest")
