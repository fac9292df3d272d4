"""One rule, and the words that rules are made of.

Source: docs/decisions/0047-one-language-of-rules.md.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gateway.auth.name_patterns import compile_any, fill_in, fill_in_topic, has_place
from gateway.settings.rules import ALL, NAME_ACTIONS, RuleSettings

PUBLISH, SUBSCRIBE, READ, WRITE, CONFIGURE = "publish", "subscribe", "read", "write", "configure"
TOPIC, GROUP, CLUSTER = "topic", "group", "cluster"
ACTIONS_BY_KIND = {
    kind: {action: f"{action} {kind}" for action in (READ, WRITE, CONFIGURE)} for kind in (TOPIC, GROUP, CLUSTER)
}
"""What an action is called where it is known what a name is of."""
ACTION_OF = {name: action for names in ACTIONS_BY_KIND.values() for action, name in names.items()}
TOPIC_VHOST = "/"  # that the topic space belongs to


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


def make_rule(said: RuleSettings, number: int, called: str, known: Mapping[int, Rule]) -> Rule:
    """Return a rule: where `known` has one of the very same settings (by `id`), that one with its new place."""
    before = known.get(id(said))
    return Rule(number, said, called) if before is None else before.placed(number, called)


def make_rules(said: Sequence[RuleSettings], called: str, first: int = 0) -> list[Rule]:
    """Return rules in their order, numbered from `first`; `called` says in which list an operator finds them."""
    return [Rule(first + i, one, f"{called}[{i}]") for i, one in enumerate(said)]


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
