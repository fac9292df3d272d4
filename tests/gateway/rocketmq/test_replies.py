from __future__ import annotations

import json

import pytest

from core.properties import decode_properties
from gateway.rocketmq.calls import CALL_MS
from gateway.rocketmq.door import CALLS_INTERVAL_MS
from lmq.remoting.commands import FLAG_ONE_WAY, Command, answer, encode_command
from tests.support.rocketmq import request_frame, send_ext
from tests.support.rocketmq_door import records_of

PLACE = "DefaultCluster_REPLY_TOPIC"
FOR_ASKER = "REPLY_TO_CLIENT\x01asker\x02CORRELATION_ID\x017\x02MSG_TYPE\x01reply\x02"


@pytest.fixture
def asker(site):
    peer = site.connect()
    peer.ask(34, json.dumps({"clientID": "asker", "producerDataSet": [{"groupName": "p"}]}).encode())
    return peer


def start_reply(peer, body=b"yes", properties=FOR_ASKER, *, code=325, flag=0, **changes):
    """Send a reply without looking for its answer."""
    ext = send_ext(PLACE, properties, **changes)
    peer.give(request_frame(code, body, opaque=9, flag=flag, **ext))
    peer.site.turn()


def take_push(asker):
    (push,) = asker.take()
    return push


def accept(asker, push, code=0):
    asker.give(encode_command(answer(push, code)))


def test_a_request_says_where_its_reply_goes(peer):
    peer.send(b"?", properties="REPLY_TO_CLIENT\x01asker\x02CORRELATION_ID\x017\x02TTL\x013000\x02")
    peer.send(b"plain")
    request, plain = records_of(peer.pull("T"))
    assert request.properties[b"CLUSTER"] == b"DefaultCluster"
    assert request.properties[b"REPLY_TO_CLIENT"] == b"asker"
    assert b"CLUSTER" not in plain.properties
    assert peer.ask(105, topic=PLACE).code == 0


@pytest.mark.parametrize("code", [324, 325])
def test_a_reply_is_stored_and_pushed_to_the_client_that_asked(peer, asker, code):
    ext = send_ext(PLACE, FOR_ASKER, h="5", e="-1")
    if code == 324:
        ext = {name: ext[letter] for letter, name in LONG.items()}
    peer.give(encode_command(Command(code, 9, ext=ext, body=b"yes")))
    peer.site.turn()
    assert peer.take() == []  # before the client has it
    push = take_push(asker)
    assert (push.code, bytes(push.body), push.is_one_way) == (326, b"yes", False)
    said = push.ext
    assert (said["topic"], said["queueId"], said["flag"], said["producerGroup"]) == (PLACE, "0", "5", "group")
    assert said["bornHost"] == peer.transport.peer
    assert said["storeHost"].count(":") == 1
    assert int(said["storeTimestamp"]) == peer.site.now_ms
    properties = decode_properties(said["properties"].encode())
    assert properties[b"CORRELATION_ID"] == b"7"
    assert int(properties[b"PUSH_REPLY_TIME"]) == peer.site.now_ms
    accept(asker, push)
    (answered,) = peer.take()
    assert (answered.code, answered.opaque, answered.ext["queueOffset"]) == (0, 9, "0")
    (record,) = records_of(peer.pull(PLACE))
    assert (record.body, record.properties[b"CORRELATION_ID"]) == (b"yes", b"7")


LONG = {
    "a": "producerGroup", "b": "topic", "c": "defaultTopic", "d": "defaultTopicQueueNums", "e": "queueId",
    "f": "sysFlag", "g": "bornTimestamp", "h": "flag", "i": "properties", "j": "reconsumeTimes", "k": "unitMode",
}  # fmt: skip


@pytest.mark.parametrize(
    ("properties", "remark"),
    [
        ("REPLY_TO_CLIENT\x01nobody\x02", "push reply message fail, channel of <nobody> not found."),
        ("CORRELATION_ID\x017\x02", "reply message properties[REPLY_TO_CLIENT] is null"),
        ("", "reply message properties[REPLY_TO_CLIENT] is null"),
    ],
)
def test_a_reply_to_nobody_is_refused_and_not_stored(peer, properties, remark):
    start_reply(peer, properties=properties)
    (refused,) = peer.take()
    assert (refused.code, refused.remark) == (1, remark)
    assert peer.pull(PLACE).code == 19


def test_a_reply_to_a_client_that_left_or_does_not_take_it_fails(site, peer, asker):
    start_reply(peer)
    accept(asker, take_push(asker), code=1)
    (failed,) = peer.take()
    assert (failed.code, failed.remark) == (1, "push reply message to askerfail.")
    start_reply(peer)
    asker.close()
    (failed,) = peer.take()
    assert failed.code == 1
    start_reply(peer)
    (failed,) = peer.take()
    assert failed.remark == "push reply message fail, channel of <asker> not found."


def test_a_client_that_does_not_answer_is_given_up(site, peer, asker):
    start_reply(peer)
    push = take_push(asker)
    expire = next(one.work for one in site.door.intervals() if one.interval_ms == CALLS_INTERVAL_MS)
    expire(site.now_ms + CALL_MS - 1)
    assert peer.take() == []
    expire(site.now_ms + CALL_MS)
    assert [failed.code for failed in peer.take()] == [1]
    accept(asker, push)  # too late, and let go
    assert peer.take() == []


def test_a_one_way_reply_is_pushed_and_not_answered(peer, asker):
    start_reply(peer, flag=FLAG_ONE_WAY)
    accept(asker, take_push(asker))
    assert peer.take() == []


def test_a_reply_that_cannot_be_stored_is_not_pushed(site, peer, asker):
    start_reply(peer, properties=FOR_ASKER + "TRAN_MSG\x01true\x02")
    (refused,) = peer.take()
    assert refused.code == 13
    start_reply(peer, m="true")
    (refused,) = peer.take()
    assert refused.code == 13
    assert asker.take() == []


def test_the_client_that_named_itself_last_gets_the_reply(site, peer, asker):
    second = site.connect()
    second.ask(34, b'{"clientID":"asker"}')
    start_reply(peer)
    assert take_push(second).code == 326
    asker.close()
    second.close()
    start_reply(peer)
    assert {refused.code for refused in peer.take()} == {1}
