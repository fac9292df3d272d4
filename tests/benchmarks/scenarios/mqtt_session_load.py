"""MQTT sessions that do nothing: what an idle connection costs in memory, and offline sessions in publish rate."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tests.benchmarks.scenarios.load import Count, Probe, Result, drain, in_groups, measure, no_probe
from tests.benchmarks.scenarios.mqtt_load import Peer, Publisher, Subscriber, connect, publish_packet

TOPIC = "bench/a/b"
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
    window: int = 100,
    payload_bytes: int = 1_024,
    warm_s: float = 0.5,
    probe: Probe = no_probe,
) -> Result:
    """Publish QoS 1 with no session, then with `sessions` offline ones on its topic; one of them then takes all.

    What is counted as received is what the server confirmed of the second stretch; `more` holds the first one's rate.
    """
    payload = b"x" * payload_bytes
    first, _ = await publish(host, port, TOPIC, payload, window, secs, warm_s, probe)
    names = [f"offline{i:04}" for i in range(sessions)]
    await in_groups([lambda name=name: leave_session(host, port, name) for name in names])
    result, count = await publish(host, port, TOPIC, payload, window, secs, warm_s, probe)
    result.lost = count.acked - await _resume(host, port, names[0], payload, count.acked)
    result.more = {"rate_without": first.rate, "share": result.rate / first.rate if first.rate else float("nan")}
    return result


async def publish(
    host: str, port: int, topic: str, payload: bytes, window: int, secs: float, warm_s: float, probe: Probe
) -> tuple[Result, Count]:
    """Publish QoS 1; what is counted as received is what the server confirmed of the stretch."""
    count = Count()
    publisher = await connect(host, port, Publisher("publisher", count, topic, payload, window))
    publisher.start()
    result = await measure(count, secs, warm_s=warm_s, probe=probe)
    publisher.stop()
    await drain(count, lambda: count.acked >= count.sent)
    publisher.transport.abort()
    result.received = result.acked
    return result, count


def _reader(name: str, count: Count, payload: bytes) -> Subscriber:
    packet = publish_packet(TOPIC, payload, 1)
    return Subscriber(name, count, [TOPIC], 1, len(packet), packet.index(TOPIC.encode()) + len(TOPIC), clean=False)


async def leave_session(host: str, port: int, name: str) -> None:
    """Make a persistent session with a QoS 1 subscription to TOPIC, and go."""
    peer = await connect(host, port, _reader(name, Count(), b""))
    peer.transport.write(b"\xe0\x00")
    peer.transport.close()


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
