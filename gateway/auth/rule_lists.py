"""The rules in force: those of the settings, and after them those of the data folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gateway.auth.rule import Rule, keep_same
from gateway.auth.rule_draft import RuleDraft
from gateway.auth.stored_rules import StoredRules, Table
from gateway.settings.rules import RuleSettings

OF_SETTINGS = "auth.rules"  # where an operator finds them

Compared = tuple[Sequence[RuleSettings] | None, Sequence[RuleSettings], Sequence[RuleSettings]]
"""Rules of the settings after a change and before it, and those after it with what stays as it was."""

NOT_COMPARED: Compared = (None, (), ())


class RuleLists:
    """Both lists as one, `all`, which is to be made; another one as soon as one of them changes.

    Args:
        said: The rules of the settings.
        on_changed: Called after rules of the data folder changed.
    """

    def __init__(self, said: Sequence[RuleSettings], on_changed: Callable[[], None]) -> None:
        self.stored = StoredRules()
        self._said = said
        self._on_changed = on_changed
        self._made: Sequence[Rule] = ()  # the last that were
        self._compared: Compared = NOT_COMPARED
        self._join()

    def keep(self, table: Table) -> None:
        """Go by the rules of a table, too."""
        self.stored = StoredRules(table)
        self.stored.on_changed = self._note_changed
        self._note_changed()

    def compare(self, said: Sequence[RuleSettings]) -> None:
        """Find out beforehand which rules of the settings stay, for `use`: slow where they are many."""
        self._compared = said, self._said, keep_same(self._said, said)

    def use(self, said: Sequence[RuleSettings]) -> None:
        """Go by other rules of the settings."""
        after, before, kept = self._compared
        if after is not said or before is not self._said:
            kept = keep_same(self._said, said)
        self._compared = NOT_COMPARED
        if len(kept) != len(self._said) or any(one is not other for one, other in zip(kept, self._said, strict=True)):
            self._said = kept
            self._join()

    def _note_changed(self) -> None:
        self._join()
        self._on_changed()

    def _join(self) -> None:
        parts = ((self._said, f"{OF_SETTINGS}[{{}}]".format), self.stored.part())
        self.all = RuleDraft(parts, self._made, self._note_made)

    def _note_made(self, made: Sequence[Rule]) -> None:
        self._made = made  # which stay, so that a change among many is quick
