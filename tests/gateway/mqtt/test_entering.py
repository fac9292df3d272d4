"""A session is claimed of the engine before a client gets it."""

from __future__ import annotations

from functools import partial

import pytest

from gateway.mqtt.claims import SESSION_KEY
from gateway.mqtt.reason_codes import ConnectCode, ReasonCode
from tests.support import mqtt
from tests.support.late_engine import make_late


def test_a_client_is_let_in_when_its_session_is_ours_and_what_came_meanwhile_is_done(make_world):
    world = make_world(make_engine=make_late)
    peer = world.dial()
    peer.begin(mqtt.connect(b"c", clean=False) + mqtt.subscribe(1, (b"t", 1)))
    assert peer.take() == []
    world.turn()
    assert peer.take() == [mqtt.connack(0), mqtt.suback(1, 1)]
    assert world.engine.claimed == [SESSION_KEY + b"c"]


@pytest.mark.parametrize("level", [4, 5])
def test_a_client_whose_session_another_gateway_has_is_told_to_come_later(make_world, level):
    world = make_world(make_engine=partial(make_late, refusals=1.0))
    peer = world.dial()
    peer.send(mqtt.connect(b"c") if level == 4 else mqtt.connect_5(b"c"))
    (answer,) = peer.take()
    assert answer[3] == (ConnectCode.SERVER_UNAVAILABLE if level == 4 else ReasonCode.SERVER_BUSY)
    assert peer.is_closed
    assert world.door.sessions.find(b"c") is None


def test_a_client_that_goes_before_its_session_is_ours_leaves_nothing(make_world):
    world = make_world(make_engine=make_late)
    peer = world.dial()
    peer.begin(mqtt.connect(b"c", clean=False))
    peer.vanish()
    world.turn()
    assert len(world.door.sessions) == 0
    assert world.client(b"c", (b"t", 0)).bodies() == []
