from __future__ import annotations

from gateway.rocketmq.letters import Waiting
from lmq.remoting.response_codes import ResponseCode
from tests.gateway.rocketmq.test_send_back import offset_of, send_back
from tests.support.rocketmq_door import DoorSite


def kill(peer, *bodies):
    for body in bodies:
        send_back(peer, offset_of(peer.send(body)), -1)


def places(waiting):
    return None if waiting is None else (waiting.first, waiting.end)


def test_letters_wait_until_they_were_sent_back(site, peer):
    letters = site.door.letters
    assert letters.find(b"%DLQ%g") is None
    kill(peer, b"1", b"2", b"3")
    site.open_queues()
    assert places(letters.find(b"%DLQ%g")) == (0, 3)
    letters.note_sent(b"%DLQ%g", 2)
    kill(peer, b"4")
    assert places(letters.find(b"%DLQ%g")) == (2, 4)
    assert letters.find(b"T") is None


def test_how_far_letters_were_sent_back_outlives_a_restart(tmp_path, engine_maker):
    site = DoorSite(tmp_path / "data", make_engine=engine_maker)
    kill(site.connect(), b"1", b"2")
    site.door.letters.note_sent(b"%DLQ%g", 1)
    site.settle()
    site.close()
    site = DoorSite(tmp_path / "data", make_engine=engine_maker)
    assert places(site.door.letters.find(b"%DLQ%g")) == (1, 2)
    site.close()


def test_no_client_says_how_far_letters_were_sent_back(site, peer):
    kill(peer, b"1", b"2")
    commit = {"topic": "%DLQ%g", "queueId": 0, "commitOffset": 2**40}
    own = "CID_RMQ_SYS_LETTERS"
    assert peer.ask(15, consumerGroup=own, **commit).code == ResponseCode.NO_PERMISSION
    with_commit = {"consumerGroup": own, "sysFlag": 0x4 | 0x1, "commitOffset": 2**40}
    assert peer.pull("%DLQ%g", **with_commit).code == ResponseCode.NO_PERMISSION
    assert peer.ask(15, consumerGroup="others", **commit).code == ResponseCode.SUCCESS
    site.open_queues()
    assert places(site.door.letters.find(b"%DLQ%g")) == (0, 2)


def test_a_topic_that_nothing_came_to_has_no_letters(site):
    site.door.topics.open_dead(b"g")
    assert site.door.letters.find(b"%DLQ%g") == Waiting(b"%DLQ%g/0", -1, 0, 0)
