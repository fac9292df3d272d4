"""A RocketMQ load of timed messages, beside many that wait for hours: how many come in, and how late they go out."""

from __future__ import annotations

import asyncio
import time

from lmq.remoting.commands import HEADER_JSON, decode_header
from lmq.remoting.message_codec import decode_records
from tests.benchmarks.scenarios.load import Count, Probe, Result, drain, measure, no_probe
from tests.benchmarks.scenarios.mqtt_latency_load import percentile
from tests.benchmarks.scenarios.rocketmq_load import (
    FRAME_HEAD,
    TOPIC,
    Asker,
    Producer,
    max_offset,
    open_peer,
    open_producers,
    pull_frame,
    send_frame,
)

HOUR_MS = 3_600_000
WAIT_HOURS = 23  # over which those that wait are spread, from an hour on
SOON_MS = 2_000  # after which those are due that are measured
FILL_S_MAX = 240.0  # a broker that is slow has fewer waiting, which `pending` tells
BEHIND_S_MAX = 30.0  # how long what is late is waited for
STILL_S = 3.0
PULL_COUNT = 32
NAME = "TIMER_DELIVER_MS\x01"
NEVER_MS = 10**12  # 13 digits, as all moments of these centuries have


class TimedProducer(Producer):
    """Keeps `window` sends in flight, each due `delay_ms` after it is sent, or with `spread_ms` up to that later."""

    def configure_moments(self, window: int, body: bytes, delay_ms: int, spread_ms: int) -> None:
        """Cut the frame at its moment."""
        frame = send_frame(1_000, body, f"{NAME}{NEVER_MS}\x02")
        at = frame.index(b"%d" % NEVER_MS)
        self.head, self.rest = frame[:at], frame[at + 13 :]
        self.window, self.delay_ms, self.spread_ms, self.refused_in_all, self.made = window, delay_ms, spread_ms, 0, 0

    def send(self, count: int) -> None:
        due_ms = time.time_ns() // 1_000_000 + self.delay_ms
        pieces = []
        for _ in range(count):
            self.made += 1
            later_ms = self.made * 7_919_000 % self.spread_ms if self.spread_ms else 0  # a prime number of seconds
            pieces.append(b"%b%d%b" % (self.head, due_ms + later_ms, self.rest))
        self.transport.write(b"".join(pieces))
        self.count.sent += count


async def open_timed(
    host: str, port: int, count: Count, connections: int, shape: tuple[int, bytes, int, int]
) -> list[TimedProducer]:
    """Connect producers of timed messages, and let them begin."""
    producers = [await open_peer(host, port, TimedProducer(count)) for _ in range(connections)]
    for producer in producers:
        producer.configure_moments(*shape)
        producer.start()
    return producers


async def end(producers: list[TimedProducer], count: Count) -> None:
    """Let them send no more, and wait for what is under way."""
    for producer in producers:
        producer.is_running = False
    await drain(count, lambda: count.acked >= count.sent)
    for producer in producers:
        producer.transport.abort()


async def lateness(asker: Asker, end_offset: int) -> list[int]:
    """Return how long after its moment each message was stored on its topic, in milliseconds, in order."""
    found: list[int] = []
    offset = 0
    while offset < end_offset:
        answer = await asyncio.wait_for(asker.ask(pull_frame(offset, PULL_COUNT)), 30)
        _, header = FRAME_HEAD.unpack_from(answer)
        body = 8 + (header & 0xFFFFFF)
        for record in decode_records(answer[body:]):
            due = record.properties.get(b"TIMER_DELIVER_MS")
            if due is not None:
                found.append(record.store_ms - int(due))
        offset = int(decode_header(HEADER_JSON, answer[8:body]).ext["nextBeginOffset"])
    return sorted(found)


async def run_timed(
    host: str,
    port: int,
    *,
    secs: float,
    pending: int = 1_000_000,
    connections: int = 8,
    window: int = 64,
    payload_bytes: int = 128,
    warm_s: float = 0.5,
    probe: Probe = no_probe,
) -> Result:
    """Let `pending` messages wait, then send what is due in two seconds; what counts is what is taken in."""
    body, filled, count = b"x" * payload_bytes, Count(), Count()
    for maker in await open_producers(host, port, Count(), 1, 1, body):  # one plain message makes the topic
        maker.transport.abort()
    shape = (window, body, HOUR_MS, WAIT_HOURS * HOUR_MS)
    fillers, began_s = await open_timed(host, port, filled, connections, shape), time.monotonic()
    while filled.acked < pending and time.monotonic() - began_s < FILL_S_MAX:
        await asyncio.sleep(0.01)
    await end(fillers, filled)
    asker = await open_peer(host, port, Asker(Count()))  # now: one that is silent for two minutes is closed
    producers = await open_timed(host, port, count, connections, (window, body, SOON_MS, 0))
    result = await measure(count, secs, warm_s=warm_s, probe=probe)
    result.received = result.acked
    await end(producers, count)
    if refused := sum(producer.refused_in_all for producer in producers):
        result.more["refused"] = refused
    expected, seen, still_s = 1 + count.acked, -1, time.monotonic()
    deadline_s = still_s + BEHIND_S_MAX
    while seen < expected and time.monotonic() < min(deadline_s, still_s + STILL_S + SOON_MS / 1000):
        now = await max_offset(asker, TOPIC)
        seen, still_s = now, still_s if now == seen else time.monotonic()
        await asyncio.sleep(0.05)
    late = await lateness(asker, seen)
    result.lost = max(0, expected - seen)
    result.more |= {"pending": filled.acked, "early": sum(one < 0 for one in late)}
    result.more |= {"late_p50_ms": percentile(late, 0.5), "late_p99_ms": max(percentile(late, 0.99), 1)}
    asker.transport.abort()
    return result
