"""A session is this gateway's as long as a connection has it, and anybody's then."""

from __future__ import annotations

from functools import partial

import pytest

from gateway.mqtt.claims import SESSION_KEY
from gateway.runtime.chores import AT_ONCE
from tests.support import mqtt
from tests.support.late_engine import make_late

KEY = SESSION_KEY + b"c"


@pytest.fixture
def late(make_world):
    return make_world(make_engine=make_late)


@pytest.mark.parametrize("clean", [True, False])
def test_a_session_is_anybodys_when_its_connection_is_gone(late, clean):
    peer = late.client(b"c", (b"t", 1), clean=clean)
    assert late.engine.held == {KEY}
    peer.vanish()
    assert late.engine.held == set()
    assert late.client(b"c", clean=clean).is_closed is False
    assert late.engine.held == {KEY}


def test_a_session_stays_when_a_newer_connection_takes_it_over(late):
    older = late.client(b"c", (b"t", 1), clean=False)
    newer = late.client(b"c", clean=False)
    assert older.is_closed
    older.vanish()
    assert late.engine.held == {KEY}
    newer.send(mqtt.DISCONNECT)
    assert late.engine.held == set()


def test_a_session_with_much_to_let_go_of_is_ours_until_that_is_done(late):
    filters = [(b"f/%d" % i, 1) for i in range(4 * AT_ONCE)]
    peer = late.client(b"c").send(mqtt.subscribe(1, *filters))
    peer.transport.is_closed = True
    peer.handler.on_closed(late.now_ms)
    assert late.engine.held == {KEY}
    late.turn()
    assert late.engine.held == set()
    assert late.broker.explain(b"f/1") == []


def test_a_client_that_goes_before_it_was_answered_leaves_no_claim(late):
    peer = late.dial()
    peer.begin(mqtt.connect(b"c"))
    peer.vanish()
    assert late.engine.held == set()
    late.client(b"c").vanish()
    assert late.engine.held == set()


def test_a_claim_that_was_refused_is_no_claim(make_world):
    world = make_world(make_engine=partial(make_late, refusals=1.0))
    assert world.connect(b"c").is_closed
    assert world.engine.held == set()
    world.engine.refusals = 0.0
    world.client(b"c")
    assert world.engine.held == {KEY}
