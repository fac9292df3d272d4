"""How a connection ends: what its client is told, and that it ends once."""

from __future__ import annotations

import pytest

from gateway.mqtt.reason_codes import ReasonCode
from tests.support import mqtt
from tests.support.mqtt import connect_5

ENDS = {
    ReasonCode.SESSION_TAKEN_OVER: lambda peer, now_ms: peer.handler.take_over(now_ms),
    ReasonCode.SERVER_SHUTTING_DOWN: lambda peer, now_ms: peer.handler.shut_down(now_ms),
    ReasonCode.NOT_AUTHORIZED: lambda peer, now_ms: peer.handler.turn_out(now_ms),
    ReasonCode.ADMINISTRATIVE_ACTION: lambda peer, now_ms: peer.handler.turn_out(now_ms, "an operator wants it"),
}


@pytest.mark.parametrize("code", ENDS)
def test_client_of_version_5_is_told_why_its_connection_ends(world, code):
    peer = world.dial().send(connect_5(b"c"))
    peer.take()
    ENDS[code](peer, world.now_ms)
    (said,) = peer.take()
    assert (said[0], said[2]) == (0xE0, code)
    assert peer.is_closed


@pytest.mark.parametrize("code", ENDS)
def test_will_of_a_connection_that_ends_is_published_once(world, code):
    watcher = world.client(b"w", (b"will", 0))
    peer = world.client(b"c", will=(b"will", b"gone", 0, False))
    ENDS[code](peer, world.now_ms)
    assert peer.take() == []  # before MQTT 5 there is no word for it
    peer.handler.on_closed(world.now_ms)
    world.turn()
    assert watcher.bodies() == [b"gone"]
    assert world.connect(b"c").take() == [mqtt.connack()]
