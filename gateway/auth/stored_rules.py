"""Rules in the data folder, each with a name, changed while the gateway runs. They come after those of the settings.

So the settings have the first word, and administrators of the API decide what is left open there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

from gateway.auth.rule_draft import Part
from gateway.settings.rules import RuleSettings

NAME_BYTES_MAX = 255  # as of a user's name
RULES_MAX = 10_000  # chosen: so many are indexed in some 100 ms, in steps
_ORDER = b"order"
_RULE = b"rule "  # before the name


class Table(Protocol):
    """A durable table."""

    def put(self, key: bytes, value: bytes) -> None:
        """Set the value of a key."""

    def delete(self, key: bytes) -> None:
        """Remove a key, where it is there."""

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield all."""


class NamedRule(NamedTuple):
    """A rule with its name."""

    name: str
    said: RuleSettings


class StoredRules:
    """All of them, in the order in which they are asked.

    Args:
        table: Where they are kept; None: nowhere.
    """

    def __init__(self, table: Table | None = None) -> None:
        self.on_changed: Callable[[], None] = _nothing
        self._table = table
        rows = {} if table is None else dict(table.items())
        names = json.loads(rows.get(_ORDER, b"[]"))
        kept = {name: rows.get(_RULE + name.encode()) for name in names}
        self._rules = [NamedRule(name, RuleSettings.model_validate_json(row)) for name, row in kept.items() if row]

    def __iter__(self) -> Iterator[NamedRule]:
        return iter(list(self._rules))

    def __len__(self) -> int:
        return len(self._rules)

    def has(self, name: str) -> bool:
        """Return whether there is a rule of that name."""
        return any(rule.name == name for rule in self._rules)

    def put(self, name: str, said: RuleSettings, before: str | None = None) -> None:
        """Set a rule: a new one stands last, a changed one where it stood, or either before the rule `before`."""
        place = next((i for i, rule in enumerate(self._rules) if rule.name == name), len(self._rules))
        self._rules = [*self._rules[:place], NamedRule(name, said), *self._rules[place + 1 :]]
        if self._table is not None:
            self._table.put(_RULE + name.encode(), said.model_dump_json().encode())
        self._order(name, name if before is None else before)

    def move(self, name: str, before: str | None) -> None:
        """Have a rule stand before another one, or last."""
        self._order(name, before)

    def delete(self, name: str) -> None:
        """Remove a rule."""
        self._rules = [rule for rule in self._rules if rule.name != name]
        if self._table is not None:
            self._table.delete(_RULE + name.encode())
        self._keep_order()

    def replace(self, prefix: str, rules: Sequence[tuple[str, RuleSettings]]) -> None:
        """Have these rules, with their names, in place of all whose name begins with `prefix`; they stand last."""
        if self._table is not None:
            for rule in self._rules:
                if rule.name.startswith(prefix):
                    self._table.delete(_RULE + rule.name.encode())
            for name, said in rules:
                self._table.put(_RULE + name.encode(), said.model_dump_json().encode())
        others = [rule for rule in self._rules if not rule.name.startswith(prefix)]
        self._rules = [*others, *(NamedRule(name, said) for name, said in rules)]
        self._keep_order()

    def part(self) -> Part:
        """Return them as they are now, to be made."""
        rules = self._rules
        return [rule.said for rule in rules], lambda place: f"rule '{rules[place].name}'"

    def _order(self, name: str, before: str | None) -> None:
        if before != name:
            (moved,) = [rule for rule in self._rules if rule.name == name]
            others = [rule for rule in self._rules if rule.name != name]
            place = next((i for i, rule in enumerate(others) if rule.name == before), len(others))
            self._rules = [*others[:place], moved, *others[place:]]
        self._keep_order()

    def _keep_order(self) -> None:
        if self._table is not None:
            self._table.put(_ORDER, json.dumps([rule.name for rule in self._rules]).encode())
        self.on_changed()


def _nothing() -> None:
    pass
