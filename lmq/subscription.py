"""What a consumer wants of a topic: all, some tags, or what an SQL expression says."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from lmq.arguments import check_is, check_topic
from lmq.message import Message

ALL = "*"
TAG = "TAG"
SQL = "SQL92"


@dataclass(slots=True, frozen=True)
class Subscription:
    """A topic or light queue, and which of its messages are wanted; see `make_subscription`."""

    topic: str
    expression: str = ALL
    kind: str = TAG
    tags: frozenset[str] = frozenset()  # none: all
    version: int = field(default_factory=lambda: time.time_ns() // 1_000_000)  # brokers keep the newer of two

    def wants(self, message: Message) -> bool:
        """Whether a message that the broker gave is wanted: it compares hashes of tags, which may be equal."""
        return not self.tags or message.tags in self.tags

    def describe(self) -> dict[str, object]:
        """Return it as heartbeats say it."""
        return {
            "topic": self.topic,
            "subString": self.expression,
            "tagsSet": sorted(self.tags),
            "codeSet": sorted(hash_of_java(tag) for tag in self.tags),
            "subVersion": self.version,
            "expressionType": self.kind,
            "classFilterMode": False,
        }


def make_subscription(topic: str, tags: str = ALL, sql: str = "") -> Subscription:
    """Return what is wanted of a topic.

    Args:
        topic: The topic, or a light queue.
        tags: Only messages with one of these tags: `a || b`; `*` for all.
        sql: Only messages whose properties fit, such as `region = 'north' AND weight > 5`.

    Raises:
        TypeError: They are no text.
        ValueError: Both tags and SQL are given, or there can be no such topic.
    """
    check_topic(topic)
    for name, value in (("tags", tags), ("sql", sql)):
        check_is(name, value, str)
    if not sql:
        wanted = {tag.strip() for tag in tags.split("||")} - {""}
        return Subscription(topic, tags.strip() or ALL, TAG, frozenset() if ALL in wanted else frozenset(wanted))
    if tags.strip() not in {"", ALL}:
        raise ValueError("tags and sql exclude each other")
    return Subscription(topic, sql, SQL)


def hash_of_java(text: str) -> int:
    """Return the hash of a string as Java makes it, in 32 bits with a sign: brokers and other clients use it."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for i in range(0, len(units), 2):
        value = (31 * value + (units[i] << 8 | units[i + 1])) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value
