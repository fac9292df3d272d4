from __future__ import annotations

import pytest

from gateway.auth.rule import Subject, keep_same, make_rules
from gateway.auth.rule_draft import RuleDraft
from gateway.settings.rules import RuleSettings


def rules(*said):
    return make_rules([RuleSettings.model_validate({"permit": "allow", **one}) for one in said], "auth.rules")


ANN = Subject("ann", "dev-1", "10.1.2.3", "mqtt")


@pytest.mark.parametrize(
    ("said", "is_for"),
    [
        ({}, True),
        ({"users": ["ann"]}, True),
        ({"users": ["a*"]}, True),
        ({"users": ["bob"]}, False),
        ({"users": ["ann"], "clients": ["dev-2"]}, False),
        ({"clients": ["dev-?"]}, True),
        ({"groups": ["ops"]}, True),
        ({"groups": ["dev"]}, False),
        ({"addresses": ["10.0.0.0/8"]}, True),
        ({"addresses": ["10.1.2.3"]}, True),
        ({"addresses": ["10.1.2.4", "::1"]}, False),
        ({"doors": ["mqtt"]}, True),
        ({"doors": ["amqp", "rocketmq"]}, False),
    ],
)
def test_all_conditions_of_a_rule_have_to_hold(said, is_for):
    (rule,) = rules(said)
    assert rule.is_for(ANN, ("ops",)) == is_for


@pytest.mark.parametrize(("host", "is_for"), [("[::ffff:10.1.2.3]", True), ("fe80::1%eth0", False), ("unix", False)])
def test_addresses_in_other_forms(host, is_for):
    (rule,) = rules({"addresses": ["10.0.0.0/8"]})
    assert rule.is_for(ANN._replace(host=host), ()) == is_for


def test_an_address_that_is_not_known_is_allowed_nothing_and_denied_all_that_some_are():
    allow, deny = rules({"addresses": ["10.0.0.0/8"]}, {"permit": "deny", "addresses": ["10.0.0.0/8"]})
    assert not allow.is_for(ANN._replace(host=""), ())
    assert deny.is_for(ANN._replace(host=""), ())


def test_nobody_without_a_client_identifier_is_a_client():
    (rule,) = rules({"clients": ["*"]})
    assert not rule.is_for(ANN._replace(client=""), ())


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ({"topics": ["a"], "actions": ["read"]}, "no action of the rule is for them"),
        ({"names": ["a"], "actions": ["publish"]}, "no action of the rule is for them"),
        ({"names": ["re:("]}, "is not a regular expression"),
        ({"addresses": ["10.0.0.1/8"]}, "must be an address or a network"),
        ({"topics": ["a/#/b"]}, "must be a topic filter"),
        ({"permit": "maybe"}, "permit"),
    ],
)
def test_rules_that_mean_nothing_are_refused(said, text):
    with pytest.raises(ValueError, match=text):
        rules(said)


def test_rules_that_stay_are_not_made_again_and_have_their_new_places():
    before = [RuleSettings(permit="allow", topics=(f"t/{i}",)) for i in range(5)]
    rules = make_rules(before, "auth.rules")
    read_again = [RuleSettings(permit="allow", topics=(f"t/{i}",)) for i in (0, 1, 3, 4)]
    kept = keep_same(before, read_again)
    assert [any(one is other for other in before) for one in kept] == [True] * 4
    again = RuleDraft([(kept, "auth.rules[{}]".format)], known=rules).make()
    assert again[1] is rules[1]
    assert (again[2].number, again[2].called, again[2].said) == (2, "auth.rules[2]", before[3])
    assert (rules[3].number, rules[3].called) == (3, "auth.rules[3]")
    assert again[2].is_for(Subject("ann", "", "", "mqtt"), ())
    assert keep_same(before, before[:2]) == before[:2]
    assert keep_same((), before) == before
