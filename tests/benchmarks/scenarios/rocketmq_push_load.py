"""A RocketMQ load of push consumers, the SDK's own: each of several groups has all messages given to a listener."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from lmq import ConsumeContext, Message, PushConsumer
from tests.benchmarks.scenarios.load import Count, Probe, Result, drain, measure, no_probe
from tests.benchmarks.scenarios.rocketmq_load import TOPIC, Asker, max_offset, open_peer, open_producers

BATCH = 32  # messages that a pull asks for, and that the listener is given at a time
START_S_MAX = 30.0  # until all groups have begun


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
    count, filled = Count(), Count()
    producers = await open_producers(host, port, filled, 8, 64, b"x" * payload_bytes)
    asker = await open_peer(host, port, Asker(Count()))
    for producer in producers:
        producer.start()
    while await max_offset(asker, TOPIC) < stored:
        await asyncio.sleep(0.05)
    for producer in producers:
        producer.is_running = False
    await drain(filled, lambda: filled.acked >= filled.sent)
    for peer in (*producers, asker):
        peer.transport.abort()
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
