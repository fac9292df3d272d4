from __future__ import annotations

from collections import deque

from hypothesis import given, strategies as st

from gateway.auth.name_patterns import compile_any
from gateway.auth.rule import Subject
from gateway.auth.rule_trie import NO_RULE
from gateway.auth.rules import RuleSet, make_whole
from tests.gateway.auth.test_rule import ANN, rules


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
