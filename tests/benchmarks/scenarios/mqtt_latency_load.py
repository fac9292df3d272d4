"""How long one MQTT message takes at a steady rate: the moment of writing travels in the message."""

from __future__ import annotations

import struct
import time

from tests.benchmarks.scenarios.interval_timer import IntervalTimer
from tests.benchmarks.scenarios.load import Count, Probe, Result, drain, measure, no_probe
from tests.benchmarks.scenarios.mqtt_load import Peer, Subscriber, connect, publish_packet

TOPIC = "bench/a/b"
STAMP = struct.Struct(">Q")


class PacedPublisher(Peer):
    """Writes each message by itself as soon as it is due; the loop's own timers know whole milliseconds only."""

    def configure(self, rate: float, payload_bytes: int, qos: int, topic: str = TOPIC) -> None:
        """Encode the message; its first bytes are the time."""
        packet = publish_packet(topic, bytes(payload_bytes), 1 if qos else None)
        at = len(packet) - payload_bytes
        self.head, self.rest = packet[:at], packet[at + STAMP.size :]
        self.timer = IntervalTimer(1 / rate, self.publish)
        self.qos = qos

    def start(self) -> None:
        """Begin."""
        self.timer.start()

    def stop(self) -> None:
        """Publish no more; what is in flight is still counted."""
        self.timer.stop()

    def publish(self) -> None:
        """Write one message, unless the server hung up."""
        if self.transport.is_closing():
            self.timer.stop()
            return
        self.count.sent += 1
        self.transport.write(self.packet())

    def packet(self) -> bytes:
        """Return the message, stamped now."""
        head = self.head
        if self.qos:
            head = head[:-2] + struct.pack(">H", self.count.sent % 65_535 + 1)
        return head + STAMP.pack(time.perf_counter_ns()) + self.rest

    def take(self, data: bytes) -> None:
        self.count.acked += len(data) // 4


class StampReader(Subscriber):
    """Notes the age of each message."""

    def take(self, data: bytes) -> None:
        now = time.perf_counter_ns()
        data = self.tail + data
        stamp_at = self.id_at + (2 if self.qos else 0)
        got = len(data) // self.size
        for start in range(0, got * self.size, self.size):
            self.note(STAMP.unpack_from(data, start + stamp_at)[0], now)
            if self.qos:
                self.transport.write(b"\x40\x02" + data[start + self.id_at : start + stamp_at])
        self.count.received += got
        self.tail = data[got * self.size :]

    def note(self, sent_ns: int, now_ns: int) -> None:
        """One message came."""
        self.count.latencies_ns.append(now_ns - sent_ns)


def percentile(ordered: list[int], share: float) -> float:
    """Return the value that `share` of the ordered values do not pass; not a number where there are none."""
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)] if ordered else float("nan")


async def run(
    host: str,
    port: int,
    *,
    secs: float,
    rate: float = 2_000,
    qos: int = 0,
    payload_bytes: int = 256,
    warm_s: float = 0.25,
    probe: Probe = no_probe,
) -> Result:
    """Send `rate` messages a second to one subscriber; percentiles in microseconds are in `more`."""
    count, payload_bytes = Count(), max(payload_bytes, STAMP.size)
    packet = publish_packet(TOPIC, bytes(payload_bytes), 1 if qos else None)
    id_at = packet.index(TOPIC.encode()) + len(TOPIC)
    reader = await connect(host, port, StampReader("reader", count, [TOPIC], qos, len(packet), id_at))
    publisher = await connect(host, port, PacedPublisher("paced", count))
    publisher.configure(rate, payload_bytes, qos)
    publisher.start()
    result = await measure(count, secs, warm_s=warm_s, probe=probe)
    ages = sorted(count.latencies_ns)
    publisher.stop()
    await drain(count, lambda: count.received >= count.sent)
    result.lost = count.sent - count.received
    result.more = {f"p{share * 100:g}_us": percentile(ages, share) / 1e3 for share in (0.5, 0.99, 0.999)}
    for peer in (publisher, reader):
        peer.transport.abort()
    return result
