from __future__ import annotations

import json

import pytest

from lmq.queue_locks import QueueLocks
from lmq.queues import MessageQueue
from lmq.remoting.commands import Command, answer, encode_json
from lmq.routes import Routes
from tests.support.scripted_broker import routes_to, serve_topics

pytestmark = pytest.mark.asyncio
FIRST, SECOND = MessageQueue("T", "b", 0), MessageQueue("T", "b", 1)


async def test_a_queue_is_one_member_s_until_it_is_given_back(namesrv):
    queue = MessageQueue("TBW102", "lmq", 0)
    routes = Routes(namesrv, timeout_s=3, greeting=lambda: Command(34, body=b"{}"))
    one, other = QueueLocks(routes, "g", "one"), QueueLocks(routes, "g", "other")
    assert await one.lock([queue]) == {queue: True}
    assert await other.lock([queue]) == {queue: False}
    assert await one.lock([queue]) == {queue: True}
    await one.unlock([queue])
    assert await other.lock([queue]) == {queue: True}
    await routes.close()


async def test_what_is_asked_for_names_member_and_queues(server):
    serve_topics(server)
    held = [{"topic": "T", "brokerName": "b", "queueId": 1}]
    server.on[41] = lambda request: answer(request, 0, body=encode_json({"lockOKMQSet": held}))
    assert await QueueLocks(routes_to(server), "g", "me").lock([FIRST, SECOND]) == {FIRST: False, SECOND: True}
    said = json.loads(bytes(server.requests[-1].body))
    assert (said["consumerGroup"], said["clientId"], len(said["mqSet"])) == ("g", "me", 2)


@pytest.mark.parametrize("body", [b"", b"{}", b'{"lockOKMQSet": null}', b'{"lockOKMQSet": [5]}', b"[]"])
async def test_an_answer_that_cannot_be_read_locks_nothing(server, body):
    serve_topics(server)
    server.on[41] = lambda request: answer(request, 0, body=body)
    assert await QueueLocks(routes_to(server), "g", "me").lock([FIRST]) == {FIRST: False}


async def test_of_a_broker_that_does_not_answer_nothing_is_said(server):
    serve_topics(server)
    server.on[41] = server.on[42] = lambda request: server.drop_all()
    locks = QueueLocks(routes_to(server), "g", "me")
    assert await locks.lock([FIRST]) == {}
    await locks.unlock([FIRST])
