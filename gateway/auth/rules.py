"""Rules as they are asked: the first one that is for a question decides it, found by indexes that are made in steps.

Source: docs/decisions/0047-one-language-of-rules.md.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from itertools import chain
from typing import TypeVar

from gateway.auth.name_patterns import NameIndex, is_exact
from gateway.auth.rule import (
    ACTION_OF,
    ACTIONS_BY_KIND,
    CONFIGURE,
    PUBLISH,
    READ,
    SUBSCRIBE,
    TOPIC_VHOST,
    WRITE,
    Rule,
    Subject,
    make_rules,
)
from gateway.auth.rule_trie import NO_RULE, RuleTrie
from gateway.auth.topic_patterns import covers

VHOSTS_MAX = 64  # virtual hosts for which a set of rules remembers its groups that count there; chosen: most have few
OF_BACKEND = "rules of the back end"
PATTERNS_A_STEP = 128  # that are indexed; at most 10 us each, those with expressions too
RULES_A_STEP = 512  # that are looked at; at most 2 us each
SETS_MAX = 4_096  # that are remembered: users with the same rules share them


Vhosts = tuple[str, ...]
"""What rules say of virtual hosts: patterns, none for all."""
Made = TypeVar("Made")
Steps = Generator[None, None, Made]
"""Work in steps of a millisecond or so, and what it makes."""


def at_once(steps: Steps[Made]) -> Made:
    """Return what some steps make, without a rest between them."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            made: Made = end.value
            return made


class RuleSet:
    """Rules with the same conditions behind them, to be asked of topics and names."""

    __slots__ = ("_by_number", "_groups", "_groups_of", "_names", "_rules", "_tries", "tells_kinds_apart")

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = rules
        self.tells_kinds_apart = any(rule.said.kinds for rule in rules)
        self._by_number = {rule.number: rule for rule in rules}
        self._tries: dict[str, tuple[RuleTrie, int]] = {}
        self._groups: dict[Vhosts, list[Rule]] | None = None  # rules by what they say of virtual hosts
        self._groups_of: dict[str, list[Vhosts]] = {}  # of a virtual host that was asked about
        self._names: dict[tuple[str, Vhosts], NameIndex] = {}

    def __len__(self) -> int:
        return len(self._rules)

    def rule(self, number: int) -> Rule:
        """Return the rule with a number."""
        return self._by_number[number]

    def __contains__(self, number: int) -> bool:
        return number in self._by_number

    def find_topic(self, topic: bytes) -> int:
        """Return the first rule for a message to a topic, `NO_RULE` where there is none."""
        trie, always = self._trie(PUBLISH)
        return min(trie.find_first(topic), always)

    def find_overlapping(self, action: str, levels: list[bytes], *, wide: bool) -> set[int]:
        """Return the rules that say something of topics that match a filter."""
        trie, always = self._trie(action)
        return trie.find_overlapping(levels, wide=wide) | ({always} - {NO_RULE})

    def covers(self, number: int, levels: list[bytes], *, wide: bool) -> bool:
        """Return whether a rule is for all topics that match a filter."""
        topics = self._by_number[number].said.topics
        return not topics or any(covers(topic.encode().split(b"/"), levels, wide=wide) for topic in topics)

    def find_name(self, action: str, vhost: str, name: str) -> int:
        """Return the first rule for an action on a name, `NO_RULE` where there is none."""
        said, best = self._said(action), NO_RULE
        for vhosts in self._find_groups(vhost):
            index = self._names.get((said, vhosts))
            if index is None:
                deque(self._index_names(said, vhosts), maxlen=0)
                index = self._names[said, vhosts]
            best = min(best, index.find_first(name))
        return best

    def _said(self, action: str) -> str:
        """Return under which action the names are indexed that count for one: others may share it."""
        return action if self.tells_kinds_apart else ACTION_OF.get(action, action)

    def _find_groups(self, vhost: str) -> list[Vhosts]:
        """Return the groups whose rules are for a virtual host."""
        found = self._groups_of.get(vhost)
        if found is None:
            if self._groups is None:
                deque(self._group(), maxlen=0)
            assert self._groups is not None
            found = [vhosts for vhosts, rules in self._groups.items() if rules[0].is_for_vhost(vhost)]
            if len(self._groups_of) >= VHOSTS_MAX:
                self._groups_of.clear()
            self._groups_of[vhost] = found
        return found

    def _group(self) -> Iterator[None]:
        groups: dict[Vhosts, list[Rule]] = {}
        for looked, rule in enumerate(self._rules, 1):
            if looked % RULES_A_STEP == 0:
                yield
            groups.setdefault(rule.said.vhosts, []).append(rule)
        self._groups = groups

    def find_entry(self, vhost: str) -> int:
        """Return the first rule that lets in to a virtual host, or keeps out of all that is there."""
        best = NO_RULE
        for vhosts in self._find_groups(vhost):
            entries = (rule.number for rule in (self._groups or {})[vhosts] if rule.allows or rule.is_total)
            best = min(best, next(entries, NO_RULE))
        return best

    def find_reading_of_all(self) -> int:
        """Return the first rule that denies to read some name, or allows to read all of them."""
        for rule in self._rules:
            said = rule.said
            is_of_topics = bool(said.topics) and not said.names
            is_of_some = bool(said.topics or said.names or said.vhosts or said.kinds)
            if rule.says(READ) and not (is_of_some if rule.allows else is_of_topics):
                return rule.number
        return NO_RULE

    @property
    def asked(self) -> list[str]:
        """The virtual hosts whose names were asked for; VHOSTS_MAX at most."""
        return list(self._groups_of)

    def index(self, before: RuleSet | None = None) -> Iterator[None]:
        """Make, in steps, what is asked of topics and of names.

        Names of a few rules for some virtual hosts are left for the first question there, but where `before`, the rules
        before these, were asked about one.
        """
        for action in (PUBLISH, SUBSCRIBE):
            yield from self._index_topics(action)
        actions = [(READ, WRITE, CONFIGURE), *(names.values() for names in ACTIONS_BY_KIND.values())]
        wanted = dict.fromkeys(self._said(action) for action in chain.from_iterable(actions))
        yield from self._group()
        groups = self._groups or {}
        found = dict.fromkeys(vhosts for vhosts, rules in groups.items() if len(rules) > PATTERNS_A_STEP)
        for vhost in [TOPIC_VHOST, *([] if before is None else before.asked)]:
            found.update(dict.fromkeys(self._find_groups(vhost)))
            yield
        for vhosts in found:
            for action in wanted:
                yield from self._index_names(action, vhosts)

    def _trie(self, action: str) -> tuple[RuleTrie, int]:
        """Return the filters of an action's rules, and the number of the first rule that is for all topics."""
        if action not in self._tries:
            deque(self._index_topics(action), maxlen=0)
        return self._tries[action]

    def _index_topics(self, action: str) -> Iterator[None]:
        trie, always, count = RuleTrie(), NO_RULE, 0
        for looked, rule in enumerate(self._rules, 1):
            if looked % RULES_A_STEP == 0:
                yield
            if not (rule.is_for_action(action) and rule.is_for_vhost(TOPIC_VHOST)):
                continue
            for topic in rule.said.topics:
                trie.add(topic.encode().split(b"/"), rule.number)
                count += 1
                if count % PATTERNS_A_STEP == 0:
                    yield
            if not rule.said.topics and not rule.said.names:
                always = min(always, rule.number)
        self._tries[action] = trie, always

    def _index_names(self, action: str, vhosts: Vhosts) -> Iterator[None]:
        index, count = NameIndex(), 0
        for looked, rule in enumerate((self._groups or {})[vhosts], 1):
            if looked % RULES_A_STEP == 0:
                yield
            if rule.is_for_action(action):
                for name in rule.said.names:
                    index.add(name, rule.number)
                    count += 1
                    if count % PATTERNS_A_STEP == 0:
                        yield
                if not rule.said.topics and not rule.said.names:
                    index.add_always(rule.number)
        self._names[action, vhosts] = index


