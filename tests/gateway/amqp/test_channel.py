from __future__ import annotations

import pytest
from pamqp import frame, header
from pamqp.commands import Basic

from gateway.amqp.channel import Channel, Incomplete
from gateway.amqp.codec import PublishCutter
from gateway.amqp.errors import AmqpError
from tests.support import amqp

PUBLISH = frame.marshal(Basic.Publish(0, "x", "k", True), 1)[7:-1]


def content_header(size):
    return frame.marshal(header.ContentHeader(0, size, Basic.Properties(delivery_mode=2)), 1)[7:-1]


def test_a_content_is_put_together_from_its_frames():
    channel = Channel(1, Incomplete(1_000))
    channel.start_content(PUBLISH)
    assert not channel.take_header(content_header(6), 100)
    assert not channel.take_body(b"abc")
    assert channel.take_body(b"def")
    cutter = PublishCutter(4)
    channel.finish_content(cutter, b"guest")
    assert channel.content is None
    batch = cutter.batch
    assert (batch.count, batch.topics, bytes(batch.buf)) == (1, [b"\x01x\x01k"], b"abcdef")
    assert cutter.mandatory_count == 1


def test_an_empty_content_is_complete_with_its_header():
    channel = Channel(1, Incomplete(1_000))
    channel.start_content(PUBLISH)
    assert channel.take_header(content_header(0), 100)


def test_a_body_that_is_announced_and_not_sent_takes_no_room():
    channel = Channel(1, Incomplete(1_000))
    channel.start_content(PUBLISH)
    channel.take_header(content_header(2**29), 2**30)
    assert len(channel.content.body) == 0


def test_frames_out_of_order_are_refused():
    channel = Channel(1, Incomplete(1_000))
    with pytest.raises(AmqpError, match="UNEXPECTED_FRAME - expected method frame, got non method frame"):
        channel.take_header(content_header(1), 100)
    with pytest.raises(AmqpError, match="UNEXPECTED_FRAME - expected method frame, got non method frame"):
        channel.take_body(b"x")
    channel.start_content(PUBLISH)
    with pytest.raises(
        AmqpError, match="UNEXPECTED_FRAME - expected content header for class 60, got non content header"
    ):
        channel.take_body(b"x")


def test_more_than_was_announced_is_refused():
    channel = Channel(1, Incomplete(1_000))
    channel.start_content(PUBLISH)
    with pytest.raises(AmqpError, match="message size 101 is larger than configured max size 100"):
        channel.take_header(content_header(101), 100)
    channel.take_header(content_header(3), 100)
    with pytest.raises(AmqpError, match="FRAME_ERROR - content body frame exceeds remaining content size"):
        channel.take_body(b"four")


def test_what_is_larger_than_any_message_may_be_costs_the_connection():
    channel = Channel(1, Incomplete(1_000))
    channel.start_content(PUBLISH)
    said = "FRAME_ERROR - content body size 536870913 exceeds maximum allowed size 536870912"
    with pytest.raises(AmqpError, match=said) as caught:
        channel.take_header(content_header(2**29 + 1), 2**30)
    assert caught.value.is_fatal


def test_what_is_not_complete_is_bounded_over_all_channels():
    incomplete = Incomplete(10)
    one, two = Channel(1, incomplete), Channel(2, incomplete)
    for channel in (one, two):
        channel.start_content(PUBLISH)
        channel.take_header(content_header(9), 100)
    one.take_body(b"12345678")
    with pytest.raises(AmqpError, match="RESOURCE_ERROR - messages that are not complete have more than 10 bytes"):
        two.take_body(b"123")
    incomplete.size = 8
    one.take_body(b"9")
    one.finish_content(PublishCutter(4), b"")
    two.take_body(b"123456789")
    assert incomplete.size == 9
    two.drop_content()
    assert incomplete.size == 0


def test_publishes_are_numbered_with_confirms_only():
    channel = Channel(1, Incomplete(1_000))
    assert channel.count_published(5) == 0
    channel.is_confirming = True
    assert [channel.count_published(5), channel.count_published(1)] == [1, 6]


def test_what_pamqp_publishes_is_taken():
    for exchange, key in (("", ""), ("x" * 120, "k" * 255)):
        channel = Channel(1, Incomplete(1_000))
        data = amqp.method(1, Basic.Publish(0, exchange, key))[7:-1]
        channel.start_content(data)
        assert channel.content.raw[1 : 1 + len(exchange)].decode() == exchange
