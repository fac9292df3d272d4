from __future__ import annotations

import pytest

from gateway.rocketmq.send_pace import TOO_FAST
from gateway.settings.models import RocketmqSettings
from lmq.remoting.message_codec import BatchItem, encode_batch
from tests.support.rocketmq import send_frame
from tests.support.rocketmq_door import DoorSite, bodies_of


@pytest.fixture
def site(tmp_path, engine_maker):
    site = DoorSite(tmp_path / "d", RocketmqSettings(messages_rate=10, bytes_rate=1_000), make_engine=engine_maker)
    yield site
    site.close()


def codes(site, peer, frames):
    """Return the codes of the answers to sends that arrive together."""
    peer.give(b"".join(frames))
    site.turn()
    return {answer.opaque: answer.code for answer in peer.take()}


def test_what_comes_too_fast_is_refused_until_the_rate_has_room_again(site):
    peer = site.connect()
    found = codes(site, peer, [send_frame(b"%d" % i, opaque=i, e="0") for i in range(25)])
    assert found == {i: 0 if i < 10 else 2 for i in range(25)}
    assert peer.send(e="0").remark == TOO_FAST
    assert len(bodies_of(peer.pull("T"))) == 10  # readers are not refused
    site.now_ms += 1_000
    assert peer.send(b"later", e="0").code == 0
    assert site.connect().send(e="0").code == 0  # of another connection


def test_bytes_count_too_and_one_way_sends_are_dropped_and_counted(site):
    peer = site.connect()
    assert peer.send(b"x" * 3_000).code == 0
    assert codes(site, peer, [send_frame(opaque=1), send_frame(opaque=2, flag=2)]) == {1: 2}
    metrics = site.door.metrics
    assert (metrics.refused["too_fast"], metrics.dropped["too_fast"]) == (1, 1)
    site.now_ms += 1_500
    assert peer.send().code == 2
    site.now_ms += 1_000
    assert peer.send().code == 0


def test_batches_count_by_their_messages(site):
    peer = site.connect()
    batch = encode_batch([BatchItem(0, b"x", b"")] * 12)
    assert peer.send(batch, m="true").code == 0
    assert peer.send(batch, m="true").code == 2
    assert peer.send().code == 2
    site.now_ms += 1_300
    assert peer.send(batch, m="true").code == 0
