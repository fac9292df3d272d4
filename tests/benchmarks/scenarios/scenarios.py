"""What is measured: for each scenario its doors, its load, and the figure that is compared."""

from __future__ import annotations

from tests.benchmarks.scenarios import (
    amqp_work_load,
    rocketmq_load,
    rocketmq_pop_load,
    rocketmq_push_load,
    rocketmq_timed_load,
    rocketmq_transaction_load,
)
from tests.benchmarks.scenarios.loads_of_doors import (
    amqp,
    amqp_many,
    amqp_work,
    bridge,
    light_queues,
    mqtt,
    mqtt5,
    mqtt_connections,
    mqtt_connects,
    mqtt_idle,
    mqtt_latency,
    mqtt_offline,
    mqtt_retained,
    mqtt_tls,
    mqtt_tls_connects,
    mqtt_tls_idle,
    mqtt_websocket,
    nothing,
    rocketmq,
    rocketmq_push,
)
from tests.benchmarks.scenarios.mqtt_load import user_properties
from tests.benchmarks.scenarios.scenario import (
    BESIDE_311,
    BESIDE_ONE,
    BESIDE_PLAIN,
    DISK,
    LATE_P99,
    MEMORY,
    MEMORY_OF_ONE,
    P50,
    P99,
    RATE,
    SERVER_CPU,
    SHARE,
    Floor,
    Scenario,
)

# Each matches bench/a/b/c/d: every choice of levels that are left open, and one that leaves open how many follow.
WILDCARDS = [
    "/".join(("+" if mask >> i & 1 else level) for i, level in enumerate(("bench", "a", "b", "c", "d")))
    for mask in range(1, 32)
] + ["bench/#"]
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
