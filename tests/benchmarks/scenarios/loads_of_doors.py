"""The load of a scenario, by door: each function returns one that is given a server, seconds and the size of bodies."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from tests.benchmarks.scenarios import (
    amqp_load,
    bridge_load,
    light_queue_load,
    mqtt5_load,
    mqtt_connect_load,
    mqtt_latency_load,
    mqtt_load,
    mqtt_retained_load,
    mqtt_session_load,
    tls_load,
)
from tests.benchmarks.scenarios.load import Count, Result, measure
from tests.benchmarks.scenarios.scenario import Load

HOST = "127.0.0.1"


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
    """Return a load that makes many things; the memory that they take is measured."""
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
