"""What goes through a link to a door: messages, what is wanted of them, and how it can fail."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, Protocol, Self

from gateway.commands.refusing import EXIT_NOT_NOW

GROUP = "lmq"  # that consumes where none is named


class LinkError(Exception):
    """A door cannot be reached, or refuses; the code is the command's."""

    def __init__(self, text: str, code: int = EXIT_NOT_NOW) -> None:
        super().__init__(text)
        self.code = code


class AckMode(StrEnum):
    """What becomes of a message that was shown."""

    ACK = "ack"
    NONE = "none"
    REQUEUE = "requeue"
    REJECT = "reject"


class StartKind(StrEnum):
    """What a start is given as."""

    WORD = "word"
    OFFSET = "offset"
    MOMENT = "moment"


class Start(NamedTuple):
    """Where reading begins: at a word (`first`, `last`, `next`), an offset, or a moment in ms since 1970."""

    kind: StartKind
    word: str = ""
    number: int = 0


@dataclass(slots=True)
class Outgoing:
    """A message to be published; what a door has no field for is refused there."""

    target: str  # MQTT's or RocketMQ's topic, AMQP's routing key
    body: bytes
    qos: int = 1
    retain: bool = False
    headers: dict[str, str] = field(default_factory=dict)
    exchange: str = ""
    content_type: str = ""
    expires_s: float | None = None
    delay_s: float | None = None
    tags: str = ""
    keys: str = ""


@dataclass(slots=True)
class Incoming:
    """A message that came; `handle` is the link's own."""

    topic: str
    body: bytes
    handle: Any = None
    headers: dict[str, Any] = field(default_factory=dict)
    properties: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Wanted:
    """What is to come.

    `names` are MQTT's filters, AMQP's binding keys or queues, RocketMQ's topics. With `shares` the work is taken, or
    shared with others of `group`; else all of it is only read.
    """

    names: list[str]
    shares: bool
    qos: int = 1
    start: Start | None = None
    count: int | None = None
    ackmode: AckMode = AckMode.ACK
    group: str = GROUP
    exchange: str = "amq.topic"
    tags: str = "*"


class Link(Protocol):
    """An open connection to a door, as an async context manager. All of its methods raise `LinkError`."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *exc_info: object) -> None: ...

    async def publish(self, message: Outgoing) -> bool | None:
        """Publish a message, and return when it was taken: whether a queue gets it, None where that is not told."""

    def listen(self, wanted: Wanted) -> AsyncGenerator[Incoming]:
        """Yield what comes, for ever. Where the work is shared, each message is settled by `settle`."""

    async def settle(self, message: Incoming, ackmode: AckMode) -> None:
        """Say what becomes of a message."""
