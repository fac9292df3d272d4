"""Offline persistent MQTT sessions on one filter: what they add to a publish, and what happens when all come back."""

from __future__ import annotations

import asyncio
import statistics
import time

import uvloop

from tests.benchmarks.scale.gateway import Gateway, gateway
from tests.benchmarks.scale.live_pair import START_S_MAX, watch
from tests.benchmarks.scale.points import Samples
from tests.benchmarks.scale.process import Worker, new_event
from tests.benchmarks.scale.progress import Run
from tests.benchmarks.scenarios.load import Count, drain
from tests.benchmarks.scenarios.mqtt_latency_load import PacedPublisher, percentile
from tests.benchmarks.scenarios.mqtt_load import Peer, Subscriber, connect, publish_packet
from tests.benchmarks.scenarios.mqtt_session_load import ELSEWHERE, TOPIC, leave_sessions

HOST = "127.0.0.1"
BODY = b"x" * 1_024
WINDOW = 100
TURNS = 200  # bursts to each topic in a round
PUBACK_BYTES = 4
AT_ONCE = 2_500
WAITING = 20  # messages for each session that comes back
WAITING_BODY = b"x" * 256
SERVED_MAX_S = 120.0
LIVE_RATE = 500
ALONE_S = 2.0


async def make_sessions(run: Run, ours: Gateway, count: int) -> None:
    """Make persistent sessions with a subscription to TOPIC, and leave them."""
    names = [f"offline{number:06}" for number in range(count)]
    port = ours.server.ports["mqtt"]
    for start in range(0, count, AT_ONCE):
        run.say(f"making sessions, {start:,} of {count:,}") if start % 10_000 == 0 else None
        await leave_sessions(HOST, port, names[start : start + AT_ONCE])


def measure(run: Run, size: int) -> Samples:
    """Publish QoS 1 to a topic that nobody wants and to one that `size` offline sessions wait for, in turn."""
    with gateway() as ours:
        ours.start()
        found = uvloop.run(_measure(run, ours, size))
        run.say(f"starting with {size:,} sessions")
        ours.stop()
        found["ready_s"] = [ours.start()]
    return found


async def _measure(run: Run, ours: Gateway, size: int) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {"times_cpu": [], "times_ms": [], "cpu_us": [], "rate": []}
    memory, began = ours.server.private_bytes(), time.perf_counter()
    await make_sessions(run, ours, size)
    if size:
        found["made_us"] = [1e6 * (time.perf_counter() - began) / size]
        found["session_bytes"] = [(ours.server.private_bytes() - memory) / size]
    port, count = ours.server.ports["mqtt"], Count()
    peers = [await connect(HOST, port, Bursts(topic, count)) for topic in (ELSEWHERE, TOPIC)]
    for number in range(-1, run.rounds):  # the first is thrown away
        run.say(f"publishing beside {size:,} sessions, round {number + 1} of {run.rounds}")
        (cpu, secs), (cpu_with, secs_with) = await _publish_in_turns(ours, peers)
        if number >= 0:
            found["times_cpu"].append(cpu_with / cpu)
            found["times_ms"].append(secs_with / secs)
            found["cpu_us"].append(1e6 * cpu_with / WINDOW)
            found["rate"].append(WINDOW / secs_with)
    for peer in peers:
        peer.transport.abort()
    return found


async def _publish_in_turns(ours: Gateway, peers: list[Bursts]) -> list[tuple[float, float]]:
    """Return the server's CPU seconds and the seconds of a burst of each peer: medians of many, in turns."""
    took: list[list[tuple[float, float]]] = [[] for _ in peers]
    for _ in range(TURNS):
        for peer, each in zip(peers, took, strict=True):
            cpu, began = ours.cpu_s(), time.perf_counter()
            await peer.publish()
            each.append((ours.cpu_s() - cpu, time.perf_counter() - began))
    return [(statistics.median(cpu for cpu, _ in each), statistics.median(secs for _, secs in each)) for each in took]


class Bursts(Peer):
    """Publishes WINDOW messages at QoS 1 in one write, and waits until all are acknowledged."""

    def __init__(self, topic: str, count: Count) -> None:
        super().__init__(f"to {topic}", count)
        self.burst = b"".join(publish_packet(topic, BODY, number + 1) for number in range(WINDOW))
        self.unacked_bytes = 0
        self.is_acked = asyncio.Event()

    async def publish(self) -> None:
        """Publish a burst.

        Raises:
            ConnectionError: It was closed before all was acknowledged.
        """
        self.is_acked.clear()
        self.unacked_bytes = PUBACK_BYTES * WINDOW
        self.transport.write(self.burst)
        await self.is_acked.wait()
        if self.unacked_bytes:
            raise ConnectionError("closed before all was acknowledged")

    def take(self, data: bytes) -> None:
        self.unacked_bytes -= len(data)
        if not self.unacked_bytes:
            self.is_acked.set()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.is_acked.set()


