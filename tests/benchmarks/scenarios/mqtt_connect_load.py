"""Very many MQTT connections: messages to each of those that are open, and how fast new ones come in."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator

from tests.benchmarks.scenarios.load import Count, Probe, Result, drain, in_groups, measure, no_probe
from tests.benchmarks.scenarios.mqtt_load import Peer, Publisher, Subscriber, connect, publish_packet

WINDOW = 500
TOPIC = "site/{:05}/cmd"
DISCONNECT = b"\xe0\x00"
GOODBYE_S = 10.0


class ToEachInTurn(Publisher):
    """Publishes to one topic after the other, `topic` with each number below `topics` in it."""

    def __init__(self, client_id: str, count: Count, topic: str, payload: bytes, topics: int) -> None:
        self.topics = topics  # a multiple of the window
        super().__init__(client_id, count, topic, payload, WINDOW)

    def make_packets(self, topic: str, payload: bytes) -> list[bytes]:
        return [publish_packet(topic.format(i), payload, i % self.window + 1) for i in range(self.topics)]


async def run_connections(
    host: str,
    port: int,
    *,
    secs: float,
    connections: int,
    memory: Callable[[], int],
    payload_bytes: int = 256,
    warm_s: float = 0.5,
    probe: Probe = no_probe,
) -> Result:
    """Publish QoS 1 to each of `connections` subscribers (QoS 0, a topic of its own each) in turn.

    `more` holds the server's private bytes for each connection before the first message.
    """
    count, payload, before = Count(), b"x" * payload_bytes, memory()
    size = len(publish_packet(TOPIC.format(0), payload))
    subs = [Subscriber(f"site{i}", count, [TOPIC.format(i)], 0, size, 0) for i in range(connections)]
    await in_groups([lambda sub=sub: connect(host, port, sub) for sub in subs])
    bytes_each = (memory() - before) / connections
    publisher = await connect(host, port, ToEachInTurn("publisher", count, TOPIC, payload, connections))
    publisher.start()
    result = await measure(count, secs, warm_s=warm_s, probe=probe)
    publisher.stop()
    await drain(count, lambda: count.received >= count.sent and count.acked >= count.sent)
    result.lost = count.acked - count.received
    result.more = {"bytes_each": bytes_each}
    for peer in (publisher, *subs):
        peer.transport.abort()
    return result


class Visitor(Peer):
    """A connection that says goodbye as soon as it is let in, and waits until the server hangs up."""

    def __init__(self, client_id: str) -> None:
        super().__init__(client_id, Count())
        self.is_gone = asyncio.get_running_loop().create_future()

    def leave(self) -> None:
        """Say goodbye."""
        self.transport.write(DISCONNECT)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if not self.is_gone.done():
            self.is_gone.set_result(None)


async def run_connects(
    host: str,
    port: int,
    *,
    secs: float,
    at_a_time: int,
    warm_s: float = 0.5,
    probe: Probe = no_probe,
) -> Result:
    """Connect ever new clients, `at_a_time` of them; each goes after its CONNACK, which is what counts."""
    count, names = Count(), itertools.count()
    is_over = asyncio.Event()
    visits = [asyncio.create_task(_visit(host, port, count, names, is_over)) for _ in range(at_a_time)]
    result = await measure(count, secs, warm_s=warm_s, probe=probe)
    is_over.set()
    await asyncio.gather(*visits)
    result.lost = count.sent - count.received
    return result


async def _visit(host: str, port: int, count: Count, names: Iterator[int], is_over: asyncio.Event) -> None:
    while not is_over.is_set():
        count.sent += 1
        visitor = await connect(host, port, Visitor(f"visitor{next(names)}"))
        count.received += 1
        visitor.leave()
        await asyncio.wait_for(visitor.is_gone, GOODBYE_S)
