from __future__ import annotations

import pytest
from pamqp import frame, header
from pamqp.commands import Basic

from gateway.amqp.channel import Channel
from gateway.amqp.codec import PublishCutter
from gateway.amqp.errors import AmqpError
from tests.support import amqp

PUBLISH = frame.marshal(Basic.Publish(0, "x", "k", True), 1)[7:-1]


def content_header(size):
    return frame.marshal(header.ContentHeader(0, size, Basic.Properties(delivery_mode=2)), 1)[7:-1]


def test_a_content_is_put_together_from_its_frames():
    channel = Channel(1)
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
    channel = Channel(1)
    channel.start_content(PUBLISH)
    assert channel.take_header(content_header(0), 100)


def test_a_body_that_is_announced_and_not_sent_takes_no_room():
    channel = Channel(1)
    channel.start_content(PUBLISH)
    channel.take_header(content_header(2**40), 2**41)
    assert len(channel.content.body) == 0


def test_frames_out_of_order_are_refused():
    channel = Channel(1)
    with pytest.raises(AmqpError, match="UNEXPECTED_FRAME - expected method frame, got content header frame"):
        channel.take_header(content_header(1), 100)
    with pytest.raises(AmqpError, match="UNEXPECTED_FRAME - expected method frame, got content body frame"):
        channel.take_body(b"x")
    channel.start_content(PUBLISH)
    with pytest.raises(AmqpError, match="UNEXPECTED_FRAME - expected content header frame, got content body frame"):
        channel.take_body(b"x")


def test_more_than_was_announced_is_refused():
    channel = Channel(1)
    channel.start_content(PUBLISH)
    with pytest.raises(AmqpError, match="message size 101 is larger than configured max size 100"):
        channel.take_header(content_header(101), 100)
    channel.take_header(content_header(3), 100)
    with pytest.raises(AmqpError, match="FRAME_ERROR - content body is longer than its header says"):
        channel.take_body(b"four")


def test_publishes_are_numbered_with_confirms_only():
    channel = Channel(1)
    assert channel.count_published(5) == 0
    channel.is_confirming = True
    assert [channel.count_published(5), channel.count_published(1)] == [1, 6]


def test_what_pamqp_publishes_is_taken():
    for exchange, key in (("", ""), ("x" * 120, "k" * 255)):
        channel = Channel(1)
        data = amqp.method(1, Basic.Publish(0, exchange, key))[7:-1]
        channel.start_content(data)
        assert channel.content.raw[1 : 1 + len(exchange)].decode() == exchange
