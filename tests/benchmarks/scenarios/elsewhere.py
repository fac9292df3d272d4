"""What the newest peers gave on another machine with two cores: shown beside what is measured, never compared with it.

A distribution's package can be years old, and not every peer can be had everywhere.
"""

from __future__ import annotations

HEADING = "elsewhere, two cores (not measured here)"
NOTE = (
    "The last column but one is no result of this run: it is what the newest versions gave on another machine with "
    "two cores, at the scenario's own size."
)
VERSIONS = {"mosquitto": "2.1", "nats": "2.15", "rabbitmq": "4.3", "rocketmq": "5.5"}
_TO_1000_QUEUES = {
    "rabbitmq": "27 k/s, 1,249 KB of disk a message",
    "rocketmq": "2.26 M/s, 25 KB of disk a message",
}
FIGURES: dict[str, dict[str, str]] = {  # by scenario and peer
    "mqtt-qos0": {"nats": "730 k/s, 1.3 µs", "mosquitto": "705 k/s", "null": "8.9 M/s"},
    "mqtt-qos1": {"mosquitto": "162 k/s", "nats": "106 k/s"},
    "mqtt-fan-out": {"nats": "1.65–1.93 M/s"},
    "mqtt-filters": {"nats": "1.42–1.85 M/s"},
    "mqtt-devices": {"mosquitto": "5.7 µs"},
    "mqtt-latency": {"the best": "p50 40 µs, p99 3.7 ms"},
    "mqtt-idle": {"mosquitto": "5.3 KB", "nats": "49 KB", "rabbitmq": "49 KB"},
    "mqtt-offline": {"mosquitto": "1,269/s", "rabbitmq": "44/s"},
    "amqp": {"rabbitmq": "28.8 k/s", "lavinmq": "573 k/s at 512 B, as published by its makers"},
    "amqp-fan-out": {"rabbitmq": "30–55 k/s"},
    "amqp-1000": _TO_1000_QUEUES,
    "mqtt-to-amqp": {"rabbitmq": "29 k/s"},
    "rocketmq-send": {"rocketmq": "30 k/s, 57 µs"},
    "rocketmq-pull": {"rocketmq": "306 k/s"},
    "rocketmq-1000": {"rocketmq": _TO_1000_QUEUES["rocketmq"]},
    "memory": {"rocketmq": "1.6 GB"},
    "memory-queues": {"rocketmq": "cannot with a file for each queue", "rabbitmq": "43.6 KB a queue"},
}


def elsewhere(scenario: str, peer: str) -> str:
    """Return what `peer` gave elsewhere, its version first where it is known; nothing where there is no figure."""
    text = FIGURES.get(scenario, {}).get(peer, "")
    return f"{VERSIONS[peer]}: {text}" if text and peer in VERSIONS else text
