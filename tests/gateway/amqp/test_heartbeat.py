from __future__ import annotations

import pytest

from gateway.amqp.errors import AmqpError
from gateway.amqp.heartbeat import Heartbeat, check_beat


def test_a_beat_is_empty_and_on_channel_0():
    check_beat(0, b"")
    with pytest.raises(AmqpError, match='FRAME_ERROR - type 8, all octets = <<"x">>: unknown_frame'):
        check_beat(0, b"x")
    with pytest.raises(AmqpError, match="UNEXPECTED_FRAME - type 8, all octets = <<>>"):
        check_beat(1, b"")


def test_a_beat_is_due_when_nothing_was_sent_for_half_the_interval():
    heartbeat = Heartbeat(1_000)
    heartbeat.start(10_000)
    heartbeat.on_sent()
    assert not heartbeat.take_beat(5_999)
    assert not heartbeat.take_beat(6_000)
    assert heartbeat.take_beat(11_000)
    assert not heartbeat.take_beat(11_001)
    assert heartbeat.take_beat(16_000)


def test_a_peer_is_lost_after_two_intervals():
    heartbeat = Heartbeat(0)
    heartbeat.start(10_000)
    heartbeat.received_ms = 3_000
    assert not heartbeat.is_lost(22_999)
    assert heartbeat.is_lost(23_000)
    heartbeat.take_beat(20_000)
    assert heartbeat.next_deadline_ms() == 23_000


def test_nobody_beats_without_an_interval():
    heartbeat = Heartbeat(0)
    heartbeat.start(0)
    assert heartbeat.next_deadline_ms() is None
    assert not heartbeat.take_beat(10**9)
    assert not heartbeat.is_lost(10**9)


def test_a_peer_that_is_not_read_is_not_missed_and_is_beaten_to():
    heartbeat = Heartbeat(0)
    heartbeat.start(10_000)
    heartbeat.pause()
    assert not heartbeat.is_lost(10**9)
    assert heartbeat.next_deadline_ms() == 5_000
    assert heartbeat.take_beat(10**9)
    heartbeat.resume(10**9)
    assert not heartbeat.is_lost(10**9 + 19_999)
    assert heartbeat.is_lost(10**9 + 20_000)
