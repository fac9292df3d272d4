from __future__ import annotations

import pytest

from lmq import NotFoundError, ResponseError, SdkError
from lmq.allocation import allocate_averagely
from lmq.assignment import Assignment
from lmq.queues import MessageQueue
from lmq.remoting.commands import answer, encode_json
from tests.support.scripted_broker import routes_to, serve_topics

pytestmark = pytest.mark.asyncio
FIRST, SECOND = MessageQueue("T", "b", 0), MessageQueue("T", "b", 1)


@pytest.fixture
def assignment(server):
    serve_topics(server)
    return Assignment(routes_to(server), "g", "me", allocate_averagely)


def members_are(server, *members):
    server.on[38] = lambda request: answer(request, 0, body=encode_json({"consumerIdList": members}))


async def test_a_member_has_its_share(server, assignment):
    members_are(server, "you", "me")
    assert await assignment.share_of("T") == [FIRST]
    members_are(server, "me")
    assert await assignment.share_of("T") == [FIRST, SECOND]


async def test_a_member_that_no_broker_knows_yet_has_no_share_to_speak_of(server, assignment):
    members_are(server, "you")
    assert await assignment.share_of("T") is None


async def test_in_a_broadcast_each_has_all(server):
    serve_topics(server)
    assert await Assignment(routes_to(server), "g", "me", None).share_of("T") == [FIRST, SECOND]
    assert 38 not in server.codes()


async def test_queues_that_a_topic_got_later_are_new(server, assignment):
    members_are(server, "me")
    assignment.note_missing("Later")
    await assignment.share_of("T")
    await assignment.share_of("Later")
    assert not assignment.is_new(FIRST)
    assert assignment.is_new(MessageQueue("T", "b", 2))
    assert assignment.is_new(MessageQueue("Later", "b", 0))


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"consumerIdList": 5}'])
async def test_an_answer_that_cannot_be_read_is_an_error(server, assignment, body):
    server.on[38] = lambda request: answer(request, 0, body=body)
    with pytest.raises(SdkError, match="cannot be read"):
        await assignment.share_of("T")


async def test_refusals_are_errors(server, assignment):
    server.on[38] = lambda request: answer(request, 1, "no consumer for this group, g")
    with pytest.raises(ResponseError, match="no consumer"):
        await assignment.share_of("T")
    server.on[105] = lambda request: answer(request, 17, "no topic")
    with pytest.raises(NotFoundError):
        await assignment.share_of("Unknown")
