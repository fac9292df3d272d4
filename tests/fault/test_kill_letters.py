"""Dead letters of a RocketMQ group that are sent back while the gateway is killed with -9: none is lost."""

from __future__ import annotations

import asyncio
import contextlib
import threading

import httpx
import pytest

from gateway.admin.ours.letters_back import BATCH_COUNT
from lmq import OutMessage, Producer
from tests.support.gateway import DOORS, GatewayProcess

pytestmark = pytest.mark.slow

COUNT = 1_500
KILLS = 2
A_KILL = 300  # letters that are sent back before it, at least
WANTED = {"door": "rocketmq", "source": "%DLQ%g", "count": 10_000}


async def _bury(gateway):
    async with Producer("{}:{}".format(*gateway.address("namesrv"))) as producer:
        await producer.send_many([OutMessage("%DLQ%g", b"%d" % i, queue_id=0) for i in range(COUNT)])


def _client(gateway):
    return httpx.Client(
        base_url="http://{}:{}/api/lmq".format(*gateway.address("admin")), auth=("guest", "guest"), timeout=60
    )


def _waiting(client):
    (one,) = client.get("/dead-letters").json()
    return one["messages"]


def _move(gateway):
    with _client(gateway) as client, contextlib.suppress(httpx.HTTPError):  # it is killed meanwhile
        client.post("/move", json=WANTED)


def _read(client, queue):
    bodies, offset = [], 0
    while found := client.get("/messages", params={"queue": queue, "offset": offset, "count": 200}).json()["items"]:
        bodies += [int(item["body"]) for item in found]
        offset = found[-1]["offset"] + 1
    return bodies


def test_letters_that_are_sent_back_over_kills_are_there_at_least_once(tmp_path):
    with GatewayProcess(tmp_path / "data", doors=DOORS) as gateway:
        asyncio.run(_bury(gateway))
        for _ in range(KILLS):
            with _client(gateway) as client:
                until = _waiting(client) - A_KILL
                mover = threading.Thread(target=_move, args=(gateway,))
                mover.start()
                while _waiting(client) > until:
                    pass
                gateway.kill()
                mover.join()
            gateway.start()
        with _client(gateway) as client:
            client.post("/move", json=WANTED).raise_for_status()
            assert _waiting(client) == 0
            bodies = _read(client, "%RETRY%g/0")
    assert set(bodies) == set(range(COUNT))
    assert len(bodies) - COUNT <= KILLS * BATCH_COUNT  # sent again: what was stored, but not counted as sent back
