"""What the admin API answers."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel


class DoorOverview(BaseModel):
    """What went through one door since the start."""

    messages_in: int
    messages_out: int
    redelivered: int
    bytes_in: int
    bytes_out: int
    connections: int
    connections_total: int
    sessions: int
    refused: dict[str, int]
    dropped: dict[str, int]


class EndingCertificate(BaseModel):
    """A certificate in use that expires soon, or has expired: then clients refuse it."""

    listener: str
    address: str
    file: str
    names: list[str]
    expires_at_ms: int


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
    disk_free_bytes_min: int
    disk: Literal["ok", "low"]
    memory: Literal["ok", "low"]
    memory_bytes: int
    memory_bytes_max: int
    alarms: list[str]
    certificates_ending: list[EndingCertificate]
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


class PassedExchange(BaseModel):
    """An exchange on a message's way; `by` are the bindings that lead there, empty for the first."""

    name: str
    kind: str
    by: str


class PublishExplanation(ExchangeExplanation):
    """Where a publish by a door would go, and why.

    `is_allowed` and `verdict` are what the user may, None and empty where no user was named. `waits_ms` is how long
    the message waits before it has its way. `shown` is what each door tells of it: names, and headers. `why_not` says
    why `queue` does not get it, for each of its bindings; it is empty where it does. `notes` say what is not to be seen
    in the way: the light queue of a priority, a queue that is full, an alternate that is not there.
    """

    door: str
    user: str | None
    is_allowed: bool | None
    verdict: str
    waits_ms: int
    exchanges: list[PassedExchange]
    shown: dict[str, dict[str, str]]
    queue: str | None
    why_not: list[str]
    notes: list[str]


class RightExplanation(BaseModel):
    """Whether a user may do something by a door, and what decides.

    `by` is the rule, setting, expression or back end, and `verdict` says all of it in words. `user` is empty for
    clients that give no name, `address` where it is none that rules know.
    """

    action: str
    name: str
    door: str
    vhost: str
    user: str
    client: str
    address: str
    groups: list[str]
    is_allowed: bool
    by: str
    verdict: str


class QueueExplanation(BaseModel):
    """What leads to an AMQP queue, and what it holds.

    `bindings` are the ways there: exchange and key, one exchange after another. `filters` are what leads there from the
    topic space, in MQTT's form. `ruled` is what policies say together. `levels` are the light queues of its further
    priorities.
    """

    name: str
    vhost: str
    light_queue: str
    levels: list[str]
    arguments: dict[str, Any]
    bindings: list[str]
    filters: list[str]
    policy: str | None
    operator_policy: str | None
    ruled: dict[str, Any]
    dead_letters: str | None
    readers: int
    ready: int
    unacked: int
    first_offset: int
    next_offset: int


class Health(BaseModel):
    """Whether the gateway lives, or takes work."""

    status: str


class Readiness(Health):
    """`disk` is `low` while publishers are held back for want of room; consumers are served all the same."""

    disk: Literal["ok", "low"]
