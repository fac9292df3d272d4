"""Which topics a bridge carries, and what they are called on the other side."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from gateway.settings.bridges import BridgeSettings, BridgeTopicSettings


class Rule(NamedTuple):
    """Maps topics that begin with one prefix to topics that begin with the other."""

    topic_filter: str  # what is subscribed to where they come from
    qos: int
    prefix: str  # where they come from
    other_prefix: str  # where they go to

    def rename(self, topic: str) -> str:
        """Return what a topic that the filter matches is called on the other side."""
        return self.other_prefix + topic[len(self.prefix) :]


class Rules:
    """The rules of one bridge.

    Attributes:
        outgoing: Those of what goes out, by the filter here.
        incoming: Those of what comes in, in the order of the settings.
    """

    def __init__(self, settings: BridgeSettings) -> None:
        self.outgoing: dict[str, list[Rule]] = {}
        for rule in _rules(settings.topics, "out"):
            self.outgoing.setdefault(rule.topic_filter, []).append(rule)
        self.incoming = list(_rules(settings.topics, "in"))

    def subscriptions(self) -> list[tuple[str, int]]:
        """Return the filters to subscribe to here, each with its QoS; a rule's number is its filter's, from 1."""
        return [(name, max(rule.qos for rule in rules)) for name, rules in self.outgoing.items()]


def _rules(topics: Iterable[BridgeTopicSettings], direction: str) -> Iterable[Rule]:
    for topic in topics:
        if topic.direction in {direction, "both"}:
            here, there = topic.local_prefix, topic.remote_prefix
            source, target = (here, there) if direction == "out" else (there, here)
            yield Rule(source + topic.filter, topic.qos, source, target)


def matches(topic_filter: str, topic: str) -> bool:
    """Return whether a filter matches a topic, as MQTT says."""
    levels, wanted = topic.split("/"), topic_filter.split("/")
    if topic.startswith("$") and wanted[0] in {"+", "#"}:
        return False
    if wanted[-1] == "#":
        wanted.pop()
        levels = levels[: len(wanted)] if len(levels) >= len(wanted) else levels
    return len(levels) == len(wanted) and all(
        level in {"+", found} for level, found in zip(wanted, levels, strict=True)
    )
