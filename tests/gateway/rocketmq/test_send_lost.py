"""Messages that the engine took and lost: the outcome is their publisher's only."""

from __future__ import annotations

from functools import partial

import pytest

from lmq.remoting.response_codes import ResponseCode
from tests.support.late_engine import make_late
from tests.support.rocketmq import send_frame
from tests.support.rocketmq_door import DoorSite, bodies_of


@pytest.fixture
def make(tmp_path):
    sites = []

    def make(**options):
        sites.append(DoorSite(tmp_path, make_engine=partial(make_late, away=0.0, **options)))
        return sites[-1]

    yield make
    for site in sites:
        site.close()


def test_a_send_that_is_lost_is_answered_that_it_is(make):
    site = make(failures=1.0)
    peer = site.connect()
    answer = peer.send(b"x", topic="T")
    assert answer.code == ResponseCode.SERVICE_NOT_AVAILABLE
    assert "gone" in answer.remark
    assert site.broker.metrics.door("rocketmq").refused["not_stored"] == 1


def test_each_send_has_its_own_outcome(make):
    site = make(failures=0.5, seed=2)
    peer = site.connect()
    for number in range(1, 41):
        peer.give(send_frame(b"x", topic="T", opaque=number))
    site.turn()
    answers = peer.take()
    assert sorted(answer.opaque for answer in answers) == list(range(1, 41))
    assert sum(answer.code != ResponseCode.SUCCESS for answer in answers) == site.engine.failed > 0


def test_a_delayed_message_that_is_lost_when_it_is_due_is_handed_on_again(make):
    site = make()
    peer = site.connect()
    peer.send(b"later", topic="T", properties="DELAY\x011\x02")
    site.engine.failures = 1.0
    site.now_ms += 1_001
    site.turn()
    assert site.engine.failed > 0
    site.engine.failures = 0.0
    site.turn()
    assert set(bodies_of(peer.pull("T"))) == {b"later"}
    site.turn()
    assert site.broker.consumer_offsets.get(b"CID_RMQ_SYS_SCHEDULE", b"SCHEDULE_TOPIC_XXXX/0") == 1
