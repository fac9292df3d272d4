"""What is measured: for each scenario its doors, its load, and the figure that is compared."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from tests.benchmarks.scenarios import (
    amqp_load,
    bridge_load,
    mqtt_latency_load,
    mqtt_load,
    mqtt_session_load,
    rocketmq_load,
)
from tests.benchmarks.scenarios.load import Result
from tests.benchmarks.scenarios.server import Server

HOST = "127.0.0.1"
# Each matches bench/a/b/c/d: every choice of levels that are left open, and one that leaves open how many follow.
WILDCARDS = [
    "/".join(("+" if mask >> i & 1 else level) for i, level in enumerate(("bench", "a", "b", "c", "d")))
    for mask in range(1, 32)
] + ["bench/#"]
Load = Callable[[Server, float, int], Awaitable[Result]]


@dataclass(frozen=True)
class Floor:
    """What our own figure must reach: so many times the best peer's or, with a name, so much of a figure of its own."""

    value: float
    of: str = ""
    is_most: bool = False  # the figure must stay under it


@dataclass(frozen=True)
class Scenario:
    """A load, and which of its figures is the one to compare: `rate`, `server_us`, or one of the result's `more`."""

    name: str
    title: str
    doors: frozenset[str]
    load: Load
    figure: str = "rate"
    unit: str = "/s"
    is_more_better: bool = True
    payload_bytes: int = 256
    measures_disk: bool = False
    is_fresh: bool = False  # a new server each round, because memory that was used once is not asked for again
    without: frozenset[str] = frozenset()  # peers that cannot do it
    floor: Floor | None = None


def mqtt(**parameters: Any) -> Load:
    """Return the MQTT load with these parameters."""
    return lambda server, secs, payload: mqtt_load.run(
        HOST, server.ports["mqtt"], secs=secs, payload_bytes=payload, probe=server.cpu_s, **parameters
    )


def mqtt_latency(**parameters: Any) -> Load:
    """Return the load at a steady rate."""
    return lambda server, secs, payload: mqtt_latency_load.run(
        HOST, server.ports["mqtt"], secs=secs, payload_bytes=payload, probe=server.cpu_s, **parameters
    )


def mqtt_idle(connections: int) -> Load:
    """Return the opening of idle connections."""
    return lambda server, secs, payload: mqtt_session_load.run_idle(
        HOST, server.ports["mqtt"], connections=connections, memory=server.private_bytes, probe=server.cpu_s
    )


def mqtt_offline(sessions: int) -> Load:
    """Return the load beside offline sessions."""
    return lambda server, secs, payload: mqtt_session_load.run_offline(
        HOST, server.ports["mqtt"], secs=secs, payload_bytes=payload, probe=server.cpu_s, sessions=sessions
    )


def amqp(**parameters: Any) -> Load:
    """Return the AMQP load with these parameters."""
    return lambda server, secs, payload: amqp_load.run(
        HOST, server.ports["amqp"], secs=secs, payload_bytes=payload, probe=server.cpu_s, **parameters
    )


def bridge(**parameters: Any) -> Load:
    """Return the load from door to door."""
    return lambda server, secs, payload: bridge_load.run(
        HOST, *(server.ports[door] for door in ("mqtt", "amqp")), secs=secs, payload_bytes=payload, probe=server.cpu_s,
        **parameters,
    )  # fmt: skip


def rocketmq(run: Callable[..., Awaitable[Result]], **parameters: Any) -> Load:
    """Return one of the RocketMQ loads."""
    return lambda server, secs, payload: run(
        HOST, server.ports["rocketmq"], secs=secs, payload_bytes=payload, probe=server.cpu_s, **parameters
    )


MQTT, AMQP, ROCKETMQ = frozenset({"mqtt"}), frozenset({"amqp"}), frozenset({"rocketmq"})
NULL = frozenset({"null"})
SCENARIOS = (
    Scenario("mqtt-qos0", "MQTT QoS 0, one to one", MQTT, mqtt(), floor=Floor(1.2)),
    Scenario(
        "mqtt-qos1", "MQTT QoS 1, 8 publishers with 500 in flight each, one wildcard subscriber", MQTT,
        mqtt(qos=1, publishers=8, filters=["bench/#"]), floor=Floor(4),
    ),
    Scenario("mqtt-fan-out", "MQTT QoS 0, one to 100 subscribers", MQTT, mqtt(subscribers=100), floor=Floor(3)),
    Scenario(
        "mqtt-filters", "MQTT QoS 0, one topic matched by 32 wildcard filters", MQTT,
        mqtt(subscribers=32, filters=WILDCARDS, topic="bench/a/b/c/d"), floor=Floor(3),
    ),
    Scenario(
        "mqtt-devices", "MQTT QoS 1, 500 devices with 2 in flight, one wildcard subscriber: server CPU a message", MQTT,
        mqtt(qos=1, publishers=500, window=2, filters=["bench/#"], topic="bench/{i:04}/b"),
        figure="server_us", unit="µs", is_more_better=False, floor=Floor(0.9, is_most=True),
    ),
    Scenario(
        "mqtt-latency", "MQTT QoS 0 at 2,000 messages a second: 99th percentile", MQTT, mqtt_latency(),
        figure="p99_us", unit="µs", is_more_better=False, floor=Floor(1, is_most=True),
    ),
    Scenario(
        "mqtt-idle", "5,000 idle MQTT connections with a subscription each: memory of one", MQTT, mqtt_idle(5_000),
        figure="bytes_each", unit="B", is_more_better=False, is_fresh=True, without=NULL,
        floor=Floor(8_192, "bytes_each", is_most=True),
    ),
    Scenario(
        "mqtt-offline", "MQTT QoS 1, 1 KB, beside 500 offline sessions on the topic", MQTT, mqtt_offline(500),
        payload_bytes=1_024, is_fresh=True, without=NULL, floor=Floor(0.9, "share"),
    ),
    Scenario("amqp", "AMQP, durable, one to one, confirms and acks", AMQP, amqp(), floor=Floor(5)),
    Scenario("amqp-fan-out", "AMQP, one to 10 durable queues, consumed", AMQP, amqp(queues=10), floor=Floor(10)),
    Scenario(
        "amqp-1000", "AMQP, 1 KB to 1,000 durable queues", AMQP, amqp(queues=1_000, consumers=0, window=20),
        payload_bytes=1_024, measures_disk=True, is_fresh=True,
    ),
    Scenario("mqtt-to-amqp", "MQTT QoS 1 in, durable AMQP queue out", MQTT | AMQP, bridge(), floor=Floor(5)),
    Scenario(
        "rocketmq-send", "RocketMQ, produce 1 KB, 8 connections with 64 in flight", ROCKETMQ,
        rocketmq(rocketmq_load.run_send), payload_bytes=1_024, measures_disk=True, floor=Floor(3),
    ),
    Scenario(
        "rocketmq-pull", "RocketMQ, pull 1 KB, 32 at a time, 8 connections", ROCKETMQ,
        rocketmq(rocketmq_load.run_pull), payload_bytes=1_024, floor=Floor(1),
    ),
    Scenario(
        "rocketmq-1000", "RocketMQ, 1 KB to 1,000 light queues", ROCKETMQ,
        rocketmq(rocketmq_load.run_send, light_queues=1_000, window=8), payload_bytes=1_024, measures_disk=True,
        floor=Floor(2),
    ),
)  # fmt: skip
