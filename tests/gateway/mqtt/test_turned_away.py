"""Clients that come when there are as many connections as there may be."""

from __future__ import annotations

import pytest

from gateway.mqtt.events import RunPool
from gateway.mqtt.reason_codes import ReasonCode
from gateway.mqtt.turned_away import CONNECT_BYTES_MAX, WAIT_MS, TurnedAway
from gateway.net.paces import ADDRESS_FAST
from tests.support import mqtt
from tests.support.mqtt_5 import connack_of
from tests.support.mqtt_door import MemoryTransport

NOW_MS = 1_000_000


def make():
    transport = MemoryTransport(1)
    return TurnedAway(RunPool(), transport), transport


@pytest.mark.parametrize("step", [1, 7, 1_000])
def test_connect_of_3_1_1_is_answered_with_return_code_3_and_closed(step):
    handler, transport = make()
    data = mqtt.connect(b"c", will=(b"w", b"x", 0, False)) + mqtt.publish(b"t", b"x")
    for start in range(0, len(data), step):
        if not transport.is_closed:
            assert not handler.on_data(data[start : start + step], NOW_MS)
    assert bytes(transport.sent) == mqtt.connack(3)
    assert transport.is_closed
    assert handler.next_deadline_ms() is None
    handler.on_closed(NOW_MS)


def test_a_client_that_comes_too_fast_is_told_that():
    handler, transport = make()
    transport.refusal = ADDRESS_FAST
    handler.on_data(mqtt.connect_5(b"c"), NOW_MS)
    assert connack_of(bytes(transport.sent))[1] == ReasonCode.CONNECTION_RATE_EXCEEDED


def test_connect_of_5_is_answered_with_quota_exceeded():
    handler, transport = make()
    handler.on_data(mqtt.connect_5(b"c"), NOW_MS)
    assert connack_of(bytes(transport.sent))[1] == ReasonCode.QUOTA_EXCEEDED
    assert transport.is_closed


@pytest.mark.parametrize(
    "data", [mqtt.publish(b"t", b"x"), b"\x10\xff\xff\xff\xff", mqtt.packet(0x10, b"x" * CONNECT_BYTES_MAX), b"GET /"]
)
def test_what_is_no_connect_is_not_answered(data):
    handler, transport = make()
    handler.on_data(data, NOW_MS)
    assert transport.is_closed
    assert bytes(transport.sent) == b""


def test_it_has_a_moment_to_say_so():
    handler, transport = make()
    handler.on_data(mqtt.connect(b"c")[:-1], NOW_MS)
    handler.on_timer(NOW_MS + WAIT_MS - 1)
    assert not handler.go_on(NOW_MS)
    handler.on_writable(NOW_MS)
    assert not transport.is_closed
    assert handler.next_deadline_ms() == NOW_MS + WAIT_MS
    handler.on_timer(NOW_MS + WAIT_MS)
    assert transport.is_closed


def test_it_may_give_up():
    handler, transport = make()
    handler.on_eof(NOW_MS)
    assert transport.is_closed
