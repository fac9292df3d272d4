from __future__ import annotations

import pytest

from gateway.auth.rule_draft import RuleDraft
from gateway.auth.stored_rules import StoredRules
from gateway.settings.rules import RuleSettings
from tests.support.stores import Rows


@pytest.fixture
def rows():
    return Rows()


@pytest.fixture
def rules(rows):
    rules = StoredRules(rows)
    for name in "abc":
        rules.put(name, RuleSettings(permit="allow", topics=(name,)))
    return rules


def _names(rules):
    return "".join(rule.name for rule in rules)


def test_rules_stand_in_their_order_also_after_a_start(rules, rows):
    assert _names(rules) == "abc"
    rules.put("d", RuleSettings(permit="deny"), before="b")
    rules.move("a", "c")
    rules.move("b", None)
    rules.put("c", RuleSettings(permit="deny", users=("ann",)))
    rules.put("e", RuleSettings(permit="deny"), before="d")
    rules.move("d", "d")
    assert _names(rules) == _names(StoredRules(rows)) == "edacb"
    again = StoredRules(rows)
    assert list(again) == list(rules)
    assert [rule.called for rule in RuleDraft([again.part()]).make()][:2] == ["rule 'e'", "rule 'd'"]
    before = [RuleSettings(permit="deny")] * 7, str
    assert [rule.number for rule in RuleDraft([before, again.part()]).make()][7:] == [7, 8, 9, 10, 11]
    rules.delete("a")
    assert _names(StoredRules(rows)) == "edcb"
    assert len(rules) == 4
    assert not rules.has("a")


def test_each_change_is_told(rules):
    told = []
    rules.on_changed = lambda: told.append(_names(rules))
    rules.put("d", RuleSettings(permit="deny"), before="a")
    rules.move("d", None)
    rules.delete("d")
    assert told == ["dabc", "abcd", "abc"]
