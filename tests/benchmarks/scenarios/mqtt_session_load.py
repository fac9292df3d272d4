"""MQTT sessions that do nothing: what an idle connection costs in memory, and offline sessions in publish rate."""

from __future__ import annotations

import asyncio
import itertools
import statistics
import time
from collections.abc import Callable, Sequence

from tests.benchmarks.scenarios.load import Count, Probe, Result, drain, in_groups, measure, no_probe
from tests.benchmarks.scenarios.mqtt_load import Peer, Publisher, Subscriber, connect, publish_packet

TOPIC = "bench/a/b"
ELSEWHERE = "bench/a/c"  # of the same length; nobody subscribes to it
WINDOW = 100
BLOCK = 4 * WINDOW
BLOCKS_MIN = 3  # of which the first is not looked at
SETTLE_S = 0.5


async def run_idle(host: str, port: int, *, connections: int, memory: Callable[[], int], probe: Probe) -> Result:
    """Open connections, each with a subscription of its own; `more` holds the server's private bytes for each."""
    count, before, cpu = Count(), memory(), probe()
    peers = [Subscriber(f"idle{i}", count, [f"site/{i}/cmd"], 0, 1, 0) for i in range(connections)]
    loop = asyncio.get_running_loop()
    started = loop.time()
    await in_groups([lambda peer=peer: connect(host, port, peer) for peer in peers])
    took = loop.time() - started
    await asyncio.sleep(SETTLE_S)
    result = Result(took, connections, 0, connections, 0.0, probe() - cpu, total=count)
    result.lost = count.closed
    result.more = {"bytes_each": (memory() - before) / connections}
    for peer in peers:
        peer.transport.abort()
    return result


async def run_offline(
    host: str,
    port: int,
    *,
    secs: float,
    sessions: int = 500,
    payload_bytes: int = 1_024,
    warm_s: float = 0.5,
    probe: Probe = no_probe,
) -> Result:
    """Publish QoS 1 to a topic that nobody wants and to one that offline sessions wait for; one of them then takes all.

    It takes turns of a block each, for twice `secs`: what a sync takes swings with the minute. What is counted as
    received is what the server confirmed of the blocks that the sessions wait for; `more` holds the rate of the others,
    and the share of it that is left, by the medians of a block's time.
    """
    names = [f"offline{i:04}" for i in range(sessions)]
    await leave_sessions(host, port, names)
    payload, count = b"x" * payload_bytes, Count()
    publisher = await connect(host, port, InTurns("publisher", count, TOPIC, payload, WINDOW))
    publisher.probe = probe
    publisher.start()
    await measure(count, 2 * secs, warm_s=warm_s, probe=probe)
    await publisher.is_enough.wait()
    if count.closed:
        raise ConnectionError("closed while it published")
    publisher.stop()
    await drain(count, lambda: count.acked >= count.sent)
    publisher.transport.abort()
    without, beside = publisher.blocks()
    acked = BLOCK * len(beside)
    took, server_cpu, load_cpu = (sum(column) for column in zip(*beside, strict=True))
    result = Result(took, acked, acked, acked, load_cpu, server_cpu, count, count.closed)
    stored = publisher.stored()
    result.lost = stored - await _resume(host, port, names[0], payload, stored)
    result.more = compare([each[0] for each in without], [each[0] for each in beside])
    return result


def compare(without: Sequence[float], beside: Sequence[float]) -> dict[str, float]:
    """Return messages a second of blocks that took so many seconds, and the share left of it beside, by the medians."""
    return {
        "rate_without": BLOCK * len(without) / sum(without),
        "share": statistics.median(without) / statistics.median(beside),
    }


class InTurns(Publisher):
    """Publishes a block to a topic that nobody wants, one to its own, and so on; notes when each was acknowledged."""

    probe: Probe = staticmethod(no_probe)

    def make_packets(self, topic: str, payload: bytes) -> list[bytes]:
        self.marks: list[tuple[float, float, float]] = []
        self.is_enough = asyncio.Event()
        return [publish_packet(each, payload, i % self.window + 1) for each in (ELSEWHERE, topic) for i in range(BLOCK)]

    def take(self, data: bytes) -> None:
        super().take(data)
        if self.count.acked // BLOCK > len(self.marks):
            self.marks.append((time.perf_counter(), self.probe(), time.process_time()))
            if len(self.marks) >= BLOCKS_MIN:
                self.is_enough.set()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.is_enough.set()

    def blocks(self) -> tuple[list[tuple[float, ...]], list[tuple[float, ...]]]:
        """Return seconds, the server's and the load's CPU seconds of each block but the first: elsewhere's, its own."""
        took = [
            tuple(b - a for a, b in zip(before, after, strict=True)) for before, after in itertools.pairwise(self.marks)
        ]
        return took[1::2], took[::2]

    def stored(self) -> int:
        """Return how many of its own topic were acknowledged."""
        pairs, rest = divmod(self.count.acked, 2 * BLOCK)
        return pairs * BLOCK + max(0, rest - BLOCK)


def _reader(name: str, count: Count, payload: bytes) -> Subscriber:
    packet = publish_packet(TOPIC, payload, 1)
    return Subscriber(name, count, [TOPIC], 1, len(packet), packet.index(TOPIC.encode()) + len(TOPIC), clean=False)


async def leave_sessions(host: str, port: int, names: Sequence[str]) -> None:
    """Make persistent sessions with a QoS 1 subscription to TOPIC, and go.

    All are made before the first one goes: rumqttd 0.20 closes a connection that takes the place of one that went.
    """
    readers = [_reader(name, Count(), b"") for name in names]
    await in_groups([lambda reader=reader: connect(host, port, reader) for reader in readers])
    for reader in readers:
        reader.transport.write(b"\xe0\x00")
        reader.transport.close()


class Resumed(Peer):
    """A session that comes back: its subscriber counts what waited for it."""

    reader: Subscriber

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.reader.transport = self.transport

    def take(self, data: bytes) -> None:
        self.reader.take(data)


async def _resume(host: str, port: int, name: str, payload: bytes, expected: int) -> int:
    count = Count()
    peer = Resumed(name, count, clean=False)
    peer.reader = _reader(name, count, payload)
    await connect_resumed(host, port, peer)
    await drain(count, lambda: count.received >= expected)
    peer.transport.abort()
    return count.received


async def connect_resumed(host: str, port: int, peer: Resumed) -> None:
    """Connect a session that is there already; deliveries may follow the CONNACK at once."""
    loop = asyncio.get_running_loop()

    def make() -> Resumed:
        return peer

    await loop.create_connection(make, host, port)
    await asyncio.wait_for(peer.ready, 30)
