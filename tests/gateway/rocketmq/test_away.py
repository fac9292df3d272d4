"""Reads that find nothing there yet, because the messages are on their way from where they are kept."""

from __future__ import annotations

from functools import partial

import pytest

from lmq.remoting.response_codes import ResponseCode
from tests.support.late_engine import make_late
from tests.support.rocketmq_door import SUBSCRIBED, SUSPENDED, DoorSite, bodies_of


@pytest.fixture
def site(tmp_path):
    site = DoorSite(tmp_path, make_engine=partial(make_late, away=1.0))
    yield site
    site.close()


def test_a_pull_that_waits_is_answered_when_the_messages_are_here(site):
    peer = site.connect()
    peer.send(b"x", topic="T")
    peer.start_pull("T", sysFlag=SUBSCRIBED | SUSPENDED)
    assert peer.take() == []
    site.turn()
    (answer,) = peer.take()
    assert answer.code == ResponseCode.SUCCESS
    assert bodies_of(answer) == [b"x"]


def test_a_pull_that_does_not_wait_is_told_to_come_again(site):
    peer = site.connect()
    peer.send(b"x", topic="T")
    assert peer.pull("T").code == ResponseCode.PULL_RETRY_IMMEDIATELY
    site.turn()
    assert bodies_of(peer.pull("T")) == [b"x"]


def test_a_delayed_message_that_is_on_its_way_when_it_is_due_comes_and_comes_once(site):
    peer = site.connect()
    peer.send(b"later", topic="T", properties="DELAY\x011\x02")
    site.now_ms += 1_001
    for _ in range(8):
        site.turn()
    peer.pull("T")
    site.turn()
    assert bodies_of(peer.pull("T")) == [b"later"]
