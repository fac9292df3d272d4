from __future__ import annotations

import pytest

from gateway.auth.rule import Subject, make_rules
from gateway.commands.mosquitto.access import read_acl, read_passwords, user_pattern
from gateway.commands.mosquitto.lines import MosquittoFileError, split_lines
from gateway.settings.rules import RuleSettings


def read(text):
    return read_acl(split_lines(text, "acl"))


def test_hashes_are_taken_and_what_is_none_is_told():
    lines = ["# users", "ann:$7$101$c2FsdA==$aGFzaA==", "", "bob:secret", "eve", "o:$6$c2FsdA==$aGFzaA=="]
    found, left_out = read_passwords(lines, "passwd")
    assert found == {"ann": "$7$101$c2FsdA==$aGFzaA==", "o": "$6$c2FsdA==$aGFzaA=="}
    assert left_out == [
        "passwd:4: user 'bob' has no hash that mosquitto_passwd made",
        "passwd:5: user 'eve' has no hash that mosquitto_passwd made",
    ]


def test_denied_goes_before_allowed_and_users_before_patterns():
    rules, left_out = read(
        "topic read open/#\npattern write d/%u/#\npattern deny d/secret\nuser ann\n"
        "topic readwrite a b/#\ntopic deny a/x\ntopic readwrite c\ntopic read r\n"
    )
    assert rules == [
        {"permit": "allow", "users": [""], "actions": ["subscribe"], "topics": ["open/#"]},
        {"permit": "deny", "users": ["ann"], "topics": ["a/x"]},
        {"permit": "allow", "users": ["ann"], "topics": ["a b/#", "c"]},
        {"permit": "allow", "users": ["ann"], "actions": ["subscribe"], "topics": ["r"]},
        {"permit": "deny", "topics": ["d/secret"]},
        {"permit": "allow", "users": ["?*"], "actions": ["publish"], "topics": ["d/%u/#"]},
    ]
    assert left_out == []
    make_rules([RuleSettings.model_validate(rule) for rule in rules], "auth.rules")


def test_what_a_rule_would_read_otherwise_is_left_out_and_told():
    assert read("topic read d/%c\ntpic a\n") == (
        [],
        [
            "acl:1: d/%c: %u and %c stand for themselves there, and not in a rule",
            "acl:2: tpic: no word of an ACL file",
        ],
    )


@pytest.mark.parametrize("line", ["topic Read d/#", "pattern Deny d/%u", "topic a b"])
def test_line_that_gives_what_is_no_right_is_told_with_its_place(line):
    with pytest.raises(MosquittoFileError, match=r"^acl:2: (Read|Deny|a): must be read, write, readwrite or deny$"):
        read(f"user ann\n{line}\n")


@pytest.mark.parametrize("name", ["ann", "", "a*", "what?", "re:x", "a.b+c*"])
def test_rule_of_a_user_is_for_that_name_alone(name):
    said = RuleSettings.model_validate({"permit": "allow", "users": [user_pattern(name)]})
    (rule,) = make_rules([said], "auth.rules")
    assert rule.is_for(Subject(name, "c", "10.0.0.1", "mqtt"), ())
    assert not any(rule.is_for(Subject(f"{name}{more}", "c", "10.0.0.1", "mqtt"), ()) for more in "xy")
