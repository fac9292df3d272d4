from __future__ import annotations

import pytest

from gateway.mqtt import delivery
from tests.support import mqtt


@pytest.mark.at_once(reason="counts what each turn sends")
def test_work_of_one_turn_is_bounded_and_everybody_gets_theirs(make_world, monkeypatch):
    monkeypatch.setattr(delivery, "TURN_BYTES_MAX", 1024 * 1024)
    world = make_world(inflight_max=32_767)
    peers = [world.client(b"s%d" % i, (b"t", 1), clean=False) for i in range(8)]
    for peer in peers:
        peer.vanish()
    world.client(b"p").send(*[mqtt.publish(b"t", b"x" * 1000, qos=1, packet_id=1)] * 600)
    again = []
    for i in range(8):
        peer = world.dial()
        peer.handler.on_data(mqtt.connect(b"s%d" % i, clean=False), 0)
        again.append(peer)
    world.flush()
    for peer in again:
        peer.go_on()
    sent = []
    while world.is_turn_due:
        world.is_turn_due = False
        world.broker.run_turn(0)
        sent.append(sum(len(peer.transport.sent) for peer in again))
    steps = [after - before for before, after in zip([0, *sent], sent, strict=False)]
    assert max(steps) < 1024 * 1024 + 600 * 1024
    assert len(steps) > 2
    assert [len(peer.bodies()) for peer in again] == [600] * 8


def test_acknowledgements_of_a_session_that_was_sent_nothing_are_ignored(world):
    peer = world.client(b"s", (b"t", 1)).send(mqtt.puback(1), mqtt.puback(7))
    assert not peer.is_closed
