"""MQTT QoS 1 in, an AMQP queue out: messages that one server takes at one door and gives at another."""

from __future__ import annotations

from tests.benchmarks.scenarios import amqp_load, mqtt_load
from tests.benchmarks.scenarios.load import Count, Probe, Result, drain, measure, no_probe


async def run(
    host: str,
    mqtt_port: int,
    amqp_port: int,
    *,
    secs: float,
    publishers: int = 1,
    window: int = 500,
    payload_bytes: int = 256,
    warm_s: float = 0.5,
    probe: Probe = no_probe,
) -> Result:
    """Publish to a topic that a durable queue is bound to by a wildcard; one consumer takes and acknowledges."""
    count, payload = Count(), b"x" * payload_bytes
    setter = await amqp_load.open_peer(host, amqp_port, amqp_load.AmqpPeer(Count()))
    await amqp_load.declare_queue(setter, "bridge", "amq.topic", "bench.#")
    consumer = await amqp_load.open_consumer(host, amqp_port, count, "bridge", prefetch=4_000)
    pubs = [mqtt_load.Publisher(f"b{i}", count, "bench/a/b", payload, window) for i in range(publishers)]
    for pub in pubs:
        await mqtt_load.connect(host, mqtt_port, pub)
        pub.start()
    result = await measure(count, secs, warm_s=warm_s, probe=probe)
    for pub in pubs:
        pub.stop()
    await drain(count, lambda: count.acked >= count.sent and count.received >= count.sent)
    result.lost = count.acked - count.received
    for peer in (*pubs, consumer, setter):
        peer.transport.abort()
    return result
