"""What a group wants of one topic, as its members' heartbeats say."""

from __future__ import annotations

from typing import Any, Protocol

from gateway.rocketmq.errors import CommandRefusedError
from gateway.rocketmq.filters.matching import Filter, parse_filter
from gateway.rocketmq.tag_filter import ALL, TAG

VERSION_END = 1 << 63  # Java's long is below
SHOWN_CHARS_MAX = 8_192  # of an expression that is kept to be shown: as long as a filter may be


class Subscription:
    """What a group wants of one topic; a newer version replaces an older one.

    Args:
        wanted: The messages that it wants.
        version: The number that its client gave it.
        kind: The kind of the expression.
        text: The expression.
        refusal: Why nothing can be filtered by it, None where it can.
    """

    __slots__ = ("kind", "refusal", "text", "version", "wanted")

    def __init__(
        self, wanted: Filter, version: int, *, kind: str = TAG, text: str = ALL, refusal: str | None = None
    ) -> None:
        self.wanted = wanted
        self.version = version
        self.kind = kind
        self.text = text
        self.refusal = refusal


def read_subscription(said: dict[str, Any]) -> Subscription:
    """Return the subscription that a heartbeat describes; a wrong expression is told to those that pull by it."""
    version = said.get("subVersion")
    kind = str(said.get("expressionType") or TAG)
    text = str(said.get("subString") or ALL)
    wanted: Filter = None
    refusal = None
    try:
        wanted = parse_filter(kind, text)
    except CommandRefusedError as error:
        refusal = error.remark
    return Subscription(
        wanted,
        version if isinstance(version, int) and abs(version) < VERSION_END else 0,
        kind=kind,
        text=text[:SHOWN_CHARS_MAX],
        refusal=refusal,
    )


class Subscriptions(Protocol):
    """What groups want, by their heartbeats: the client table."""

    def find_subscription(self, group: str, topic: str) -> Subscription:
        """Return what the group wants of the topic, or refuse the request."""

    def is_broadcast(self, group: str) -> bool:
        """Return whether each member of the group gets all messages."""
