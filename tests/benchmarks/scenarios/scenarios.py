"""What is measured: for each scenario its doors, its load, and the figure that is compared."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.benchmarks.figure import Figure
from tests.benchmarks.scenarios import (
    amqp_load,
    amqp_work_load,
    bridge_load,
    light_queue_load,
    mqtt5_load,
    mqtt_connect_load,
    mqtt_latency_load,
    mqtt_load,
    mqtt_retained_load,
    mqtt_session_load,
    rocketmq_load,
    rocketmq_pop_load,
    rocketmq_push_load,
    rocketmq_timed_load,
    rocketmq_transaction_load,
    tls_load,
)
from tests.benchmarks.scenarios.load import Count, Result, measure
from tests.benchmarks.scenarios.mqtt_load import user_properties
from tests.benchmarks.scenarios.server import Server

HOST = "127.0.0.1"
# Each matches bench/a/b/c/d: every choice of levels that are left open, and one that leaves open how many follow.
WILDCARDS = [
    "/".join(("+" if mask >> i & 1 else level) for i, level in enumerate(("bench", "a", "b", "c", "d")))
    for mask in range(1, 32)
] + ["bench/#"]
Load = Callable[[Server, float, int], Awaitable[Result]]


RATE = Figure("rate", "rate", "/s", is_more_better=True)
SERVER_CPU = Figure("server_us", "CPU", "µs")
P50, P99 = Figure("p50_us", "p50", "µs"), Figure("p99_us", "p99", "µs")
LATE_P99 = Figure("late_p99_ms", "lateness p99", "ms")
MEMORY = Figure("private_mb", "private memory", "MB")
MEMORY_OF_ONE = Figure("bytes_each", "memory of one", "B")
DISK = Figure("disk_kb_each", "disk", "KB")
SHARE = Figure("share", "share", "x", is_more_better=True)
BESIDE_ONE = Figure("beside_one", "confirm beside that of one queue", "x")
BESIDE_PLAIN = Figure("beside_plain", "rate beside plain", "x", is_more_better=True)
BESIDE_311 = Figure("beside_311", "CPU beside 3.1.1", "x")


@dataclass(frozen=True)
class Floor:
    """What a figure of ours must reach: so many times the best peer's, or so much whatever the peers give."""

    figure: Figure
    value: float
    is_ratio: bool = True


@dataclass(frozen=True)
class Scenario:
    """A load, and which figure of a round is the one to compare."""

    name: str
    title: str
    doors: frozenset[str]
    load: Load
    figure: Figure = RATE
    floors: tuple[Floor, ...] = ()
    payload_bytes: int = 256
    measures_disk: bool = False
    is_fresh: bool = False  # a new server each round, because memory that was used once is not asked for again
    times_rounds: int = 1  # so many times the rounds that were asked for: what swings from one second to the next
    secs_share: float = 1  # of the seconds that were asked for, in each
    small: Load | None = None  # the same with fewer, where its test would take long
    without: frozenset[str] = frozenset()  # peers that cannot do it
    why_not: Callable[[], str] = str  # says what is missing on this machine; nothing where nothing is
    instead: Mapping[str, Load] = field(default_factory=dict)  # the same at a door of its own, by a peer without ours

    def load_of(self, peer: str) -> Load:
        """Return the load for a peer."""
        return self.instead.get(peer, self.load)


def nothing() -> Load:
    """Return the load that only waits."""
    return lambda server, secs, payload: measure(Count(), secs, probe=server.cpu_s)


def mqtt(**parameters: Any) -> Load:
    """Return the MQTT load with these parameters."""
    return lambda server, secs, payload: mqtt_load.run(
        HOST, server.ports["mqtt"], secs=secs, payload_bytes=payload, probe=server.cpu_s, **parameters
    )


def mqtt_tls(**parameters: Any) -> Load:
    """Return the MQTT load by TLS and without, in turns."""
    return lambda server, secs, payload: tls_load.run_in_turns(
        HOST, server.ports["mqtts"], plain_port=server.ports["plain"], secs=secs, payload_bytes=payload,
        probe=server.cpu_s, **parameters,
    )  # fmt: skip


