"""What the admin API answers."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel


class DoorOverview(BaseModel):
    """What went through one door since the start."""

    messages_in: int
    messages_out: int
    bytes_in: int
    bytes_out: int
    connections: int
    connections_total: int
    sessions: int
    refused: dict[str, int]
    dropped: dict[str, int]


class Overview(BaseModel):
    """The whole gateway on one page."""

    version: str
    is_ready: bool
    uptime_ms: int
    messages_stored: int
    dispatches: int
    light_queues: int
    log_bytes: int
    disk_free_bytes: int
    disk: Literal["ok", "low"]
    connections: int
    doors: dict[str, DoorOverview]


class ExplainedQueue(BaseModel):
    """One light queue that a publish to the topic would reach; `called` is what AMQP clients call it, else empty.

    `filters` are those of the topic space, in MQTT's form; `bindings` are those of an AMQP queue: exchange and key.
    `subscriptions` are sessions with such a filter or bindings of the queue, connected or not; `readers` are connected.
    """

    name: str
    called: str = ""
    filters: list[str]
    bindings: list[str]
    subscriptions: int
    readers: int
    max_offset: int


class Explanation(BaseModel):
    """Where a publish to `topic` would go."""

    topic: str
    parent_topic: str
    queues: list[ExplainedQueue]


class ExchangeExplanation(Explanation):
    """Where a publish to an exchange would go; `topic` is its routing key in MQTT's form."""

    vhost: str
    exchange: str
    kind: str
    routing_key: str
    is_topic_space: bool  # devices that subscribe to the topic are reached too


class Health(BaseModel):
    """Whether the gateway lives, or takes work."""

    status: str


class Readiness(Health):
    """`disk` is `low` while publishers are held back for want of room; consumers are served all the same."""

    disk: Literal["ok", "low"]
