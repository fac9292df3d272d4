"""RabbitMQ's permissions of one user: expressions for names in each virtual host, and for routing keys of exchanges.

An expression is looked for anywhere in a name; the empty one matches the empty name alone, as with RabbitMQ. In those
for keys `{username}`, `{vhost}` and `{client_id}` stand for the texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from core.lmq.topic_space import binding_key_from_filter, routing_key_from_topic
from gateway.auth.name_patterns import escape
from gateway.auth.rule import TOPIC_VHOST, WRITE
from gateway.logs import said
from gateway.regex import Regex, compile_regex

AMQ_TOPIC = "amq.topic"
PLACES = ("{username}", "{vhost}", "{client_id}")
COMPILED_MAX = 1_024  # expressions with texts in them that are remembered of one user; chosen: names seldom vary more


class NameRow(NamedTuple):
    """What may be done with names in a virtual host, as three expressions."""

    configure: str
    write: str
    read: str


EVERYTHING = NameRow(".*", ".*", ".*")


class KeyRow(NamedTuple):
    """Which routing keys may be sent to an exchange, and bound from it, as two expressions."""

    write: str
    read: str


class UserRows:
    """All permissions of one user.

    Args:
        user: The user's name.
        names: By virtual host.
        keys: By virtual host and exchange; where there is none, all keys may be used.
    """

    __slots__ = ("_compiled", "_keys", "_names", "_user")

    def __init__(self, user: str, names: Mapping[str, NameRow], keys: Mapping[tuple[str, str], KeyRow]) -> None:
        self._user = user
        self._names = dict(names)
        self._keys = dict(keys)
        self._compiled: dict[str, Regex] = {}

    def with_all_of(self, vhost: str) -> UserRows:
        """Return these, and all permissions in a virtual host that they say nothing of."""
        return self if vhost in self._names else UserRows(self._user, {**self._names, vhost: EVERYTHING}, self._keys)

    def reads_less_than(self, other: UserRows) -> bool:
        """Return whether something that `other` may read may not be read by these; yes where that is not known."""
        for vhost, row in other._names.items():
            ours = self._names.get(vhost)
            if ours is not row and (ours is None or ours.read != row.read):
                return True
        for key, keys_row in self._keys.items():  # where there is none, all keys may be read
            theirs = other._keys.get(key)
            if theirs is not keys_row and (theirs is None or theirs.read != keys_row.read):
                return True
        return False

    def may_enter(self, vhost: str) -> bool:
        """Return whether there are permissions in a virtual host."""
        return vhost in self._names

    def may(self, action: str, vhost: str, name: str) -> bool:
        """Return whether an action on a name is allowed: `configure`, `write` or `read`."""
        row = self._names.get(vhost)
        return row is not None and self._matches(getattr(row, action), name)

    def may_key(self, action: str, vhost: str, exchange: str, key: str, client: str) -> bool:
        """Return whether a routing key may be sent (`write`) or bound (`read`)."""
        row = self._keys.get((vhost, exchange))
        if row is None:
            return True
        expression: str = getattr(row, action)
        for place, text in zip(PLACES, (self._user, vhost, client), strict=True):
            expression = expression.replace(place, escape(text))
        return self._matches(expression, key)

    def may_publish(self, topic: bytes, client: str) -> bool:
        """Return whether a topic of the topic space may be sent to: `amq.topic`, by its routing key."""
        return self.may(WRITE, TOPIC_VHOST, AMQ_TOPIC) and self.may_key(
            WRITE, TOPIC_VHOST, AMQ_TOPIC, routing_key_from_topic(topic).decode(errors="replace"), client
        )

    def may_filter(self, action: str, topic_filter: bytes, client: str) -> bool:
        """Return whether a filter may be read or sent to: as a binding key, which the expression is looked for in."""
        key = binding_key_from_filter(topic_filter).decode(errors="replace")
        return self.may(action, TOPIC_VHOST, AMQ_TOPIC) and self.may_key(action, TOPIC_VHOST, AMQ_TOPIC, key, client)

    def tell(self, action: str, vhost: str, name: str) -> str:
        """Say which expression decides about an action on a name, and how; of a long name a part is told."""
        row = self._names.get(vhost)
        if row is None:
            return f"none in vhost '{vhost}'"
        told = self._told(self.may(action, vhost, name))
        return f"{action} '{getattr(row, action)}' in vhost '{vhost}' {told} '{said(name)}'"

    def tell_key(self, action: str, key: str, client: str) -> str:
        """Say the same of a routing or binding key of the topic space: of `amq.topic`, or of its keys."""
        row = self._keys.get((TOPIC_VHOST, AMQ_TOPIC))
        if row is None or not self.may(action, TOPIC_VHOST, AMQ_TOPIC):
            return self.tell(action, TOPIC_VHOST, AMQ_TOPIC)
        told = self._told(self.may_key(action, TOPIC_VHOST, AMQ_TOPIC, key, client))
        return f"{action} '{getattr(row, action)}' for keys of '{AMQ_TOPIC}' {told} '{said(key)}'"

    @staticmethod
    def _told(matches: bool) -> str:  # noqa: FBT001 - an answer
        return "matches" if matches else "does not match"

    def _matches(self, expression: str, name: str) -> bool:
        if not expression:
            return not name
        compiled = self._compiled.get(expression)
        if compiled is None:
            if len(self._compiled) >= COMPILED_MAX:
                self._compiled.clear()
            compiled = self._compiled[expression] = compile_regex(expression)
        return compiled.search(name) is not None