class Rules:
    """All rules, and which subjects each is for.

    Those for everybody are one set; the others are found by the user's name, or the client's, or a group's.
    """

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.all = rules
        self.tells_clients_apart = False
        self._by_user: dict[str, list[Rule]] = {}
        self._by_client: dict[str, list[Rule]] = {}
        self._by_group: dict[str, list[Rule]] = {}
        self._others: list[Rule] = []
        self._sets: dict[tuple[int, ...], RuleSet] = {}
        self.general = RuleSet(())

    def place(self) -> Iterator[None]:
        """Tell, in steps, which subjects each is for; before that none is for anybody."""
        general = []
        for count, rule in enumerate(self.all, 1):
            if not rule.has_condition:
                general.append(rule)
            else:
                self.tells_clients_apart |= rule.tells_clients_apart
                self._place(rule)
            if count % RULES_A_STEP == 0:
                yield
        self.general = RuleSet(general)

    def _place(self, rule: Rule) -> None:
        said = rule.said
        tables = ((said.users, self._by_user), (said.clients, self._by_client), (said.groups, self._by_group))
        for names, table in tables:
            if names and all(map(is_exact, names)):
                for name in set(names):
                    table.setdefault(name, []).append(rule)
                return
        self._others.append(rule)

    def find_own(self, subject: Subject, groups: tuple[str, ...]) -> RuleSet:
        """Return the rules for a subject in these groups, beside the general ones."""
        candidates = [*self._by_user.get(subject.user, ()), *self._by_client.get(subject.client, ()), *self._others]
        candidates += {rule.number: rule for name in groups for rule in self._by_group.get(name, ())}.values()
        rules = sorted((rule for rule in candidates if rule.is_for(subject, groups)), key=lambda rule: rule.number)
        if subject.rules:
            rules += make_rules(subject.rules, OF_BACKEND, len(self.all))
        if subject.rules or any(rule.is_own for rule in rules):
            filled = [rule.filled(subject) if rule.is_own else rule for rule in rules]
            return RuleSet([rule for rule in filled if rule is not None])
        key = tuple(rule.number for rule in rules)
        if key not in self._sets:
            if len(self._sets) >= SETS_MAX:
                self._sets.clear()
            self._sets[key] = RuleSet(rules)
        return self._sets[key]


def make_whole(rules: Sequence[Rule]) -> Rules:
    """Return rules that are placed."""
    made = Rules(rules)
    deque(made.place(), maxlen=0)
    return made
