from __future__ import annotations

from gateway.auth.rule_lists import RuleLists
from gateway.settings.rules import RuleSettings
from tests.gateway.auth.test_stored_rules import Rows

ALLOW, DENY = RuleSettings(permit="allow"), RuleSettings(permit="deny")


def test_rules_of_the_settings_come_first_and_each_change_makes_another_list():
    told = []
    lists = RuleLists((ALLOW,), lambda: told.append([rule.called for rule in lists.all.make()]))
    lists.keep(Rows())
    lists.stored.put("mine", DENY)
    assert told == [["auth.rules[0]"], ["auth.rules[0]", "rule 'mine'"]]
    before = lists.all
    lists.use((ALLOW,))
    assert lists.all is before
    lists.compare((ALLOW,))
    lists.use((ALLOW,))
    assert lists.all is before
    lists.compare((ALLOW,))  # and others were read meanwhile
    lists.use((DENY, ALLOW))
    assert [(rule.called, rule.number) for rule in lists.all.make()] == [
        ("auth.rules[0]", 0),
        ("auth.rules[1]", 1),
        ("rule 'mine'", 2),
    ]