def mqtt_websocket(**parameters: Any) -> Load:
    """Return the MQTT load by WebSocket and without, in turns."""
    return lambda server, secs, payload: tls_load.run_in_turns(
        HOST, server.ports["mqttws"], plain_port=server.ports["plain"], secs=secs, payload_bytes=payload,
        probe=server.cpu_s, by=tls_load.run_by_websocket, **parameters,
    )  # fmt: skip


def mqtt_tls_idle(connections: int) -> Load:
    """Return the opening of idle connections by TLS."""
    return lambda server, secs, payload: tls_load.run_by_tls(
        lambda: mqtt_session_load.run_idle(
            HOST, server.ports["mqtts"], connections=connections, memory=server.private_bytes, probe=server.cpu_s
        )
    )


def mqtt_tls_connects(at_a_time: int) -> Load:
    """Return the coming and going of clients by TLS."""
    return lambda server, secs, payload: tls_load.run_by_tls(
        lambda: mqtt_connect_load.run_connects(
            HOST, server.ports["mqtts"], secs=secs, probe=server.cpu_s, at_a_time=at_a_time
        )
    )


def mqtt5(**parameters: Any) -> Load:
    """Return the MQTT load in version 5 and 3.1.1 in turns."""
    return lambda server, secs, payload: mqtt5_load.run(
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


def mqtt_connections(connections: int) -> Load:
    """Return the load to each of many connections."""
    return lambda server, secs, payload: mqtt_connect_load.run_connections(
        HOST, server.ports["mqtt"], secs=secs, payload_bytes=payload, memory=server.private_bytes, probe=server.cpu_s,
        connections=connections,
    )  # fmt: skip


def mqtt_connects(at_a_time: int) -> Load:
    """Return the coming and going of clients."""
    return lambda server, secs, payload: mqtt_connect_load.run_connects(
        HOST, server.ports["mqtt"], secs=secs, probe=server.cpu_s, at_a_time=at_a_time
    )


def mqtt_retained(messages: int) -> Load:
    """Return the asking for retained messages."""
    return lambda server, secs, payload: mqtt_retained_load.run(
        HOST, server.ports["mqtt"], secs=secs, payload_bytes=payload, probe=server.cpu_s, messages=messages
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


def amqp_work(run: Callable[..., Awaitable[Result]], **parameters: Any) -> Load:
    """Return one of the loads of services."""
    return lambda server, secs, payload: run(
        HOST, server.ports["amqp"], secs=secs, payload_bytes=payload, probe=server.cpu_s, **parameters
    )


def amqp_many(run: Callable[..., Awaitable[Result]], **parameters: Any) -> Load:
    """Return the making of many things, whose memory counts."""
    return lambda server, secs, payload: run(
        HOST, server.ports["amqp"], memory=server.private_bytes, probe=server.cpu_s, **parameters
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


def rocketmq_push(run: Callable[..., Awaitable[Result]], stored: int) -> Load:
    """Return one of the loads of push consumers."""
    return lambda server, secs, payload: run(
        HOST, server.ports["rocketmq"], namesrv_port=server.ports["namesrv"], secs=secs, payload_bytes=payload,
        probe=server.cpu_s, stored=stored,
    )  # fmt: skip


def light_queues(queues: int) -> Load:
    """Return the making of light queues."""
    return lambda server, secs, payload: light_queue_load.run(
        HOST, server.ports["rocketmq"], payload_bytes=payload, memory=server.private_bytes, probe=server.cpu_s,
        queues=queues,
    )  # fmt: skip


MQTT, AMQP, ROCKETMQ = frozenset({"mqtt"}), frozenset({"amqp"}), frozenset({"rocketmq"})
TLS = frozenset({"mqtts", "plain"})
WEBSOCKET = frozenset({"mqttws", "plain"})
ANY: frozenset[str] = frozenset()
NULL = frozenset({"null"})
NOT_MQTT_5 = NULL | {"nats", "amqtt", "rumqttd"}  # rumqttd has it at a port of its own only
NOT_SHARED = NULL | {"nats", "amqtt", "rabbitmq"}
THREE_USER_PROPERTIES = user_properties({"site": "hall-4", "trace": "4bf92f3577b34da6", "type": "measurement"})
TO_1000_LIGHT_QUEUES = rocketmq(rocketmq_load.run_send, light_queues=1_000, window=8)
WITHIN_NOISE = 1.05  # what two runs of the same load differ by
TWICE = (Floor(RATE, 2),)
FLOORS_OF_1000_QUEUES = (Floor(RATE, 2), Floor(DISK, 8, is_ratio=False))
SCENARIOS = (
    Scenario("mqtt-qos0", "MQTT QoS 0, one to one", MQTT, mqtt(), floors=(Floor(RATE, 1.2),)),
    Scenario(
        "mqtt-qos1", "MQTT QoS 1, 8 publishers with 500 in flight each, one wildcard subscriber", MQTT,
        mqtt(qos=1, publishers=8, filters=["bench/#"]), floors=(Floor(RATE, 4),),
    ),
    Scenario(
        "mqtt-qos2", "MQTT QoS 2, 8 publishers with 500 in flight each, one wildcard subscriber", MQTT,
        mqtt(qos=2, publishers=8, filters=["bench/#"]), floors=(Floor(RATE, 2),), without=NULL | {"rabbitmq"},
    ),
    Scenario(
        "mqtt5", "MQTT 5 without properties, QoS 0, one to one, and 3.1.1 in turns", MQTT, mqtt5(properties=b""),
        floors=(Floor(BESIDE_311, WITHIN_NOISE, is_ratio=False),), without=NOT_MQTT_5,
    ),
    Scenario(
        "mqtt5-properties", "MQTT 5 with 3 user properties, QoS 0, one to one, and 3.1.1 in turns", MQTT,
        mqtt5(properties=THREE_USER_PROPERTIES),
        floors=(Floor(BESIDE_311, 1.6, is_ratio=False),), without=NOT_MQTT_5,
    ),
    Scenario(
        "mqtt-shared", "MQTT QoS 1, 8 publishers with 500 in flight each, a shared subscription of 4", MQTT,
        mqtt(qos=1, publishers=8, subscribers=4, is_shared=True), floors=(Floor(RATE, 2),), without=NOT_SHARED,
    ),
    Scenario(
        "mqtt-fan-out", "MQTT QoS 0, one to 100 subscribers", MQTT, mqtt(subscribers=100), floors=(Floor(RATE, 3),)
    ),
    Scenario(
        "mqtt-filters", "MQTT QoS 0, one topic matched by 32 wildcard filters", MQTT,
        mqtt(subscribers=32, filters=WILDCARDS, topic="bench/a/b/c/d"), floors=(Floor(RATE, 3),),
    ),
    Scenario(
        "mqtt-devices", "MQTT QoS 1, 500 devices with 2 in flight, one wildcard subscriber: server CPU a message", MQTT,
        mqtt(qos=1, publishers=500, window=2, filters=["bench/#"], topic="bench/{i:04}/b"),
        SERVER_CPU, (Floor(SERVER_CPU, 0.9),),
    ),
    Scenario(
        "mqtt-latency", "MQTT QoS 0 at 2,000 messages a second: 99th percentile", MQTT, mqtt_latency(),
        P99, (Floor(P50, 1.3), Floor(P99, 1.5)), times_rounds=25, secs_share=0.125,
    ),
    Scenario(
        "mqtt-idle", "5,000 idle MQTT connections with a subscription each: memory of one", MQTT, mqtt_idle(5_000),
        MEMORY_OF_ONE, (Floor(MEMORY_OF_ONE, 8_192, is_ratio=False),), is_fresh=True, without=NULL,
    ),
    Scenario(
        "mqtt-connections", "10,000 MQTT connections with a subscription each, QoS 1 to each in turn", MQTT,
        mqtt_connections(10_000), floors=(Floor(RATE, 1), Floor(MEMORY_OF_ONE, 8_192, is_ratio=False)),
        is_fresh=True, small=mqtt_connections(1_000), without=NULL,
    ),
    Scenario(
        "mqtt-connects", "MQTT connects, 64 at a time, each gone after its CONNACK", MQTT, mqtt_connects(64),
        floors=(Floor(RATE, 1),), small=mqtt_connects(4), without=NULL,
    ),
    Scenario(
        "mqtt-tls", "MQTT QoS 0, one to one, by TLS and without in turns: the rate by TLS as a share", TLS, mqtt_tls(),
        BESIDE_PLAIN, (Floor(BESIDE_PLAIN, 0.85),),
    ),
    Scenario(
        "mqtt-websocket", "MQTT QoS 0, one to one, by WebSocket and without in turns: the rate as a share", WEBSOCKET,
        mqtt_websocket(), BESIDE_PLAIN, (Floor(BESIDE_PLAIN, 0.85),),
    ),
    Scenario(
        "mqtt-tls-idle", "10,000 idle MQTT connections by TLS with a subscription each: memory of one", TLS,
        mqtt_tls_idle(10_000), MEMORY_OF_ONE, (Floor(MEMORY_OF_ONE, 32_768, is_ratio=False),), is_fresh=True,
        small=mqtt_tls_idle(200),
    ),
    Scenario(
        "mqtt-tls-connects", "MQTT connects by TLS, 64 at a time, each gone after its CONNACK", TLS,
        mqtt_tls_connects(64), floors=(Floor(RATE, 0.85),), small=mqtt_tls_connects(4),
    ),
    Scenario(
        "mqtt-retained", "1,000 retained MQTT messages, asked for by one wildcard filter over and over", MQTT,
        mqtt_retained(1_000), floors=(Floor(RATE, 1),), without=NULL | {"rabbitmq"},
    ),
    Scenario(
        "mqtt-offline", "MQTT QoS 1, 1 KB, beside 500 offline sessions on the topic", MQTT, mqtt_offline(500),
        floors=(Floor(SHARE, 0.9, is_ratio=False),), payload_bytes=1_024, is_fresh=True, without=NULL,
    ),
    Scenario("amqp", "AMQP, durable, one to one, confirms and acks", AMQP, amqp(), floors=(Floor(RATE, 5),)),
    Scenario(
        "amqp-fan-out", "AMQP, one to 10 durable queues, consumed", AMQP, amqp(queues=10), floors=(Floor(RATE, 10),)
    ),
    Scenario(
        "amqp-1000", "AMQP, 1 KB to 1,000 durable queues; the official RocketMQ at its own door", AMQP,
        amqp(queues=1_000, consumers=0, window=20), floors=FLOORS_OF_1000_QUEUES,
        payload_bytes=1_024, measures_disk=True, is_fresh=True, instead={"rocketmq": TO_1000_LIGHT_QUEUES},
    ),
    Scenario(
        "amqp-work", "AMQP, 8 publishers and 8 consumers on one durable queue", AMQP,
        amqp_work(amqp_work_load.run_shared), floors=TWICE,
    ),
    Scenario(
        "amqp-priorities", "AMQP, 8 publishers and 8 consumers on one durable queue of 4 priorities", AMQP,
        amqp_work(amqp_work_load.run_shared, priorities=4), floors=TWICE,
    ),
    Scenario(
        "amqp-dead-letters", "AMQP, all is rejected, and consumed as dead letters", AMQP,
        amqp_work(amqp_work_load.run_shared, publishers=2, consumers=2, is_rejecting=True), floors=TWICE,
    ),
    Scenario(
        "amqp-get", "AMQP, get, acknowledge and publish again, 8 connections", AMQP,
        amqp_work(amqp_work_load.run_gets), floors=TWICE,
    ),
    Scenario(
        "amqp-call", "AMQP, round trips by direct reply-to, 16 at a time", AMQP,
        amqp_work(amqp_work_load.run_calls), floors=TWICE,
    ),
    Scenario(
        "amqp-queues", "AMQP, 10,000 durable queues are declared, each with a consumer: memory of a queue", AMQP,
        amqp_many(amqp_work_load.run_queues, queues=10_000), figure=MEMORY_OF_ONE,
        floors=(Floor(RATE, 2), Floor(MEMORY_OF_ONE, 1_024, is_ratio=False)), is_fresh=True,
        small=amqp_many(amqp_work_load.run_queues, queues=500),
    ),
    Scenario(
        "amqp-confirm", "AMQP, the confirm of a message to 10,000 durable queues, and to one, in turns", AMQP,
        amqp_work(amqp_work_load.run_confirms, queues=10_000), figure=P99,
        floors=(Floor(BESIDE_ONE, 2, is_ratio=False),), is_fresh=True, without=frozenset({"rabbitmq"}),
        small=amqp_work(amqp_work_load.run_confirms, queues=100),
    ),
    Scenario(
        "amqp-channels", "AMQP, 1,000 connections with 10 channels each: memory of a connection", AMQP,
        amqp_many(amqp_work_load.run_channels, connections=1_000), figure=MEMORY_OF_ONE,
        floors=(Floor(MEMORY_OF_ONE, 2),), is_fresh=True, small=amqp_many(amqp_work_load.run_channels, connections=50),
    ),
    Scenario(
        "mqtt-to-amqp", "MQTT QoS 1 in, durable AMQP queue out", MQTT | AMQP, bridge(), floors=(Floor(RATE, 5),)
    ),
    Scenario(
        "rocketmq-send", "RocketMQ, produce 1 KB, 8 connections with 64 in flight", ROCKETMQ,
        rocketmq(rocketmq_load.run_send), floors=(Floor(RATE, 3),), payload_bytes=1_024, measures_disk=True,
    ),
    Scenario(
        "rocketmq-pull", "RocketMQ, pull 1 KB, 32 at a time, 8 connections", ROCKETMQ,
        rocketmq(rocketmq_load.run_pull), floors=(Floor(RATE, 1),), payload_bytes=1_024,
    ),
    Scenario(
        "rocketmq-push", "RocketMQ, push consumers of the SDK, 1 KB, 32 at a time, 4 groups", ROCKETMQ | {"namesrv"},
        rocketmq_push(rocketmq_push_load.run_push, 50_000), floors=(Floor(SERVER_CPU, 1),), payload_bytes=1_024,
        is_fresh=True,
    ),
    Scenario(
        "rocketmq-push-java", "RocketMQ, push consumers of the Java client, 1 KB, 32 at a time, 4 groups",
        ROCKETMQ | {"namesrv"}, rocketmq_push(rocketmq_push_load.run_push_java, 400_000),
        floors=(Floor(SERVER_CPU, 1),), payload_bytes=1_024, is_fresh=True,
        small=rocketmq_push(rocketmq_push_load.run_push_java, 150_000), why_not=rocketmq_push_load.why_no_java,
    ),
    Scenario(
        "rocketmq-pop", "RocketMQ, POP 1 KB, 32 at a time, and acknowledge each, 8 connections", ROCKETMQ,
        rocketmq(rocketmq_pop_load.run_pop), floors=(Floor(RATE, 2),), payload_bytes=1_024,
    ),
    Scenario(
        "rocketmq-transactions", "RocketMQ, half messages of 1 KB, each committed, 8 connections with 64 in flight",
        ROCKETMQ, rocketmq(rocketmq_transaction_load.run_transactions), floors=(Floor(RATE, 2),),
        payload_bytes=1_024, measures_disk=True,
    ),
    Scenario(
        "rocketmq-timed", "RocketMQ, messages due in 2 s beside a million that wait, 8 connections with 64 in flight",
        ROCKETMQ, rocketmq(rocketmq_timed_load.run_timed), floors=(Floor(RATE, 2), Floor(LATE_P99, 1)),
        payload_bytes=128, is_fresh=True, small=rocketmq(rocketmq_timed_load.run_timed, pending=1_000),
    ),
    Scenario(
        "rocketmq-timed-deep", "RocketMQ, messages due in 2 s beside a million that wait, 8 times 512 in flight",
        ROCKETMQ, rocketmq(rocketmq_timed_load.run_timed, window=512), floors=(Floor(RATE, 2), Floor(LATE_P99, 1)),
        payload_bytes=128, is_fresh=True, small=rocketmq(rocketmq_timed_load.run_timed, window=512, pending=1_000),
    ),
    Scenario(
        "rocketmq-1000", "RocketMQ, 1 KB to 1,000 light queues", ROCKETMQ, TO_1000_LIGHT_QUEUES,
        floors=FLOORS_OF_1000_QUEUES, payload_bytes=1_024, measures_disk=True,
    ),
    Scenario(
        "memory", "Private memory of a server that was just started", ANY, nothing(),
        MEMORY, (Floor(MEMORY, 120, is_ratio=False),), is_fresh=True, without=NULL,
    ),
    Scenario(
        "memory-queues", "Private memory with 100,000 light queues, each written twice", ROCKETMQ,
        light_queues(100_000), MEMORY, (Floor(MEMORY, 160, is_ratio=False),), is_fresh=True,
    ),
)  # fmt: skip
