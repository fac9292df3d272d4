from __future__ import annotations

from gateway.auth import rule_draft
from gateway.auth.rule_draft import RuleDraft
from gateway.auth.rules import RULES_A_STEP, at_once
from gateway.settings.rules import RuleSettings


def said(count):
    return [RuleSettings(permit="allow", topics=(f"t/{number}",)) for number in range(count)]


def draft(*parts, **more):
    return RuleDraft([(part, f"part {place}[{{}}]".format) for place, part in enumerate(parts)], **more)


def test_rules_of_all_parts_are_numbered_through_and_called_by_their_place():
    made = draft(said(2), said(1)).make()
    assert [(rule.number, rule.called) for rule in made] == [(0, "part 0[0]"), (1, "part 0[1]"), (2, "part 1[0]")]
    assert len(draft(said(2), said(1))) == 3


def test_rules_that_stay_are_the_very_same():
    first, second = said(2), said(2)
    before = draft(first).make()
    told = []
    after = draft(first[1:], [*second, first[0]], known=before, on_made=told.append).make()
    assert told == [after]
    assert after[0]._users is before[1]._users
    assert after[3]._users is before[0]._users
    assert [rule.number for rule in after] == [0, 1, 2, 3]
    same = draft(first, known=before).make()
    assert all(one is other for one, other in zip(same, before, strict=True))


def test_no_step_makes_more_than_some(monkeypatch):
    real, made = rule_draft.make_rule, []
    monkeypatch.setattr(rule_draft, "make_rule", lambda *args: made.append(1) or real(*args))
    steps = draft(said(5 * RULES_A_STEP)).steps()
    assert made == []
    last = 0
    for _ in steps:
        assert len(made) - last <= RULES_A_STEP
        last = len(made)
    assert len(made) == 5 * RULES_A_STEP
    assert len(at_once(draft(said(3)).steps())) == 3
