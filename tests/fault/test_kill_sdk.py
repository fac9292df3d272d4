"""A process of the SDK's that is killed while it consumes: no message is lost, and no file is torn."""

from __future__ import annotations

import asyncio
import json
import sys

import pytest

from gateway.settings.models import AmqpSettings, MqttSettings
from lmq import OutMessage, Producer, PushConsumer
from tests.support.gateway import ANY_PORT, running_gateway

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]

COUNT = 400
CONSUMER = """
import asyncio, pathlib, sys
from lmq import PushConsumer, push_consumer

push_consumer.COMMIT_S = 0.01  # so that it is killed among commits
namesrv, folder = sys.argv[1], pathlib.Path(sys.argv[2])
broadcasting = sys.argv[3] == "all"

async def handle(messages, context):
    await asyncio.sleep(0.002)
    for message in messages:
        print(int(message.body), flush=True)

async def main():
    options = {"consume_from": "first", "broadcasting": broadcasting, "offsets_dir": folder, "concurrency": 4}
    async with PushConsumer(namesrv, "g", handle, client_id="killed", **options) as consumer:
        consumer.subscribe("T")
        await asyncio.Event().wait()

asyncio.run(main())
"""


async def consume_and_be_killed(namesrv, folder, way, after):
    """Return what a process consumed that is killed by -9 after so many messages."""
    command = (sys.executable, "-c", CONSUMER, namesrv, str(folder), way)
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    lines = [await process.stdout.readline() for _ in range(after)]
    process.kill()
    lines += (await process.stdout.read()).splitlines(keepends=True)
    await process.wait()
    return [int(line) for line in lines if line.endswith(b"\n")]


async def consume_the_rest(namesrv, folder, way, before, client_id="killed"):
    """Return what another process has of the rest, as soon as all was consumed."""
    heard, is_over = [], asyncio.Event()

    async def handle(messages, _context):
        heard.extend(int(message.body) for message in messages)
        if {*before, *heard} == set(range(COUNT)):
            is_over.set()

    options = {"consume_from": "last", "broadcasting": way == "all", "offsets_dir": folder}
    async with PushConsumer(namesrv, "g", handle, client_id=client_id, **options) as consumer:
        consumer.subscribe("T")
        async with asyncio.timeout(20):
            await is_over.wait()
    return heard


@pytest.mark.parametrize("way", ["shared", "all"])
async def test_what_a_killed_consumer_had_not_done_comes_to_the_next(tmp_path, way):
    doors = {"mqtt": MqttSettings(listen=ANY_PORT), "amqp": AmqpSettings(listen="off")}
    async with running_gateway(tmp_path / "data", **doors) as gateway:
        namesrv = "{}:{}".format(*gateway.listening["namesrv"])
        async with Producer(namesrv) as producer:
            await producer.send_many([OutMessage("T", b"%d" % i, queue_id=i % 4) for i in range(COUNT)])
        had: set[int] = set()
        for after in (30, 60):
            had |= set(await consume_and_be_killed(namesrv, tmp_path / "offsets", way, after))
        assert len(had) < COUNT
        if way == "all":
            kept = json.loads((tmp_path / "offsets" / "killed" / "g" / "offsets.json").read_text())["offsets"]
            assert {row["topic"] for row in kept} == {"T"}
            for row in kept:  # nothing that was not done is passed
                passed = {4 * offset + row["queue_id"] for offset in range(row["offset"])}
                assert passed <= had
        rest = await consume_the_rest(namesrv, tmp_path / "offsets", way, had)
    assert had | set(rest) == set(range(COUNT))
    assert len(rest) < COUNT  # it did not begin anew
