from __future__ import annotations

import pytest

from core.pop.endings import Ending
from gateway.rocketmq.moved_places import commit_by, note_moved
from tests.support.rocketmq_door import DoorSite

KEY = b"T/0"


@pytest.fixture
def broker(tmp_path):
    site = DoorSite(tmp_path / "d")
    yield site.broker
    site.close()


def _found(broker, offset, group=b"g"):
    found = broker.lasting_endings.find(KEY, group, offset)
    return found and found.reason


def test_of_what_is_before_the_first_offset_that_a_group_commits_it_is_noted_that_its_beginning_is_not_known(broker):
    broker.consumer_offsets.commit(b"g", KEY, 5)
    broker.consumer_offsets.commit(b"g", KEY, 9)
    assert [_found(broker, offset) for offset in (0, 4, 5, 8)] == ["began_unknown", "began_unknown", None, None]
    broker.consumer_offsets.commit(b"CID_RMQ_SYS_TRANS", KEY, 5)
    assert _found(broker, 0, b"CID_RMQ_SYS_TRANS") is None
    broker.consumer_offsets.commit(b"h", KEY, 5, has_begun=True)
    assert _found(broker, 0, b"h") is None


def test_member_that_says_how_far_a_group_is_acknowledged_what_is_before(tmp_path):
    site = DoorSite(tmp_path / "d")
    peer, broker = site.connect(), site.broker
    for _ in range(4):
        assert peer.send(b"x", topic="T", e="0").code == 0
    broker.open_queue(broker.find_queue(KEY), lambda error: None)
    site.turn()
    for offset, member in ((1, b"one"), (2, b"two"), (9, b"one"), (3, b"two")):
        commit_by(broker, b"g", KEY, offset, member)
    found = [broker.pop.acknowledgers.find((KEY, b"g"), offset) for offset in range(5)]
    assert found == [b"", b"two", b"one", b"one", b""]  # of what is before the first one nothing is known
    assert broker.consumer_offsets.get(b"g", KEY) == 3
    site.close()


def test_what_a_group_passes_over_when_it_is_sent_on_is_noted_and_forgotten_when_it_is_sent_back(broker):
    note_moved(broker, b"g", KEY, 3, 1_000)
    broker.consumer_offsets.commit(b"g", KEY, 3, has_begun=True)
    assert [_found(broker, offset) for offset in (2, 3)] == ["began_behind", None]
    note_moved(broker, b"g", KEY, 7, 2_000)
    broker.consumer_offsets.commit(b"g", KEY, 7)
    assert broker.lasting_endings.find(KEY, b"g", 6) == Ending("passed_over", 2_000, 2_000)
    note_moved(broker, b"g", KEY, 5, 3_000)
    assert [_found(broker, offset) for offset in (2, 4, 5, 6)] == ["began_behind", "passed_over", None, None]
