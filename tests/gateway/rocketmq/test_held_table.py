"""How fast a client is given messages: its pulls and POPs wait, and others are given what it leaves."""

from __future__ import annotations

import pytest

from gateway.pacing import SharedRates, UserRates
from gateway.rocketmq.held_table import PAUSE_MS_MAX
from gateway.settings.models import RocketmqSettings, UserSettings
from gateway.settings.user_limits import UserLimitsSettings
from lmq.remoting.signature import AccessKeys
from tests.support.rocketmq import request_frame, send_frame, signed
from tests.support.rocketmq_door import DoorSite, bodies_of
from tests.support.rocketmq_pop import pop, read_popped, start_pop

pytestmark = pytest.mark.here(reason="counts what one turn hands out")


@pytest.fixture
def site(tmp_path, engine_maker):
    site = DoorSite(tmp_path / "d", RocketmqSettings(messages_out_rate=10), make_engine=engine_maker)
    fill(site, 30)
    yield site
    site.close()


def fill(site, count, body=b"m%d"):
    peer = site.connect()
    peer.give(b"".join(send_frame(body % i if b"%" in body else body, e="0") for i in range(count)))
    site.turn()


def pass_time(site, ms, *peers):
    site.now_ms += ms
    for peer in peers:
        deadline_ms = peer.handler.next_deadline_ms()
        if deadline_ms is not None and deadline_ms <= site.now_ms:
            peer.handler.on_timer(site.now_ms)
    site.turn()


SUSPEND = {"sysFlag": 6}
KEYS = AccessKeys("u", "a secret of u")


def pull_frame(offset):
    """Return a pull that the user `u` signed."""
    ext = {
        "consumerGroup": "g", "topic": "T", "queueId": 0, "queueOffset": offset, "maxMsgNums": 32, "sysFlag": 6,
        "commitOffset": 0, "suspendTimeoutMillis": 15_000, "subscription": "*", "subVersion": 0,
    }  # fmt: skip
    return signed(request_frame(11, opaque=9, **ext), KEYS)


def pull_signed(peer, offset):
    peer.give(pull_frame(offset))
    peer.site.settle()
    (answer,) = peer.take()
    return answer


def test_a_pull_gets_as_much_a_second_and_the_next_waits(site):
    peer = site.connect()
    assert len(bodies_of(peer.pull("T", **SUSPEND))) == 10
    peer.start_pull("T", 10, **SUSPEND)
    assert peer.take() == []
    pass_time(site, 50, peer)
    assert peer.take() == []
    pass_time(site, 450, peer)
    (answer,) = peer.take()
    assert bodies_of(answer) == [b"m%d" % i for i in range(10, 15)]
    assert answer.ext["nextBeginOffset"] == "15"
    assert len(bodies_of(site.connect().pull("T", **SUSPEND))) == 10  # of another connection


def test_a_pull_is_answered_when_its_own_time_is_over_before_it_may_have_more(tmp_path, engine_maker):
    site = DoorSite(tmp_path / "d", RocketmqSettings(bytes_out_rate=10), make_engine=engine_maker)
    fill(site, 3, b"x" * 400)
    peer = site.connect()
    assert len(bodies_of(peer.pull("T", maxMsgNums=1, **SUSPEND))) == 1
    peer.start_pull("T", 1, suspendTimeoutMillis=5_000, **SUSPEND)
    pass_time(site, 4_999, peer)
    assert peer.take() == []
    pass_time(site, 1, peer)
    (answer,) = peer.take()
    assert (answer.code, answer.remark) == (19, "TOO_MANY_MESSAGES_A_SECOND")
    assert (answer.ext["nextBeginOffset"], answer.ext["maxOffset"]) == ("1", "3")
    peer.start_pull("T", 1, **SUSPEND)
    pass_time(site, 34_101, peer)
    assert len(bodies_of(peer.take()[0])) == 1  # and not both that are left: each is more than a second may have
    assert peer.handler.held == {}
    site.close()


def test_a_pull_that_does_not_wait_is_held_for_its_pace_and_not_for_messages(site):
    peer = site.connect()
    peer.pull("T")
    peer.start_pull("T", 10)
    assert peer.take() == []
    pass_time(site, 101, peer)
    assert bodies_of(peer.take()[0]) == [b"m10"]
    peer.start_pull("T", 30)  # behind the last
    pass_time(site, 101, peer)
    assert [answer.code for answer in peer.take()] == [19]


