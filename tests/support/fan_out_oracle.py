"""The fan-out report's numbers, counted message by message in plain Python: what Spark's are held against."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from dataclasses import dataclass


@dataclass(frozen=True)
class Sent:
    """One message as it stands in the log."""

    device: str | None
    topic: str
    queues: tuple[str, ...]
    stored_ms: int
    record_bytes: int
    body_bytes: int
    dispatch_bytes: int
    protocol: str = "mqtt"
    born_ms: int | None = None  # None: as stored


def random_messages(seed: int, count: int, devices: int = 12) -> list[Sent]:
    """Return `count` messages whose fan-out differs by device."""
    dice = random.Random(seed)
    return [_random_message(dice, place, devices) for place in range(count)]


def _random_message(dice: random.Random, place: int, devices: int) -> Sent:
    device = dice.randrange(devices)
    fanout = min(int(dice.paretovariate(1.2)) - 1 + device % 3, 40)
    queues = tuple(f"%LMQ%q{number}" for number in dice.sample(range(60), fanout))
    listed = sum(len(name) + 1 for name in queues) * 2
    body = dice.randrange(20, 300)
    return Sent(
        device=f"device-{device}" if device else None,
        topic=f"site/{device % 4}/dev/{device}",
        queues=queues,
        stored_ms=1_790_000_000_000 + place * 7,
        record_bytes=190 + body + listed,
        body_bytes=body,
        dispatch_bytes=listed,
        protocol="mqtt" if device % 2 else "amqp",
        born_ms=1_790_000_000_000 + place * 7 - (100_000 if place % 50 == 0 else 0),
    )


def nearest_rank(values: list[int], percent: int) -> int:
    """Return the smallest value that at least `percent` of `values` do not exceed."""
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]


def count_devices(messages: list[Sent]) -> dict[str | None, dict[str, float]]:
    """Return the per-device row of each device."""
    by_device: dict[str | None, list[Sent]] = defaultdict(list)
    for message in messages:
        by_device[message.device].append(message)
    return {device: _device_row(own) for device, own in by_device.items()}


def _device_row(own: list[Sent]) -> dict[str, float]:
    fanouts = [len(message.queues) for message in own]
    return {
        "messages": len(own),
        "dispatches": sum(fanouts),
        "fanout_mean": sum(fanouts) / len(own),
        "fanout_p50": nearest_rank(fanouts, 50),
        "fanout_p95": nearest_rank(fanouts, 95),
        "fanout_max": max(fanouts),
        "body_bytes": sum(message.body_bytes for message in own),
        "stored_once_bytes": sum(message.record_bytes + 4 * (len(message.queues) + 1) for message in own),
        "copied_bytes": sum(
            max(len(message.queues), 1) * (message.record_bytes - message.dispatch_bytes + 4) for message in own
        ),
    }


def count_queues(messages: list[Sent]) -> dict[str, tuple[int, int]]:
    """Return the messages of each light queue, and the bytes that they would take as its own copies."""
    counts: Counter[str] = Counter()
    copied: Counter[str] = Counter()
    for message in messages:
        for queue in message.queues:
            counts[queue] += 1
            copied[queue] += message.record_bytes - message.dispatch_bytes + 4
    return {queue: (counts[queue], copied[queue]) for queue in counts}


def count_topics(messages: list[Sent]) -> dict[str, tuple[int, int]]:
    """Return the messages and the dispatches of each topic."""
    counts: Counter[str] = Counter()
    dispatches: Counter[str] = Counter()
    for message in messages:
        counts[message.topic] += 1
        dispatches[message.topic] += len(message.queues)
    return {topic: (counts[topic], dispatches[topic]) for topic in counts}
