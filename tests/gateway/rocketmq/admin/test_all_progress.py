from __future__ import annotations

from gateway.rocketmq.admin import all_progress, works
from lmq.remoting.commands import Command
from tests.support.rocketmq_tools import Stranger, ask_tool


def commit(peer, offset, group="g", topic="T"):
    assert peer.ask(15, consumerGroup=group, topic=topic, queueId=0, commitOffset=offset).code == 0


def test_all_groups_are_told_with_how_far_they_are(site, peer):
    for body in (b"1", b"2", b"3"):
        peer.send(body)
    peer.send(b"x", topic="U")
    commit(peer, 2)
    commit(peer, 1, group="h")
    commit(peer, 0, group="h", topic="U")
    body = bytes(ask_tool(peer, 317, isOrder="false").body)
    queue = b'{"brokerName":"lmq","queueId":0,"topic":"T"}'
    figures = b'{"brokerOffset":3,"consumerOffset":2,"lastTimestamp":%d,"pullOffset":2}' % site.now_ms
    assert body.startswith(b'{"consumeStatsList":[{"g":[{"offsetTable":{%b:%b' % (queue, figures))
    assert body.count(b'"topic":"T"') == 8
    assert body.count(b'"topic":"U"') == 4
    assert body.endswith(b'],"brokerAddr":"127.0.0.1:10911","totalDiff":4,"totalInflightDiff":0}')


def test_only_ordered_topics_are_told_where_those_are_asked_for(peer):
    peer.send(b"1")
    commit(peer, 1)
    assert b'"topic"' not in bytes(ask_tool(peer, 317, isOrder="true").body)


def test_a_broker_without_groups_says_so(peer):
    assert bytes(ask_tool(peer, 317, isOrder="false").body).startswith(b'{"consumeStatsList":[],')


def test_topics_that_a_client_may_not_read_are_left_out(site, peer):
    peer.send(b"1")
    commit(peer, 1)
    stranger, request = Stranger(), Command(317, ext={"isOrder": "false"})
    site.door.tools.ask(request, stranger, "h:1", site.now_ms)
    site.turn()
    assert b'"topic"' not in bytes(stranger.answers[0].body)


def test_an_answer_that_no_frame_takes_is_refused_before_it_grows(peer, monkeypatch):
    peer.send(b"1")
    for number in range(8):
        commit(peer, 1, group=f"g{number}")
    monkeypatch.setattr(all_progress, "BODY_BYTES_MAX", 600)
    monkeypatch.setattr(works, "BODY_BYTES_MAX", 600)
    answer = ask_tool(peer, 317, isOrder="false")
    assert (answer.code, answer.remark) == (1, "the answer has more than 600 bytes")
