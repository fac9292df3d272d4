"""Rewrites topics by rules: topics that clients publish to, and filters that they subscribe to.

The first rule whose source filter matches is the one; where its pattern does not match all stays as it is. What is
stored, matched and asked rights for is what a topic became.
"""

from __future__ import annotations

import re
from dataclasses import replace

from core.cache_budget import Cache, CacheBudget
from core.lmq.retained import filter_matches
from gateway.auth.credentials import OWN_PREFIX
from gateway.mqtt.errors import MalformedPacketError
from gateway.mqtt.packets import Will
from gateway.mqtt.topics import check_topic, check_topic_filter, plain_filter, split_delayed
from gateway.settings.topic_rules import RewriteRule

_PLACE = re.compile(rb"\$([1-9])|%c|%u|\$\{clientid\}|\$\{username\}")
_CLIENT = frozenset((b"%c", b"${clientid}"))
_PUBLISH = "publish"
_SUBSCRIBE = "subscribe"


class Rule:
    """One rule, made ready."""

    def __init__(self, settings: RewriteRule) -> None:
        self.source = settings.source.encode()
        self.pattern = re.compile(settings.pattern.encode())
        self.destination = settings.destination.encode()

    def apply(self, topic: bytes, client_id: bytes, user: bytes) -> bytes | None:
        """Return what a topic becomes, None where it stays."""
        found = self.pattern.match(topic)
        if found is None:
            return None

        def place(which: re.Match[bytes]) -> bytes:
            if which[1] is not None:
                number = int(which[1])
                return (found[number] or b"") if number <= self.pattern.groups else b""
            return client_id if which[0] in _CLIENT else user

        return _PLACE.sub(place, self.destination)


_OWN = OWN_PREFIX.encode()


class Rewriting:
    """All rules of a door.

    Args:
        rules: In their order.
        caches: Bounds what is remembered of topics that no rule is for.
    """

    def __init__(self, rules: tuple[RewriteRule, ...], caches: CacheBudget) -> None:
        self._for_publish = [Rule(rule) for rule in rules if rule.action != _SUBSCRIBE]
        self.is_for_publish = bool(self._for_publish)  # whether there is a rule for what is published
        self._for_subscribe = [Rule(rule) for rule in rules if rule.action != _PUBLISH]
        self._untouched = Cache(caches, "topics_not_rewritten", _measure)

    def published(self, topic: bytes, client_id: bytes, user: bytes) -> bytes:
        """Return what a topic that is published to becomes; one that would be no topic then stays."""
        if self._untouched.get(topic) is not None:
            return topic
        rule = _find(self._for_publish, topic)
        if rule is None:
            self._untouched.put(topic, True)  # noqa: FBT003 - the value says nothing
            return topic
        made = rule.apply(topic, client_id, user)
        return topic if made is None or not _is_sound(made, is_filter=False) else made

    def subscribed(self, topic_filter: bytes, client_id: bytes, user: bytes) -> bytes:
        """Return what a filter becomes; what stands before it, such as a shared group, stays."""
        if user.startswith(_OWN):  # a bridge's filters are as its settings say
            return topic_filter
        plain = plain_filter(topic_filter)
        rule = _find(self._for_subscribe, plain) if plain else None
        made = None if rule is None else rule.apply(plain, client_id, user)
        if made is None or not _is_sound(made, is_filter=True):
            return topic_filter
        return topic_filter.removesuffix(plain) + made

    def will(self, will: Will, client_id: bytes, user: bytes) -> Will:
        """Return a will that is published as its client's messages are."""
        if not self._for_publish:
            return will
        before, topic = split_delayed(will.topic)
        return replace(will, topic=before + self.published(topic, client_id, user))


def _measure(value: bool, generation: int) -> int:  # noqa: ARG001, FBT001 - the interface says so
    return 0


def _find(rules: list[Rule], topic: bytes) -> Rule | None:
    for rule in rules:
        if filter_matches(rule.source, topic):
            return rule
    return None


def _is_sound(topic: bytes, *, is_filter: bool) -> bool:
    try:
        (check_topic_filter if is_filter else check_topic)(topic)
    except MalformedPacketError:
        return False
    return True
