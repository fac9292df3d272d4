"""Expressions of others: RE2's, and look-aheads at the start as PCRE and Python understand them."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given, strategies as st

from gateway.regex import compile_lines, compile_regex, is_everywhere, split_looks

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


def test_what_looks_ahead_is_split_into_what_re2_takes():
    assert split_looks("^a|b") == ("^a|b", [])
    assert split_looks(r"^(?!amq\.)(?=.*x$)q") == ("^q", [(r"^(?:amq\.)", False), ("^(?:.*x$)", True)])


def test_looking_ahead_takes_no_longer_for_hostile_expressions():
    compiled = compile_regex("^(?!(a+)+$)(a|b)*$")
    assert compiled.search("a" * 100_000 + "b") is not None
    assert compiled.search("a" * 100_000) is None


LINES = ["", "amq.gen-1", "amq", "ordérs", "orders.dlq", "a b", " x", "99", "a9", "AMQ"]
PIECES = (
    *("a", "q", "9", ".", "^", "$", "*", "+", "|", "(", ")", "x?", "é"),
    *("\\b", "\\s", "\\S", "\\d", "\\n", "[^a]", "(?i)", "(?s)"),
)
PATTERNS = st.lists(st.sampled_from(PIECES), max_size=6).map("".join)


@given(PATTERNS, st.lists(st.sampled_from(LINES), min_size=1, max_size=9))
def test_an_expression_is_found_in_many_lines_as_in_each_by_itself(pattern, lines):
    try:
        each = compile_regex(pattern)
    except ValueError:
        return
    found = compile_lines(pattern)
    if found is None:  # it asks for more than a line has
        return
    data = "\n".join(lines).encode()
    places = list(found.find(data))
    assert [data.count(b"\n", 0, place) for place in places] == [
        number for number, line in enumerate(lines) if each.search(line) is not None
    ]


@pytest.mark.parametrize("pattern", [r"\Aa", r"a\z", r"(?-m)^a", "(", r"^(?!amq\.)", "a\nb", r"(?i-s:a)"])
def test_an_expression_of_whole_texts_is_not_looked_for_in_lines(pattern):
    assert compile_lines(pattern) is None


@pytest.mark.parametrize(
    "pattern", ["^.*$", ".", "^q", r"\d$", r"^[a-z]+\d*$", "a|q", "", "^$", "(?:q)(1)", r"q\.", "[^x]", r"\W", "(?s).q"]
)
def test_of_many_lines_that_all_have_an_expression_it_is_known_at_once(pattern):
    draw, found = random.Random(pattern), compile_lines(pattern)
    each, may_break = compile_regex(pattern), pattern in {"[^x]", r"\W", "(?s).q"}
    for _ in range(200):
        lines = [draw.choice(["q1", "q", "a.q.b1", "", "Q9", "x"][: draw.randrange(1, 7)]) for _ in range(3)]
        if found.are_all("\n".join(lines).encode()):
            assert not may_break
            assert all(each.search(line) is not None for line in lines), lines
        elif not may_break:
            assert not all(each.search(line) is not None for line in lines), lines


def test_lines_are_searched_by_all_other_expressions():
    for pattern in (".*", "^a.*-7$", r"\d{3}", "orders|amq", "(?i)x"):
        assert compile_lines(pattern) is not None


@given(PATTERNS, st.lists(st.sampled_from(LINES), min_size=1, max_size=9))
def test_an_expression_that_is_everywhere_is_found_in_each_text(pattern, lines):
    try:
        compiled = compile_regex(pattern)
    except ValueError:
        return
    if is_everywhere(pattern, compiled):
        assert all(compiled.search(line) is not None for line in lines)


def test_what_asks_for_nothing_is_everywhere():
    said = {text: is_everywhere(text, compile_regex(text)) for text in (".*", "a?", "(a|)", "a", "^$", "$", r"\b")}
    assert said == {".*": True, "a?": True, "(a|)": True, "a": False, "^$": False, "$": False, r"\b": False}
