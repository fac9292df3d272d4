"""Policies: what many queues and exchanges are told at once, by patterns of their names; durable.

Of the policies whose pattern is found in a name that with the highest priority holds, alone; of operator policies too,
and of both the stricter limit. Patterns are matched in time that grows with the name alone.

Source: docs/protocols/amqp.md, "Policies".
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from core.broker import Broker
from core.queues.terms import stricter
from gateway.amqp.argument_rules import CLASSIC, QUORUM, STREAM
from gateway.amqp.policy_keys import Definition, find_fault
from gateway.regex import Regex, compile_regex

TABLE = "amqp_policies"
EXCHANGES = "exchanges"
QUEUES = "queues"
ALL = "all"
ALTERNATE_EXCHANGE = "alternate-exchange"
APPLIES_TO = (QUEUES, EXCHANGES, "classic_queues", "quorum_queues", "streams", ALL)
PATTERN_BYTES_MAX = 4_096  # chosen: an expression takes memory in proportion, and is tried on each name
KINDS = {CLASSIC: "classic_queues", QUORUM: "quorum_queues", STREAM: "streams"}
Key = tuple[bool, str, str]  # whether it is an operator's, virtual host, name


class Policy(NamedTuple):
    """One policy.

    Args:
        vhost: The virtual host that it is of.
        name: Its name; an operator policy may have that of another.
        pattern: Looked for anywhere in names, as a regular expression.
        definition: What it says.
        priority: That with the highest one holds; of equal ones the first by name.
        apply_to: What it is for, one of `APPLIES_TO`.
        is_operator: Whether it is an operator's.
    """

    vhost: str
    name: str
    pattern: str
    definition: Definition
    priority: int = 0
    apply_to: str = ALL
    is_operator: bool = False

    @property
    def key(self) -> Key:
        """What tells it from others."""
        return self.is_operator, self.vhost, self.name


class InvalidPolicyError(Exception):
    """A policy that RabbitMQ would refuse, in its words."""


class Ruling(NamedTuple):
    """What holds for one queue or exchange: the policy, the operator policy, and what both say together."""

    policy: Policy | None
    operator: Policy | None
    definition: Definition


NOTHING = Ruling(None, None, {})


class Policies:
    """All policies of all virtual hosts.

    Args:
        broker: Keeps them.
    """

    def __init__(self, broker: Broker) -> None:
        self._table = broker.table(TABLE)
        self._policies: dict[Key, Policy] = {}
        self._patterns: dict[Key, Regex] = {}
        self._ranked: dict[tuple[bool, str], list[tuple[Policy, Regex]]] = {}  # the highest priority first
        for key, value in list(self._table.items()):
            is_operator, vhost, name = json.loads(key)
            said = json.loads(value)
            self._keep(Policy(vhost, name, **said, is_operator=is_operator))
        for is_operator, vhost in {key[:2] for key in self._policies}:
            self._rank(vhost, is_operator=is_operator)

    def __iter__(self) -> Iterator[Policy]:
        """Give all of them."""
        return iter(list(self._policies.values()))

    def of_vhost(self, vhost: str) -> list[Policy]:
        """Return those of one virtual host."""
        return [one for one in self._policies.values() if one.vhost == vhost]

    def find(self, vhost: str, name: str, *, is_operator: bool = False) -> Policy | None:
        """Return a policy, or None."""
        return self._policies.get((is_operator, vhost, name))

    def put(self, policy: Policy) -> bool:
        """Keep a policy from now on; return whether it is a new one.

        Raises:
            InvalidPolicyError: Its pattern, its definition or what it is for may not be.
        """
        check_policy(policy)
        is_new = policy.key not in self._policies
        self._keep(policy)
        said = {
            "pattern": policy.pattern,
            "definition": policy.definition,
            "priority": policy.priority,
            "apply_to": policy.apply_to,
        }
        self._table.put(json.dumps(policy.key).encode(), json.dumps(said).encode())
        self._rank(policy.vhost, is_operator=policy.is_operator)
        return is_new

    def delete(self, policy: Policy) -> None:
        """Forget a policy."""
        del self._policies[policy.key], self._patterns[policy.key]
        self._table.delete(json.dumps(policy.key).encode())
        self._rank(policy.vhost, is_operator=policy.is_operator)

    def forget(self, vhost: str) -> None:
        """Forget those of a virtual host that goes."""
        for policy in self.of_vhost(vhost):
            self.delete(policy)

    def _keep(self, policy: Policy) -> None:
        self._policies[policy.key] = policy
        self._patterns[policy.key] = compile_regex(policy.pattern)

    def _rank(self, vhost: str, *, is_operator: bool) -> None:
        found = [one for one in self._policies.values() if one.vhost == vhost and one.is_operator == is_operator]
        found.sort(key=lambda one: (-one.priority, one.name))
        self._ranked[is_operator, vhost] = [(one, self._patterns[one.key]) for one in found]

    def rule_queue(self, vhost: str, name: str, kind: str) -> Ruling:
        """Return what holds for a queue of a type."""
        return self._rule(vhost, name, (QUEUES, ALL, KINDS.get(kind, QUEUES)))

    def rule_exchange(self, vhost: str, name: str) -> Ruling:
        """Return what holds for an exchange."""
        return self._rule(vhost, name, (EXCHANGES, ALL))

    def find_alternate(self, vhost: str, exchange: str) -> object:
        """Return the alternate exchange that policies give one, None where they give none."""
        return self.rule_exchange(vhost, exchange).definition.get(ALTERNATE_EXCHANGE)

    def _rule(self, vhost: str, name: str, kinds: tuple[str, ...]) -> Ruling:
        policy, operator = (self._first(vhost, name, kinds, is_operator=which) for which in (False, True))
        if policy is None and operator is None:
            return NOTHING
        merged = dict(policy.definition) if policy is not None else {}
        for key, value in operator.definition.items() if operator is not None else ():
            ours = merged.get(key)
            merged[key] = stricter(ours, value) if isinstance(ours, int) and isinstance(value, int) else value
        return Ruling(policy, operator, merged)

    def _first(self, vhost: str, name: str, kinds: tuple[str, ...], *, is_operator: bool) -> Policy | None:
        for policy, pattern in self._ranked.get((is_operator, vhost), ()):
            if policy.apply_to in kinds and pattern.search(name) is not None:
                return policy
        return None


def check_policy(policy: Policy) -> None:
    """Check what a policy says.

    Raises:
        InvalidPolicyError: It may not be.
    """
    if len(policy.pattern.encode()) > PATTERN_BYTES_MAX:
        raise InvalidPolicyError(f"pattern should have at most {PATTERN_BYTES_MAX} bytes")
    try:
        compile_regex(policy.pattern)
    except ValueError as error:
        why = str(error).partition(": ")[2]
        raise InvalidPolicyError(f"pattern should be regular expression but is invalid: {why}") from error
    if policy.apply_to not in APPLIES_TO:
        choices = "', '".join(APPLIES_TO[:-1])
        raise InvalidPolicyError(f"apply-to '{policy.apply_to}' unrecognised; should be '{choices}' or '{ALL}'")
    fault = find_fault(policy.definition, is_operator=policy.is_operator)
    if fault is not None:
        raise InvalidPolicyError(fault)
