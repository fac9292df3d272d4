from __future__ import annotations

import pytest

from gateway.auth.credentials import Refusal
from gateway.rocketmq.login import CODES, REMARKS
from gateway.settings.models import UserSettings
from lmq.remoting.signature import AccessKeys
from tests.support.logins import quick_hash
from tests.support.rocketmq import request_frame, send_frame, signed
from tests.support.rocketmq_door import DoorSite

ANN = AccessKeys("ann", "ann's own secret")
GUESS = AccessKeys("ann", "bob's own secret")
USERS = {
    "ann": UserSettings(secret=ANN.secret_key, may_publish=False),
    "bob": UserSettings(secret="bob's own secret"),
    "cy": UserSettings(password_hash=quick_hash("cy's password")),
}


@pytest.fixture
def locked(tmp_path, engine_maker):
    site = DoorSite(tmp_path / "d", anonymous=False, users=USERS, make_engine=engine_maker)
    yield site
    site.close()


def route(opaque, keys=None):
    frame = request_frame(105, opaque=opaque, topic="TBW102")
    return frame if keys is None else signed(frame, keys)


def codes(peer):
    return [(answer.opaque, answer.code) for answer in peer.take()]


def test_user_comes_in_by_its_signature_with_its_own_rights_and_name(locked, caplog):
    caplog.set_level("INFO")
    ann, bob = locked.connect(), locked.connect()
    ann.give(route(1, ANN) + signed(send_frame(b"no", opaque=2), ANN))
    locked.turn()
    assert codes(ann) == [(1, 0), (2, 16)]
    bobs = AccessKeys("bob", "bob's own secret")
    bob.give(b"".join(signed(send_frame(b"%d" % i, opaque=i, properties="LMQ_TOPIC\x01a"), bobs) for i in range(200)))
    locked.turn()
    assert sorted(codes(bob)) == [(i, 0) for i in range(200)]
    said = [record.getMessage() for record in caplog.records]
    assert [line for line in said if "logged in" in line] == [
        "logged in conn=1 peer=127.0.0.1:10911 client= user=ann",
        "logged in conn=2 peer=127.0.0.1:10911 client= user=bob",
    ]
    assert "denied publish conn=1 user=ann name=T" in said


@pytest.mark.parametrize(
    "keys",
    [None, GUESS, AccessKeys("nobody", "bob's own secret"), AccessKeys("cy", "cy's password"), AccessKeys("", "x")],
)
def test_who_signs_wrongly_or_not_is_refused_by_the_protocols_code_and_may_try_again(locked, keys):
    peer = locked.connect()
    peer.give(route(1, keys) + route(2, ANN))
    refused, let_in = peer.take()
    assert (refused.opaque, refused.code, let_in.opaque, let_in.code) == (1, 16, 2, 0)
    assert refused.remark
    assert not peer.transport.is_closed


def test_each_request_of_a_user_is_to_be_signed(locked):
    peer = locked.connect()
    peer.give(route(1, ANN) + route(2) + route(3, GUESS) + route(4, ANN))
    assert codes(peer) == [(1, 0), (2, 16), (3, 16), (4, 0)]


def test_requests_wait_for_the_login_before_them_and_nobody_elses_do(locked):
    locked.checks.holds = True
    peer, other = locked.connect(), locked.connect()
    peer.give(route(1, ANN) + route(2, ANN))
    peer.give(route(3, ANN))
    assert codes(peer) == []
    assert not peer.transport.is_reading  # what waits is one read at most
    locked.checks.holds = False
    other.transport.peer = "127.0.0.9:1"
    other.give(route(1, ANN))
    assert codes(other) == [(1, 0)]
    locked.checks.finish_all()
    assert (peer.transport.is_reading, peer.transport.turns) == (True, 1)
    peer.go_on()
    assert codes(peer) == [(1, 0), (2, 0), (3, 0)]


def test_peer_that_ends_while_its_login_is_under_way_is_answered_first(locked):
    locked.checks.holds = True
    peer = locked.connect()
    peer.give(route(1, ANN) + route(2, ANN))
    peer.end()
    assert not peer.transport.is_closed
    locked.checks.finish_all()
    peer.go_on()
    locked.turn()
    assert codes(peer) == [(1, 0), (2, 0)]
    assert peer.transport.is_closed


def test_login_of_a_connection_that_is_gone_is_forgotten(locked):
    locked.checks.holds = True
    peer = locked.connect()
    peer.give(route(1, ANN))
    peer.close()
    locked.checks.finish_all()
    assert codes(peer) == []
    assert peer.handler.identity is None


def test_too_many_logins_at_once_are_told_to_come_again(locked, monkeypatch):
    monkeypatch.setattr("gateway.auth.password_checks.WAITING_MAX", 1)
    locked.checks.holds = True
    peers = [locked.connect() for _ in range(5)]
    for number, peer in enumerate(peers):
        peer.transport.peer = f"127.0.0.{number + 2}:1"
        peer.give(route(1, ANN))
    assert sum(codes(peer) == [(1, 2)] for peer in peers) == 2
    locked.checks.finish_all()
    for peer in peers:
        peer.go_on()
    assert sum(codes(peer) == [(1, 0)] for peer in peers) == 3


def test_named_users_of_an_open_gateway_log_in_and_others_come_in_if_they_give_no_name(tmp_path, engine_maker):
    site = DoorSite(tmp_path / "d", users=USERS, make_engine=engine_maker)
    peer, nobody = site.connect(), site.connect()
    peer.give(route(1, GUESS) + route(2, ANN))
    nobody.give(route(1, AccessKeys("nobody", "whatever")) + route(2))
    assert codes(peer) == [(1, 16), (2, 0)]
    assert codes(nobody) == [(1, 16), (2, 0)]
    assert (peer.handler.identity.user, nobody.handler.identity.user) == ("ann", "")
    site.close()


def test_every_refusal_has_a_code_and_a_remark():
    assert set(CODES) == set(REMARKS) == set(Refusal)
