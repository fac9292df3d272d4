"""A publisher and a subscriber in a process of their own: what they feel while the gateway has something else to do."""

from __future__ import annotations

import asyncio
from multiprocessing.synchronize import Event

import uvloop

from tests.benchmarks.scenarios.load import Count, drain
from tests.benchmarks.scenarios.mqtt_latency_load import PacedPublisher, StampReader
from tests.benchmarks.scenarios.mqtt_load import connect, publish_packet

HOST = "127.0.0.1"
TOPIC = "live/a/b"
BODY_BYTES = 64
START_S_MAX = 60.0  # until a process of its own has started and its first message has come


class Witness(StampReader):
    """Keeps when each message was sent, and its age."""

    def __init__(self, count: Count, packet: bytes, qos: int) -> None:
        id_at = packet.index(TOPIC.encode()) + len(TOPIC)
        super().__init__("witness", count, [TOPIC], qos, len(packet), id_at)
        self.ages: list[tuple[int, int]] = []

    def note(self, sent_ns: int, now_ns: int) -> None:
        self.ages.append((sent_ns, now_ns - sent_ns))


def watch(port: int, qos: int, rate: int, is_live: Event, is_over: Event) -> tuple[list[tuple[int, int]], int]:
    """Publish `rate` messages a second until `is_over`; return each message's moment and age, and how many are missing.

    `is_live` is set as soon as the first has come.
    """
    return uvloop.run(_watch(port, qos, rate, is_live, is_over))


async def _watch(port: int, qos: int, rate: int, is_live: Event, is_over: Event) -> tuple[list[tuple[int, int]], int]:
    count = Count()
    packet = publish_packet(TOPIC, bytes(BODY_BYTES), 1 if qos else None)
    reader = await connect(HOST, port, Witness(count, packet, qos))
    publisher = await connect(HOST, port, PacedPublisher("live", count))
    publisher.configure(rate, BODY_BYTES, qos, TOPIC)
    publisher.start()
    while not is_over.is_set():
        await asyncio.sleep(0.05)
        if count.received:
            is_live.set()
    publisher.stop()
    if qos:
        await drain(count, lambda: count.received >= count.sent)
    else:
        await asyncio.sleep(0.2)
    return reader.ages, count.sent - count.received
