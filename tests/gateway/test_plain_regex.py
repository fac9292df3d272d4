from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from gateway.plain_regex import NAME_MAX, PLAIN_MAX, SLIDING_MAX, compile_plain
from gateway.regex import compile_regex

PIECES = (
    *("a", "q", "9", ".", "^", "$", "*", "+", "?", "|", "(", ")", "é", "-", ".*", "^.*", ".*$", "(a|q9)", "(|a)"),
    *("\\.", "\\\\", "\\*", "\\b", "\\s", "\\d", "\\w", "\\_", "[^a]", "[a-q9]", "[.*]", "[", "]", "{2}", "(?i)"),
)
NAMES = ["", "amq.gen-1", "amq", "ordérs", "a\\b", "a b", " x", "99", "a9", "AMQ", "q*", "a٣", "a\vq", "q..9", "aqa9-"]
PATTERNS = st.lists(st.sampled_from(PIECES), max_size=6).map("".join)


@given(PATTERNS, st.lists(st.sampled_from(NAMES), min_size=1, max_size=9))
def test_a_plain_expression_is_found_in_the_names_that_re2_finds_it_in(pattern, names):
    try:
        each = compile_regex(pattern)
    except ValueError:
        return
    plain = compile_plain(pattern)
    if plain is not None:
        assert [plain(name) is not None for name in names] == [each.search(name) is not None for name in names]


@pytest.mark.parametrize(
    "pattern",
    ["[13579]$", "^q", "", "^$", "$", ".*7.*", r"^orders\..*-dlq$", "^(orders|events)-", r"\d+$", "[^a-f]", ".*[a]$"],
)
def test_what_people_look_for_is_plain(pattern):
    assert compile_plain(pattern) is not None


@pytest.mark.parametrize(
    "pattern", ["(a+)+$", "a*b*c", "a|b", "(?i)a", r"\ba", r"\s", "a{2}", "[[:alpha:]]", "a*" + "b" * SLIDING_MAX]
)
def test_what_may_take_long_or_mean_something_else_is_not_plain(pattern):
    assert compile_regex(pattern) is not None
    assert compile_plain(pattern) is None


@pytest.mark.parametrize(
    "pattern", ["^(a|a)*b", "(aa|aa)*b", "^(ab|a|b)+c", "(a|)" * 15 + "b", "(|)" * 20 + "b", "(a|b)?$", "a*(||||)b"]
)
def test_choices_that_come_again_are_not_plain(pattern):
    """Each more of them, or each more character, would double the time that Python's engine takes."""
    assert compile_regex(pattern) is not None
    assert compile_plain(pattern) is None


@pytest.mark.parametrize(
    "pattern", ["a*" + "a" * (SLIDING_MAX - 3) + "b", "." * (PLAIN_MAX - 1) + "b", "^a*" + "a" * 9, f"^a*({'|' * 58})b"]
)
def test_the_costliest_plain_expressions_end_in_any_name(pattern):
    plain = compile_plain(pattern)
    assert plain is not None
    assert (plain("a" * NAME_MAX) is None) is pattern.endswith("b")
