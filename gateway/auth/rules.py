"""Rules as they are evaluated: the first one that is for a question decides it.

Source: docs/decisions/0047-one-language-of-rules.md.
"""

from __future__ import annotations

import ipaddress
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple, TypeVar

from gateway.auth.name_patterns import NameIndex, compile_any, fill_in, fill_in_topic, has_place, is_exact
from gateway.auth.rule_trie import NO_RULE, RuleTrie
from gateway.auth.topic_patterns import covers
from gateway.rule_settings import ALL, NAME_ACTIONS, RuleSettings

PUBLISH, SUBSCRIBE, READ, WRITE, CONFIGURE = "publish", "subscribe", "read", "write", "configure"
TOPIC, GROUP, CLUSTER = "topic", "group", "cluster"
ACTIONS_BY_KIND = {
    kind: {action: f"{action} {kind}" for action in (READ, WRITE, CONFIGURE)} for kind in (TOPIC, GROUP, CLUSTER)
}
"""What an action is called where it is known what a name is of."""
ACTION_OF = {name: action for names in ACTIONS_BY_KIND.values() for action, name in names.items()}
TOPIC_VHOST = "/"  # that the topic space belongs to
VHOSTS_MAX = 64  # of which one set of rules remembers which of its groups are for them
OF_BACKEND = "rules of the back end"
NOTHING: Mapping[int, Rule] = {}
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


class Subject(NamedTuple):
    """The asker. `client` is an MQTT client identifier, `host` empty where it is not known.

    `groups` are those of a token that the user came in by; None: those of the user. `rules` are behind all others.
    """

    user: str
    client: str
    host: str
    door: str
    groups: tuple[str, ...] | None = None
    rules: tuple[RuleSettings, ...] = ()


class Rule:
    """One rule, with its place among all: the lower number comes first."""

    __slots__ = (
        "_clients",
        "_groups",
        "_networks",
        "_users",
        "_vhosts",
        "allows",
        "called",
        "has_condition",
        "is_of_reading",
        "is_own",
        "number",
        "said",
        "tells_clients_apart",
    )

    def __init__(self, number: int, said: RuleSettings, called: str) -> None:
        self.number = number
        self.said = said
        self.called = called  # how an operator finds it
        self.allows = said.permit == "allow"
        self.is_own = any(map(has_place, (*said.topics, *said.names)))  # it is another one for each user or client
        self.tells_clients_apart = bool(self.is_own or said.clients or said.addresses or said.doors)  # of one user
        self.has_condition = bool(self.tells_clients_apart or said.users or said.groups)  # for some, or one for each
        self.is_of_reading = self.says(SUBSCRIBE) or self.says(READ)
        self._users = compile_any(said.users)
        self._groups = compile_any(said.groups)
        self._clients = compile_any(said.clients)
        self._vhosts = compile_any(said.vhosts)
        self._networks = [ipaddress.ip_network(network) for network in said.addresses]

    def placed(self, number: int, called: str) -> Rule:
        """Return the same rule with another place; making one anew takes ten times as long."""
        if number == self.number and called == self.called:
            return self
        other = Rule.__new__(Rule)
        for name in Rule.__slots__:
            setattr(other, name, getattr(self, name))
        other.number, other.called = number, called
        return other

    def is_for(self, subject: Subject, groups: tuple[str, ...]) -> bool:
        """Return whether the rule is for what a subject asks."""
        said = self.said
        return bool(
            (not said.users or self._users(subject.user))
            and (not said.groups or any(map(self._groups, groups)))
            and (not said.clients or (subject.client != "" and self._clients(subject.client)))
            and (not said.doors or subject.door in said.doors)
            and (not said.addresses or self._has_address(subject.host))
        )

    def _has_address(self, host: str) -> bool:
        """Return whether an address is of the rule; one that is not known is denied what any may be."""
        try:
            address = ipaddress.ip_address(host.strip("[]").partition("%")[0])
        except ValueError:
            return not self.allows
        address = getattr(address, "ipv4_mapped", None) or address
        return any(address in network for network in self._networks)

    @property
    def is_total(self) -> bool:
        """Whether the rule is for all that may be done with names."""
        said = self.said
        is_of_all = ALL in said.actions or set(said.actions) >= NAME_ACTIONS
        return is_of_all and not (said.topics or said.names or said.kinds)

    def is_for_action(self, action: str) -> bool:
        """Return whether the rule says something of an action, which may be one on names of a kind."""
        kinds = self.said.kinds
        return self.says(ACTION_OF.get(action, action)) and (not kinds or action.partition(" ")[2] in kinds)

    def says(self, action: str) -> bool:
        """Return whether the rule says something of an action, if only on names of some kind."""
        return ALL in self.said.actions or action in self.said.actions

    def is_for_vhost(self, vhost: str) -> bool:
        """Return whether the rule is for a virtual host."""
        return not self.said.vhosts or self._vhosts(vhost)

    def filled(self, subject: Subject) -> Rule | None:
        """Return the rule as it is for a subject; None where none of what it is for can be."""
        said = self.said
        topics = [fill_in_topic(topic, subject.user, subject.client) for topic in said.topics]
        names = [fill_in(name, subject.user, subject.client) for name in said.names]
        there = {
            "topics": tuple(topic for topic in topics if topic is not None),
            "names": tuple(name for name in names if name is not None),
        }
        if not there["topics"] and not there["names"]:
            return None
        return Rule(self.number, said.model_copy(update=there), self.called)


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


def know_rules(rules: Iterable[Rule]) -> dict[int, Rule]:
    """Return rules by what they were made of, the very object, for `make_rule`; as long as they are there."""
    return {id(rule.said): rule for rule in rules}


def make_rule(said: RuleSettings, number: int, called: str, known: Mapping[int, Rule]) -> Rule:
    """Return a rule, that of `known` with its new place where there is one."""
    before = known.get(id(said))
    return Rule(number, said, called) if before is None else before.placed(number, called)


def make_rules(
    said: Sequence[RuleSettings], called: str, first: int = 0, known: Mapping[int, Rule] = NOTHING
) -> list[Rule]:
    """Return rules in their order, numbered from `first`; `called` says in which list an operator finds them."""
    return [make_rule(one, first + i, f"{called}[{i}]", known) for i, one in enumerate(said)]


def keep_same(before: Sequence[RuleSettings], after: Sequence[RuleSettings]) -> list[RuleSettings]:
    """Return `after`, with the very objects of `before` for what begins and ends alike: these cost nothing."""
    kept = list(after)
    end = min(len(before), len(after))
    start = 0
    while start < end and is_same(before[start], after[start]):
        kept[start] = before[start]
        start += 1
    for i in range(1, end - start + 1):
        if not is_same(before[-i], after[-i]):
            break
        kept[-i] = before[-i]
    return kept


def is_same(one: RuleSettings, other: RuleSettings) -> bool:
    """Return whether two rules say the same."""
    return one is other or one == other
