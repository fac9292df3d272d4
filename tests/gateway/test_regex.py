"""Expressions of others: RE2's, and look-aheads at the start as PCRE and Python understand them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from gateway.regex import compile_regex

NAMES = ["", "amq.gen-1", "amq", "orders", "orders.dlq", "federation:x", "a|b", "x(y", "x]y", "ab\\c"]


@pytest.mark.parametrize(
    "pattern",
    [
        r"^(?!amq\.).*",  # RabbitMQ's documents' own, for all queues but the server's
        r"^(?!amq).+$",
        r"^(?!amq\.|federation:)",
        r"^(?=.*\.dlq$)(?!amq)orders",
        r"^(?!(amq|orders)$).*",
        r"^(?![(|)]x)(?!x[]|(])(a\|b|x.y)$",
        r"^(?!x\))x\(",
        r"^(?![[:alpha:]]{3}$).",
        r"orders|amq",
        r"a{2,}|^$",
    ],
)
@pytest.mark.filterwarnings("ignore:Possible nested set:FutureWarning")
def test_matches_what_users_of_pcre_expect(pattern):
    compiled = compile_regex(pattern)
    told = pattern.replace("[:alpha:]", "a-zA-Z")  # which Python has no classes for
    for name in NAMES:
        assert (compiled.search(name) is not None) == (re.search(told, name) is not None), name


@pytest.mark.parametrize(
    "pattern",
    [
        r"(?!amq).*",  # anywhere in the name, so it says nothing
        r"^a(?!b)",
        r"^(?<!a)b",
        r"^(?!a)b|c",  # a choice whose second part the look-ahead is not for
        r"^(?!a)*b",
        r"^(?!a",
        r"^(?!a)b)",
        r"^(?!a(?!b))c",
        r"^(?!\Qa)\E)b",
        "^" + "(?!a)" * 9,
        "(a",
    ],
)
def test_what_cannot_be_told_in_linear_time_is_refused(pattern):
    with pytest.raises(ValueError, match="is not a regular expression"):
        compile_regex(pattern)


@pytest.mark.parametrize("pattern", [r"(?!amq).*", r"^a(?=b)", r"(?<!\.dlq)$", "(?<=a)b"])
def test_a_look_around_elsewhere_is_told_where_one_may_be(pattern):
    with pytest.raises(ValueError, match="it may look ahead right behind a \\^ at its start, and nowhere else"):
        compile_regex(pattern)


PIECES = [
    "a",
    "b",
    ".",
    "|",
    "(a)",
    "(a|b)",
    "(",
    ")",
    "[ab]",
    "[^a]",
    "[)(]",
    "[]|]",
    r"\.",
    r"\(",
    r"\)",
    r"\|",
    "b*",
    "a?",
    "$",
]
expressions = st.lists(st.sampled_from(PIECES), max_size=4).map("".join)


@given(
    st.lists(expressions, min_size=1, max_size=3), expressions, st.lists(st.text("ab.|()[]\\", max_size=6), max_size=8)
)
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_look_aheads_are_those_of_python_where_both_take_the_expression(aheads, rest, names):
    pattern = "^" + "".join(f"(?{'!='[n % 2]}{ahead})" for n, ahead in enumerate(aheads)) + rest
    try:
        compiled = compile_regex(pattern)
        expected = re.compile(pattern)
    except (ValueError, re.error):
        return  # parentheses that do not match, or a choice, which is refused
    for name in names:
        assert (compiled.search(name) is not None) == (expected.search(name) is not None)


def test_looking_ahead_takes_no_longer_for_hostile_expressions():
    compiled = compile_regex("^(?!(a+)+$)(a|b)*$")
    assert compiled.search("a" * 100_000 + "b") is not None
    assert compiled.search("a" * 100_000) is None
