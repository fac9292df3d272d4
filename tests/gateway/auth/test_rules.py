from __future__ import annotations

from collections import deque

import pytest
from hypothesis import given, strategies as st

from gateway.auth.name_patterns import compile_any
from gateway.auth.rule_trie import NO_RULE
from gateway.auth.rules import RuleSet, Subject, keep_same, know_rules, make_rules, make_whole
from gateway.rule_settings import RuleSettings


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


def test_general_rules_are_shared_and_the_others_are_found_by_name():
    said = [{"users": [f"user-{number}"], "topics": [f"{number}/#"]} for number in range(1_000)]
    all_rules = make_whole(rules({"topics": ["open/#"]}, *said, {"topics": ["own/%u"]}, {"groups": ["ops"]}))
    assert len(all_rules.general) == 1
    own = all_rules.find_own(Subject("user-7", "", "", "amqp"), ())
    assert [own.find_topic(topic) for topic in (b"7/a", b"own/user-7")] == [8, 1_001]
    assert len(all_rules.find_own(Subject("user-7", "", "", "amqp"), ("ops",))) == 3
    assert len(all_rules.find_own(ANN, ())) == 1


def test_users_with_the_same_rules_share_a_set():
    all_rules = make_whole(rules({"groups": ["ops"], "topics": ["a/#"]}))
    one, other = (all_rules.find_own(Subject(name, "", "", "mqtt"), ("ops",)) for name in ("ann", "bob"))
    assert one is other


def test_a_rule_for_each_client_is_filled_in():
    own = make_whole(rules({"topics": ["d/%c/#"], "names": ["%u.in"]})).find_own(ANN, ())
    assert own.find_topic(b"d/dev-1/x") == 0
    assert own.find_topic(b"d/dev-2/x") > 0
    assert own.find_name("read", "/", "ann.in") == 0
    nameless = make_whole(rules({"topics": ["d/%c/#"]})).find_own(ANN._replace(client="#"), ())
    assert len(nameless) == 0
    listener = make_whole(rules({"topics": ["%c/#"]})).find_own(ANN._replace(client="$events"), ())
    assert len(listener) == 0


def test_names_are_of_their_virtual_host():
    rule_set = RuleSet(rules({"vhosts": ["/", "v*"], "names": ["q"], "actions": ["read"]}))
    assert rule_set.find_name("read", "v1", "q") == 0
    assert rule_set.find_name("read", "w", "q") > 0
    assert rule_set.find_name("write", "v1", "q") > 0
    for number in range(200):
        assert rule_set.find_name("read", f"v{number}", "q") == 0


SOME = {
    "vhosts": st.sampled_from([[], ["/"], ["v*"], ["v1", "w"], ["*"]]),
    "names": st.sampled_from([[], ["q"], ["q*"], ["re:^[qr]$", "s"]]),
    "actions": st.sampled_from([["all"], ["read"], ["write", "publish"]]),
}


@given(st.lists(st.fixed_dictionaries(SOME), max_size=12))
def test_the_first_rule_for_a_name_decides_whatever_virtual_hosts_rules_are_for(said):
    made = rules(*said)
    rule_set = RuleSet(made)
    deque(rule_set.index(), maxlen=0)
    for vhost in ("/", "v1", "w", "x"):
        for name in ("q", "qq", "r", "s"):
            for action in ("read", "write"):
                found = [
                    rule.number
                    for rule in made
                    if rule.is_for_action(action)
                    and rule.is_for_vhost(vhost)
                    and (not rule.said.names or compile_any(rule.said.names)(name))
                ]
                assert rule_set.find_name(action, vhost, name) == min(found, default=NO_RULE)


def test_rules_of_other_virtual_hosts_are_not_for_the_topic_space():
    assert RuleSet(rules({"vhosts": ["v"]})).find_topic(b"a") > 0
    assert RuleSet(rules({"vhosts": ["/"]})).find_topic(b"a") == 0


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ({"topics": ["a"], "actions": ["read"]}, "no action of the rule is for them"),
        ({"names": ["a"], "actions": ["publish"]}, "no action of the rule is for them"),
        ({"names": ["re:("]}, "is no regular expression"),
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
    again = make_rules(kept, "auth.rules", known=know_rules(rules))
    assert again[1] is rules[1]
    assert (again[2].number, again[2].called, again[2].said) == (2, "auth.rules[2]", before[3])
    assert (rules[3].number, rules[3].called) == (3, "auth.rules[3]")
    assert again[2].is_for(Subject("ann", "", "", "mqtt"), ())
    assert keep_same(before, before[:2]) == before[:2]
    assert keep_same((), before) == before