def test_what_does_not_wait_for_messages_waits_for_its_pace_for_a_bounded_time(tmp_path, engine_maker):
    site = DoorSite(tmp_path / "d", RocketmqSettings(bytes_out_rate=1), make_engine=engine_maker)
    fill(site, 3, b"x" * 400)
    peer = site.connect()
    peer.pull("T", maxMsgNums=1)
    peer.start_pull("T", 1)
    start_pop(peer)
    pass_time(site, PAUSE_MS_MAX - 1, peer)
    assert peer.take() == []
    pass_time(site, 1, peer)
    assert sorted(answer.code for answer in peer.take()) == [19, 210]
    site.close()


def test_a_pop_gets_as_much_a_second_and_the_rest_goes_to_others(site):
    peer, other = site.connect(), site.connect()
    assert [message.body for message in pop(peer)] == [b"m%d" % i for i in range(10)]
    start_pop(peer, pollTime=15_000)
    site.turn()
    assert peer.take() == []
    assert len(pop(other)) == 10
    pass_time(site, 300, peer)
    assert [message.body for message in read_popped(peer.take()[0])] == [b"m20", b"m21", b"m22"]
    start_pop(peer, pollTime=2_000)
    fill(site, 1)
    pass_time(site, 101, peer)
    assert len(read_popped(peer.take()[0])) == 1


@pytest.mark.parametrize("more", [{}, {"subscription": "*", "expType": "TAG"}, {"subscription": "TagA"}])
def test_answers_have_as_many_bytes_of_bodies_as_a_second_may_have(tmp_path, engine_maker, more):
    site = DoorSite(tmp_path / "d", RocketmqSettings(bytes_out_rate=500), make_engine=engine_maker)
    peer = site.connect()
    peer.give(b"".join(send_frame(b"x" * 100, e="0", properties="TAGS\x01TagA\x02") for _ in range(20)))
    site.turn()
    peer.take()
    assert len(bodies_of(peer.pull("T", **SUSPEND, **more))) == 5
    peer.start_pull("T", 5, **SUSPEND, **more)
    assert peer.take() == []
    pass_time(site, 300, peer)
    assert len(bodies_of(peer.take()[0])) == 1
    popping = site.connect()
    given = []
    for _ in range(20):
        start_pop(popping, pollTime=15_000)
        site.turn()
        given += [message for answer in popping.take() for message in read_popped(answer)]
    assert len(given) == 5
    site.close()


def test_other_requests_are_answered_while_pulls_wait(site):
    peer = site.connect()
    peer.pull("T", **SUSPEND)
    peer.start_pull("T", 10, **SUSPEND)
    assert peer.ask(30, topic="T", queueId=0).ext["offset"] == "30"
    assert peer.send(b"x").code == 0
    peer.close()
    assert peer.handler.held == {}


def test_connections_of_one_user_of_one_address_and_of_one_listener_share_their_rates(tmp_path, engine_maker):
    limits = UserLimitsSettings(messages_out_rate=10)
    site = DoorSite(
        tmp_path / "d", users={"u": UserSettings(secret=KEYS.secret_key, limits=limits)}, make_engine=engine_maker
    )
    fill(site, 30)
    first, second = site.connect(), site.connect()
    assert len(bodies_of(pull_signed(first, 0))) == 10
    second.give(pull_frame(10))  # a new connection begins no rate anew
    assert second.take() == []
    site.now_ms += 400
    pass_time(site, 0, second)
    assert len(bodies_of(second.take()[0])) in {3, 4}
    shared = SharedRates((), (UserRates(5, -1, site.now_ms),))
    peers = [site.connect() for _ in range(2)]
    for peer in peers:
        peer.transport.shared = shared
    assert len(bodies_of(peers[0].pull("T"))) == 5
    peers[1].start_pull("T")
    assert peers[1].take() == []
    site.close()


@pytest.mark.parametrize("more", [{}, SUSPEND])
def test_pulls_that_are_too_many_to_wait_for_their_pace_are_answered_at_once(site, monkeypatch, more):
    monkeypatch.setattr("gateway.rocketmq.pull.HELD_MAX", 3)
    peer = site.connect()
    peer.pull("T")
    for _ in range(5):
        peer.start_pull("T", 10, **more)
    assert [(answer.code, answer.remark) for answer in peer.take()] == [(19, "TOO_MANY_MESSAGES_A_SECOND")] * 2
    assert len(peer.handler.held) == 3
