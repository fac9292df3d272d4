from __future__ import annotations

import pytest
from pydantic import ValidationError

from gateway.settings.reading import load_settings
from gateway.settings.rules import PATTERN_CHARS_MAX, RuleSettings, compile_regex


def test_rules_are_tables_of_a_list_in_the_file(tmp_path):
    path = tmp_path / "lmq.toml"
    path.write_text('[auth]\ndefault = "deny"\n[[auth.rules]]\npermit = "allow"\ntopics = ["plant/%c/#"]\n')
    auth = load_settings(path, {}).auth
    assert auth.default == "deny"
    assert str(auth.rules[0]) == "allow all topics=plant/%c/#"


def test_a_rule_is_told_in_one_line():
    rule = RuleSettings(permit="deny", actions=("read", "write"), users=("ann", "b*"), names=("re:^x",))
    assert str(rule) == "deny read+write users=ann,b* names=re:^x"


@pytest.mark.parametrize("text", ["(", "a**", "(?=x)", r"\1", "a{1,9999}"])
def test_what_no_linear_engine_can_do_is_refused(text):
    with pytest.raises(ValueError, match="is not a regular expression"):
        compile_regex(text)


def test_an_expression_that_takes_too_much_memory_is_refused():
    with pytest.raises(ValueError, match="is not a regular expression"):
        compile_regex("((a{100}){100}){9}")


def test_patterns_are_bounded():
    with pytest.raises(ValidationError):
        RuleSettings(permit="deny", names=("x" * (PATTERN_CHARS_MAX + 1),))
