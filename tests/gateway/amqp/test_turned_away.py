"""Clients that come when no more are let in."""

from __future__ import annotations

import pytest
from pamqp.commands import Connection

from gateway.amqp.turned_away import BYTES_MAX, WAIT_MS, TurnedAway
from gateway.net.limits import HOST_FULL
from gateway.net.paces import ADDRESS_FAST, DOOR_FAST, LISTENER_FAST
from gateway.net.watermarks import CONNECTIONS_FULL, MEMORY_LOW
from tests.support import amqp
from tests.support.mqtt_door import MemoryTransport

START_OK = amqp.method(0, Connection.StartOk({}, "PLAIN", "\0nobody\0wrong", "en_US"))
OPEN = amqp.method(0, Connection.TuneOk(2_047, 131_072, 0)) + amqp.method(0, Connection.Open("/"))


def make(world, refusal=MEMORY_LOW):
    transport = MemoryTransport(1)
    transport.refusal = refusal
    return world.amqp.refuser()(transport), transport


def take(transport):
    frames = [value for _, value in amqp.decode_frames(bytes(transport.sent))]
    transport.sent.clear()
    return frames


@pytest.mark.parametrize("step", [1, 9, 10_000])
def test_a_client_is_told_when_it_opens_that_memory_is_low(world, step):
    handler, transport = make(world)
    assert isinstance(handler, TurnedAway)
    for data in (amqp.PROTOCOL_HEADER, START_OK, OPEN):
        for start in range(0, len(data), step):
            assert not handler.on_data(data[start : start + step], world.now_ms)
    start, tune, close = take(transport)
    assert isinstance(start, Connection.Start)
    assert isinstance(tune, Connection.Tune)
    assert (close.reply_code, close.class_id, close.method_id) == (506, 10, 40)
    assert close.reply_text == "RESOURCE_ERROR - memory is low: no new connections, try again later"
    assert not transport.is_closed
    handler.on_data(amqp.method(0, Connection.CloseOk()), world.now_ms)
    assert transport.is_closed
    assert handler.next_deadline_ms() is None
    handler.on_closed(world.now_ms)


@pytest.mark.parametrize(
    ("refusal", "text"),
    [
        (ADDRESS_FAST, "CONNECTION_FORCED - too many connections come at once, try again later"),
        (LISTENER_FAST, "CONNECTION_FORCED - too many connections come at once, try again later"),
        (DOOR_FAST, "CONNECTION_FORCED - too many connections come at once, try again later"),
        (HOST_FULL, "NOT_ALLOWED - connection refused: connection limit is reached"),
        (CONNECTIONS_FULL, "NOT_ALLOWED - connection refused: connection limit is reached"),
    ],
)
def test_a_client_is_told_which_sort_of_limit_it_met(world, refusal, text):
    handler, transport = make(world, refusal)
    handler.on_data(amqp.PROTOCOL_HEADER, world.now_ms)
    handler.on_data(START_OK + OPEN, world.now_ms)
    assert take(transport)[-1].reply_text == text


@pytest.mark.parametrize("data", [b"GET / HTTP", amqp.PROTOCOL_HEADER + START_OK + bytes(BYTES_MAX)])
def test_what_is_no_handshake_is_closed(world, data):
    handler, transport = make(world)
    handler.on_data(data, world.now_ms)
    assert transport.is_closed


def test_it_has_a_moment_to_say_so(world):
    handler, transport = make(world)
    assert handler.next_deadline_ms() == 0
    handler.on_timer(world.now_ms)
    assert handler.next_deadline_ms() == world.now_ms + WAIT_MS
    handler.on_data(amqp.PROTOCOL_HEADER, world.now_ms)
    handler.on_timer(world.now_ms + WAIT_MS - 1)
    assert not handler.go_on(world.now_ms)
    handler.on_writable(world.now_ms)
    assert not transport.is_closed
    handler.on_timer(world.now_ms + WAIT_MS)
    assert transport.is_closed


def test_it_may_give_up(world):
    handler, transport = make(world)
    handler.on_eof(world.now_ms)
    assert transport.is_closed
    assert bytes(transport.sent) == b""
