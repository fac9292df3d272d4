"""The rules in force: those of the settings, and after them those of the data folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gateway.auth.rules import Rule, keep_same, know_rules, make_rules
from gateway.auth.stored_rules import StoredRules, Table
from gateway.rule_settings import RuleSettings

OF_SETTINGS = "auth.rules"  # where an operator finds them


class RuleLists:
    """Both lists as one, `all`; another list as soon as one of them changes.

    Args:
        said: The rules of the settings.
        on_changed: Called after rules of the data folder changed.
    """

    def __init__(self, said: Sequence[RuleSettings], on_changed: Callable[[], None]) -> None:
        self.stored = StoredRules()
        self._said = said
        self._on_changed = on_changed
        self.all: list[Rule] = []
        self._join()

    def keep(self, table: Table) -> None:
        """Go by the rules of a table, too."""
        self.stored = StoredRules(table)
        self.stored.on_changed = self._note_changed
        self._note_changed()

    def use(self, said: Sequence[RuleSettings]) -> None:
        """Go by other rules of the settings."""
        kept = keep_same(self._said, said)
        if len(kept) != len(self._said) or any(one is not other for one, other in zip(kept, self._said, strict=True)):
            self._said = kept
            self._join()

    def _note_changed(self) -> None:
        self._join()
        self._on_changed()

    def _join(self) -> None:
        known = know_rules(self.all)  # which stay, so that a change among many is quick
        first = make_rules(self._said, OF_SETTINGS, known=known)
        self.all = [*first, *self.stored.make(len(first), known)]
