"""A RocketMQ load of push consumers, the SDK's or Java's: a listener of each of some groups is given all messages."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from lmq import ConsumeContext, Message, PushConsumer
from tests.benchmarks.scenarios.load import Count, Probe, Result, measure, no_probe
from tests.benchmarks.scenarios.peers import FETCHED
from tests.benchmarks.scenarios.rocketmq_load import TOPIC, fill

BATCH = 32  # messages that a pull asks for, and that the listener is given at a time
START_S_MAX = 120.0  # until all groups have begun: Java compiles its program first
JARS = FETCHED / "rocketmq" / "lib"
PROGRAM = Path(__file__).with_name("PushLoad.java")


def why_no_java() -> str:
    """Return why Java's consumers cannot run here; nothing where they can."""
    if shutil.which("java") is None:
        return "there is no java"
    return "" if list(JARS.glob("rocketmq-client-*.jar")) else "the client's jars are not there (make bench-peers)"


async def run_push(
    host: str,
    port: int,
    *,
    namesrv_port: int,
    secs: float,
    groups: int = 4,
    stored: int = 50_000,
    payload_bytes: int = 1_024,
    warm_s: float = 0.5,
    probe: Probe = no_probe,
) -> Result:
    """Store `stored` messages, then have each group consume them; what counts is what listeners were given."""
    await fill(host, port, stored, payload_bytes)
    count = Count()
    begun: set[str] = set()

    def listener(group: str):  # type: ignore[no-untyped-def]
        async def listen(messages: list[Message], _context: ConsumeContext) -> None:
            begun.add(group)
            count.received += len(messages)

        return listen

    async with AsyncExitStack() as stack:
        for number in range(groups):
            consumer = PushConsumer(
                f"{host}:{namesrv_port}", f"bench{number}", listener(f"bench{number}"), consume_from="first",
                consume_batch_size=BATCH, pull_batch_size=BATCH, stop_s=1,
            )  # fmt: skip
            consumer.subscribe(TOPIC)
            await stack.enter_async_context(consumer)
        async with asyncio.timeout(START_S_MAX):
            while len(begun) < groups:
                await asyncio.sleep(0.01)
        return await measure(count, secs, warm_s=warm_s, probe=probe)


async def run_push_java(
    host: str,
    port: int,
    *,
    namesrv_port: int,
    secs: float,
    groups: int = 4,
    stored: int = 50_000,
    payload_bytes: int = 1_024,
    warm_s: float = 0.5,
    probe: Probe = no_probe,
) -> Result:
    """Do as `run_push` with consumers of the official Java client, in a process of their own."""
    await fill(host, port, stored, payload_bytes)
    count, has_begun = Count(), asyncio.Event()
    async with consumers_of_java(f"{host}:{namesrv_port}", groups) as lines:

        async def follow() -> None:
            async for line in lines:
                if line.startswith(b"received "):
                    each = [int(number) for number in line.split()[1:]]
                    count.received = sum(each)
                    if all(each):
                        has_begun.set()

        following = asyncio.create_task(follow())
        try:
            async with asyncio.timeout(START_S_MAX):
                await has_begun.wait()
            return await measure(count, secs, warm_s=warm_s, probe=probe)
        finally:
            following.cancel()


@asynccontextmanager
async def consumers_of_java(namesrv: str, groups: int) -> AsyncIterator[asyncio.StreamReader]:
    """Run the Java program; give what it prints, and end it."""
    command = ["java", "-cp", f"{JARS}/*", str(PROGRAM), namesrv, TOPIC, str(groups)]
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    assert process.stdout is not None
    try:
        yield process.stdout
    finally:
        process.kill()
        await process.wait()
