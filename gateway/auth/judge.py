"""What a user may do, by the rules that are for that user; the answers are not remembered here."""

from __future__ import annotations

from typing import NamedTuple

from core.lmq.topic_space import binding_key_from_filter, routing_key_from_topic
from gateway.auth.rule import ACTION_OF, CONFIGURE, PUBLISH, READ, SUBSCRIBE, WRITE
from gateway.auth.rule_trie import NO_RULE
from gateway.auth.rules import RuleSet
from gateway.auth.user_rows import UserRows

DEFAULT = "auth.default"
PERMISSIONS = "permissions of the user"
OF_NAMES = frozenset({READ, WRITE, CONFIGURE})
OF_TOPICS = {PUBLISH: WRITE, SUBSCRIBE: READ, "bind topic": READ, "publish to matching": WRITE}  # what of `amq.topic`


class Verdict(NamedTuple):
    """An answer, and what decided: a rule, or the setting for what no rule is for."""

    is_allowed: bool
    by: str


class Judge:
    """The rules for one subject.

    Args:
        general: Those that are for everybody.
        own: Those that are for the subject and not for everybody.
        allows: What is allowed that no rule is for: all or nothing.
    """

    __slots__ = ("_allows", "_client", "_general", "_own", "_rows")

    def __init__(self, general: RuleSet, own: RuleSet, *, allows: bool) -> None:
        self._general = general
        self._own = own
        self._allows = allows
        self._rows: UserRows | None = None
        self._client = ""

    def use_rows(self, rows: UserRows, client: str) -> None:
        """Let permissions decide what no rule does."""
        self._rows = rows
        self._client = client

    @property
    def is_open(self) -> bool:
        """Whether everything is allowed, because there are no rules."""
        return self._allows and self._rows is None and not len(self._general) and not len(self._own)

    @property
    def tells_kinds_apart(self) -> bool:
        """Whether a rule is for names of some kind only."""
        return self._general.tells_kinds_apart or self._own.tells_kinds_apart

    def judge_publish(self, topic: bytes) -> Verdict:
        """Say whether messages may be sent to a topic."""
        number = min(self._general.find_topic(topic), self._own.find_topic(topic))
        if number == NO_RULE and self._rows is not None:
            return Verdict(self._rows.may_publish(topic, self._client), PERMISSIONS)
        return self._verdict(number)

    def judge_filter(self, action: str, topic_filter: bytes, *, wide: bool) -> Verdict:
        """Say whether all that a filter matches may be read or sent; what a rule allows in part is not decided by it.

        `wide`: its first wildcard also matches levels that begin with `$`.
        """
        levels = topic_filter.split(b"/")
        general, own = self._general, self._own
        found = general.find_overlapping(action, levels, wide=wide) | own.find_overlapping(action, levels, wide=wide)
        for number in sorted(found):
            rules = own if number in own else general
            if not rules.rule(number).allows or rules.covers(number, levels, wide=wide):
                return self._verdict(number)
        if self._rows is not None:
            right = READ if action == SUBSCRIBE else WRITE
            return Verdict(self._rows.may_filter(right, topic_filter, self._client), PERMISSIONS)
        return self._verdict(NO_RULE)

    def judge_name(self, action: str, vhost: bytes, name: bytes) -> Verdict:
        """Say whether a queue, exchange, topic or group may be read, written to or configured."""
        where, what = vhost.decode(errors="replace"), name.decode(errors="replace")
        general, own = self._general.find_name(action, where, what), self._own.find_name(action, where, what)
        if min(general, own) == NO_RULE and self._rows is not None:
            return Verdict(self._rows.may(ACTION_OF.get(action, action), where, what), PERMISSIONS)
        return self._verdict(min(general, own))

    def judge_key(self, action: str, vhost: bytes, exchange: bytes, key: bytes) -> Verdict:
        """Say whether a routing key of a topic exchange may be used, once the exchange may be."""
        if self._rows is None:
            return Verdict(is_allowed=True, by=DEFAULT)
        where, source, what = (part.decode(errors="replace") for part in (vhost, exchange, key))
        return Verdict(self._rows.may_key(action, where, source, what, self._client), PERMISSIONS)

    def tell_rows(self, action: str, vhost: bytes, name: bytes) -> str:
        """Say which expression of the permissions decides, where they do: about a topic, a filter or a name."""
        assert self._rows is not None
        where, what = vhost.decode(errors="replace"), name.decode(errors="replace")
        if action in OF_NAMES:
            return self._rows.tell(action, where, what)
        key = routing_key_from_topic(name) if action == PUBLISH else binding_key_from_filter(name)
        return self._rows.tell_key(OF_TOPICS[action], key.decode(errors="replace"), self._client)

    def judge_enter(self, vhost: bytes) -> Verdict:
        """Say whether anything may be done in a virtual host."""
        where = vhost.decode(errors="replace")
        allowed = [rules.find_entry(where) for rules in (self._general, self._own)]
        if min(allowed) == NO_RULE and self._rows is not None:
            return Verdict(self._rows.may_enter(where), PERMISSIONS)
        return self._verdict(min(allowed))

    def judge_everything(self) -> Verdict:
        """Say whether all that is stored may be read, in whatever virtual host."""
        topics = self.judge_filter(SUBSCRIBE, b"#", wide=True)
        if not topics.is_allowed:
            return topics
        number = min(self._general.find_reading_of_all(), self._own.find_reading_of_all())
        if number == NO_RULE and self._rows is not None:
            return Verdict(is_allowed=False, by=PERMISSIONS)
        return self._verdict(number)

    def _verdict(self, number: int) -> Verdict:
        if number == NO_RULE:
            return Verdict(self._allows, DEFAULT)
        rule = (self._own if number in self._own else self._general).rule(number)
        return Verdict(rule.allows, rule.called)
