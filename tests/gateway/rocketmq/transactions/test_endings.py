from __future__ import annotations

from functools import partial

import pytest

from gateway.rocketmq.transactions import service
from tests.support.full_engine import FullEngine
from tests.support.late_engine import make_late
from tests.support.rocketmq import request_frame, send_frame
from tests.support.rocketmq_door import DoorSite, bodies_of, records_of
from tests.support.rocketmq_transactions import (
    COMMIT,
    ROLLBACK,
    TIMEOUT_MS,
    beat,
    checks,
    end,
    end_ext,
    half,
    killed,
    send_half,
    settle,
    wait,
)

pytestmark = pytest.mark.at_once(reason="the append itself finds no room")


@pytest.fixture
def site(tmp_path):
    site = DoorSite(tmp_path / "d", make_engine=FullEngine)
    yield site
    site.close()


def done_records(site: DoorSite) -> list[bytes]:
    """Return the bodies of the records that say which half messages are done with."""
    offset = 0
    found = []
    batch = site.door.transactions._found
    queue = site.broker.find_queue(b"RMQ_SYS_TRANS_OP_HALF_TOPIC/0")
    while queue >= 0 and site.broker.read(queue, offset, batch, 64, 1 << 20) > 0:
        found += [bytes(batch.buf[batch.body_start[i] : batch.body_end[i]]) for i in range(batch.count)]
        offset = batch.next_offset
        batch.clear()
    return found


def test_what_is_done_with_is_said_as_official_brokers_say_it(site, peer):
    sent = [send_half(peer, key=f"k{n}") for n in range(3)]
    peer.give(b"".join(request_frame(37, flag=2, **end_ext(one)) for one in sent[:2]))
    settle(site)
    end(peer, sent[2], ROLLBACK)
    assert done_records(site) == [b"0,1,", b"2,"]


@pytest.mark.parametrize("lets_through", [0, 1, 2])
def test_a_full_disk_ends_what_it_has_room_for_and_the_rest_is_asked_about(site, peer, tmp_path, lets_through):
    """However many records fit: what was committed comes once, also after a kill, and the rest when it is asked for."""
    beat(peer, "p")
    sent = [send_half(peer, b"%d" % n, key=f"k{n}") for n in range(2)]
    peer.give(b"".join(request_frame(37, opaque=n, **end_ext(one)) for n, one in enumerate(sent)))
    site.engine.left = lets_through
    site.turn()
    site.engine.left = None
    settle(site)
    answers = {answer.opaque: answer.code for answer in peer.take()}
    assert [answers[n] == 0 for n in range(2)] == [n < lets_through for n in range(2)]
    assert bodies_of(peer.pull("T")) == [b"%d" % n for n in range(lets_through)] or not lets_through
    later = killed(tmp_path / "d", tmp_path / "e")
    later_peer = later.connect()
    beat(later_peer, "p")
    wait(later, TIMEOUT_MS)
    assert [check.ext["msgId"] for check in checks(later_peer)] == [f"k{n}" for n in range(lets_through, 2)]
    for one in sent:
        assert end(later_peer, one).code == 0
    assert sorted(bodies_of(later_peer.pull("T"))) == [b"0", b"1"]
    later.close()


def test_a_commit_that_is_too_large_for_its_topic_is_refused_and_harms_no_other(site, peer):
    queues = ",".join(f"%LMQ%q{number:05}" for number in range(2_600))
    large = send_half(peer, b"large", key="k0", INNER_MULTI_DISPATCH=queues)
    small = [send_half(peer, b"%d" % n, key=f"k{n}") for n in range(1, 4)]
    how = {1: COMMIT, 2: ROLLBACK, 3: COMMIT}
    frames = [request_frame(37, opaque=n, **end_ext(one, how[n])) for n, one in enumerate(small, 1)]
    frames.insert(1, request_frame(37, opaque=0, **end_ext(large)))
    peer.give(b"".join(frames))
    settle(site)
    assert {answer.opaque: answer.code for answer in peer.take()} in (
        {0: 13, 1: 0, 2: 0, 3: 0},
        {0: 0, 1: 0, 2: 0, 3: 0},
    )
    assert {b"1", b"3"} <= {record.body for record in records_of(peer.pull("T"))} <= {b"1", b"3", b"large"}


def test_a_commit_that_is_lost_is_answered_so_and_asked_about_until_it_is_not(tmp_path):
    site = DoorSite(tmp_path / "lost", make_engine=partial(make_late, away=0.0))
    peer = site.connect()
    beat(peer, "p")
    sent = send_half(peer)
    site.engine.failures = 1.0
    assert end(peer, sent).code != 0
    assert site.broker.metrics.transactions.commits == 0
    site.engine.failures = 0.0
    wait(site, TIMEOUT_MS)
    assert len(checks(peer)) == 1
    assert end(peer, sent).code == 0
    assert set(bodies_of(peer.pull("T"))) == {b"paid"}
    site.close()


def test_a_producer_that_is_gone_before_its_turn_has_ended_its_transaction(site, peer):
    sent = send_half(peer)
    peer.give(request_frame(37, opaque=3, **end_ext(sent)))
    peer.close()
    settle(site)
    assert bodies_of(site.connect().pull("T")) == [b"paid"]


def test_very_many_ends_at_once_are_done_over_several_turns_and_too_many_are_refused(site, peer, monkeypatch):
    monkeypatch.setattr(service, "WAITING_MAX", 300)
    keys = range(400)
    peer.give(b"".join(send_frame(b"%d" % key, opaque=key, properties=half(f"k{key}")) for key in keys))
    settle(site)
    sent = peer.take()
    peer.give(b"".join(request_frame(37, opaque=key, **end_ext(one)) for key, one in zip(keys, sent, strict=True)))
    settle(site)
    codes = [answer.code for answer in sorted(peer.take(), key=lambda answer: answer.opaque)]
    assert codes == [0] * 300 + [2] * 100
