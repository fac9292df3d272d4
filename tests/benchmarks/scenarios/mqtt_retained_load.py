"""Retained MQTT messages that one wildcard filter finds, over and over."""

from __future__ import annotations

from tests.benchmarks.scenarios.load import Count, Probe, Result, drain, measure, no_probe
from tests.benchmarks.scenarios.mqtt_connect_load import ToEachInTurn
from tests.benchmarks.scenarios.mqtt_load import Subscriber, connect, publish_packet, subscribe_packet

TOPIC, FILTER = "kept/{:05}/state", "kept/+/state"
SUBACK_BYTES = 5


class Keeper(ToEachInTurn):
    """Publishes retained messages."""

    def make_packets(self, topic: str, payload: bytes) -> list[bytes]:
        return [bytes([packet[0] | 1]) + packet[1:] for packet in super().make_packets(topic, payload)]


class Asker(Subscriber):
    """Subscribes again as soon as all that is retained has come; counts it by its bytes, with the SUBACK among them."""

    answer_count = 1
    messages = 0
    came = 0
    is_running = False

    def hello(self) -> bytes:
        return b""

    def ask(self) -> None:
        """Subscribe: all of it comes (again)."""
        self.came = 0
        self.count.sent += self.messages
        self.transport.write(subscribe_packet(self.filters, 0))

    def take(self, data: bytes) -> None:
        before = self.whole()
        self.came += len(data)
        self.count.received += self.whole() - before
        if self.is_running and self.came >= self.messages * self.size + SUBACK_BYTES:
            self.ask()

    def whole(self) -> int:
        """Return how many messages came since it asked."""
        return max(0, self.came - SUBACK_BYTES) // self.size


async def run(
    host: str,
    port: int,
    *,
    secs: float,
    messages: int,
    payload_bytes: int = 256,
    warm_s: float = 0.5,
    probe: Probe = no_probe,
) -> Result:
    """Retain a message at each of `messages` topics; then one client asks for all of them again and again."""
    payload = b"x" * payload_bytes
    await _retain(host, port, messages, payload)
    count = Count()
    asker = await connect(host, port, Asker("asker", count, [FILTER], 0, size_of(payload), 0))
    asker.messages, asker.is_running = messages, True
    asker.ask()
    result = await measure(count, secs, warm_s=warm_s, probe=probe)
    asker.is_running = False
    await drain(count, lambda: count.received >= count.sent)
    result.lost = count.sent - count.received
    asker.transport.abort()
    return result


def size_of(payload: bytes) -> int:
    """Return the bytes of a retained message as it is delivered at QoS 0."""
    return len(publish_packet(TOPIC.format(0), payload))


async def _retain(host: str, port: int, messages: int, payload: bytes) -> None:
    count = Count()
    keeper = await connect(host, port, Keeper("keeper", count, TOPIC, payload, messages))
    keeper.start()
    await drain(count, lambda: count.acked >= messages)
    keeper.stop()
    await drain(count, lambda: count.acked >= count.sent)
    if count.acked < messages:
        raise ConnectionError(f"only {count.acked} of {messages} retained messages were acknowledged")
    keeper.transport.abort()