# All come back


class Returning(Subscriber):
    """A session that comes back and takes what waits for it."""

    first_at = last_at = 0.0
    got = 0
    answer_count = 1

    def hello(self) -> bytes:
        return b""

    def take(self, data: bytes) -> None:
        before = self.count.received
        super().take(data)
        if new := self.count.received - before:
            self.got += new
            self.last_at = time.perf_counter()
            self.first_at = self.first_at or self.last_at


def measure_resume(run: Run, size: int) -> Samples:
    """Let `size` sessions come back at once beside a live publisher and its subscriber."""
    with gateway() as ours:
        ours.start()
        uvloop.run(_prepare(run, ours, size))
        found: dict[str, list[float]] = {}
        run.say(f"{size:,} sessions come back at once")
        is_live, is_over = new_event(), new_event()
        witness = Worker(watch, ours.server.ports["mqtt"], 1, LIVE_RATE, is_live, is_over)
        try:
            if not is_live.wait(START_S_MAX):
                raise TimeoutError("no message of the live pair has come")
            time.sleep(ALONE_S)  # noqa: TID251 - the live pair is alone meanwhile
            cpu, began = ours.cpu_s(), time.perf_counter_ns()
            found = uvloop.run(_come_back(ours, size))
        finally:
            is_over.set()
            ages, lost = witness.result()
        found["cpu_us"] = [1e6 * (found.pop("server_cpu")[0] - cpu) / (size * WAITING)]
        ended = began + 1e9 * found["all_s"][0]
        alone = sorted(age for at, age in ages if at + age < began)
        beside = sorted(age for at, age in ages if at + age >= began and at <= ended)
        found["alone_p99_ms"] = [percentile(alone, 0.99) / 1e6]
        found["live_p50_ms"] = [percentile(beside, 0.5) / 1e6]
        found["live_p99_ms"] = [percentile(beside, 0.99) / 1e6]
        found["live_max_ms"] = [percentile(beside, 1) / 1e6]
        found["live_lost"] = [lost]
    return found


async def _prepare(run: Run, ours: Gateway, size: int) -> None:
    await make_sessions(run, ours, size)
    count, port = Count(), ours.server.ports["mqtt"]
    publisher = await connect(HOST, port, PacedPublisher("before", count))
    packets = [publish_packet(TOPIC, WAITING_BODY, number + 1) for number in range(WAITING)]
    publisher.transport.write(b"".join(packets))
    count.sent = WAITING
    await drain(count, lambda: count.acked >= WAITING)
    publisher.transport.abort()


async def _come_back(ours: Gateway, size: int) -> dict[str, list[float]]:
    count, packet = Count(), publish_packet(TOPIC, WAITING_BODY, 1)
    id_at = packet.index(TOPIC.encode()) + len(TOPIC)
    peers = [
        Returning(f"offline{number:06}", count, [TOPIC], 1, len(packet), id_at, clean=False) for number in range(size)
    ]
    load_cpu, began = time.process_time(), time.perf_counter()
    await asyncio.gather(*(connect(HOST, ours.server.ports["mqtt"], peer) for peer in peers))
    connected = time.perf_counter()
    while count.received < size * WAITING and time.perf_counter() < began + SERVED_MAX_S:
        await asyncio.sleep(0.005)
    ended = time.perf_counter()
    firsts = sorted(int(1e6 * (peer.first_at - began)) for peer in peers if peer.got)
    found = {
        "connected_s": [connected - began],
        "all_s": [ended - began],
        "first_p50_ms": [percentile(firsts, 0.5) / 1e3],
        "first_p99_ms": [percentile(firsts, 0.99) / 1e3],
        "first_max_ms": [percentile(firsts, 1) / 1e3],
        "unserved": [float(sum(peer.got < WAITING for peer in peers))],
        "server_cpu": [ours.cpu_s()],
        "load_cpu": [100 * (time.process_time() - load_cpu) / (ended - began)],
    }
    for peer in peers:
        peer.transport.abort()
    return found
