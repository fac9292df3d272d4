from __future__ import annotations

from datetime import UTC, datetime

import pytest

from lmq.queue_access import RETRY_MAX_S, QueueAccess, pause_after
from lmq.queues import MessageQueue
from lmq.remoting.commands import Command, answer, encode_json
from lmq.routes import Routes

QUEUE = MessageQueue("T", "b", 1)


@pytest.fixture
def access(server):
    """Access by a name server and broker in one, whose offsets the test scripts."""
    broker = {"brokerAddrs": {"0": server.address}, "brokerName": "b", "cluster": "c"}
    queues = {"brokerName": "b", "readQueueNums": 2, "writeQueueNums": 2, "perm": 6}
    route = {"brokerDatas": [broker], "queueDatas": [queues]}
    server.on[105] = lambda request: answer(request, 0, body=encode_json(route))
    for code, offset in ((14, 5), (30, 9), (31, 2), (29, 7)):
        server.on[code] = lambda request, offset=offset: answer(request, 0, ext={"offset": str(offset)})
    return QueueAccess(Routes(server.address, timeout_s=1, greeting=lambda: Command(34)), "g", 1)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("from_", "offset"),
    [("committed", 5), ("last", 9), ("first", 2), (4, 4), (datetime(2030, 1, 1, tzinfo=UTC), 7)],
)
async def test_a_start_is_an_offset(access, from_, offset):
    assert await access.start_of(QUEUE, from_) == offset


@pytest.mark.asyncio
@pytest.mark.parametrize(("otherwise", "offset"), [("first", 2), ("last", 9)])
async def test_a_group_that_never_committed_begins_where_the_caller_says(server, access, otherwise, offset):
    server.on[14] = lambda request: answer(request, 22)
    assert await access.start_of(QUEUE, "committed", otherwise) == offset


@pytest.mark.asyncio
async def test_the_queue_s_own_broker_is_asked(server, access):
    await access.max_offset(QUEUE)
    asked = server.requests[-1].ext
    assert (asked["topic"], asked["queueId"], asked["bname"]) == ("T", "1", "b")


@pytest.mark.asyncio
async def test_what_was_asked_on_a_connection_that_is_lost_is_asked_once_more(server, access):
    def lose_the_first(request):
        if server.codes().count(30) > 1:
            return answer(request, 0, ext={"offset": "9"})
        server.drop_all()
        return None

    server.on[30] = lose_the_first
    assert await access.max_offset(QUEUE) == 9


def test_pauses_grow_to_a_bound():
    pauses = [pause_after(failures) for failures in range(1, 20)]
    assert pauses == sorted(pauses)
    assert pauses[-1] == RETRY_MAX_S
