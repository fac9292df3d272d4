from __future__ import annotations

import contextlib
import time

import pytest
from hypothesis import given, strategies as st

from gateway.rocketmq.filters.sql_syntax import (
    DEPTH_MAX,
    NODES_MAX,
    AllOf,
    AnyOf,
    Equal,
    Literal,
    Not,
    OneOf,
    Order,
    Part,
    Property,
    parse_sql,
)
from gateway.rocketmq.filters.sql_tokens import SqlError

A, B = Property("a"), Property("b")


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a = 'x' OR a = 1 AND b", AnyOf((Equal(A, Literal("x")), AllOf((Equal(A, Literal(1)), B))))),
        ("a <> -5", Not(Equal(A, Literal(-5)))),
        ("a IS NOT NULL", Not(Equal(A, Literal(None)))),
        ("a BETWEEN 1 AND 2.5", AllOf((Order(">=", A, Literal(1)), Order("<=", A, Literal(2.5))))),
        ("a NOT BETWEEN b AND 2", AnyOf((Order("<", A, B), Order(">", A, Literal(2))))),
        ("(a) NOT IN ('x', 'y')", OneOf("a", frozenset("xy"), is_wanted=False)),
        ("a STARTSWITH 'x'", Part("STARTSWITH", A, "x", is_wanted=True)),
        ("NOT (a > +1)", Not(Order(">", A, Literal(1)))),
        ("NOT a", Not(A)),
        ("TRUE", Literal(True)),
    ],
)
def test_filters_are_read_as_trees(text, tree):
    assert parse_sql(text) == tree


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "unexpected the end at column 1"),
        ("5", "a number or a string is not a condition"),
        ("a AND 'x'", "a number or a string is not a condition"),
        ("a = 1 b", "unexpected a name 'b' at column 7"),
        ("a LIKE 'x%'", "unexpected a name 'LIKE' at column 3"),
        ("a = NULL", "NULL cannot be compared: say IS NULL"),
        ("a > 'x'", "only numbers and properties can be compared by >"),
        ("NOT a > 5", "only numbers and properties can be compared by >"),
        ("a > TRUE", "only numbers and properties can be compared by >"),
        ("TRUE = 'true'", "a truth cannot be compared with this value"),
        ("a BETWEEN 5 AND 1", "the first number of BETWEEN is larger than the second"),
        ("a IN (5)", "unexpected a number '5' at column 7"),
        ("'x' IN ('x')", "only a property can be IN a list"),
        ("(a = 1", "unexpected the end at column 7"),
        ("a CONTAINS b", "unexpected a name 'b' at column 12"),
    ],
)
def test_what_is_no_filter_is_refused_in_words(text, reason):
    with pytest.raises(SqlError) as caught:
        parse_sql(text)
    assert caught.value.reason == reason


@pytest.mark.parametrize("outer", ["(%s)", "NOT (%s)", "- %s", "+%s", "NOT %s"])
def test_depth_is_bounded(outer):
    text = "a"
    for _ in range(DEPTH_MAX + 1):
        text = outer % text
    with pytest.raises(SqlError) as caught:
        parse_sql(text)
    assert caught.value.reason == f"the filter is nested more than {DEPTH_MAX} deep"


@pytest.mark.parametrize("piece", ["a=b OR ", "a=", "a<>", "a IS NULL IS NULL AND "])
def test_size_is_bounded(piece):
    text = piece * (8_000 // len(piece)) + "a"
    with pytest.raises(SqlError) as caught:
        parse_sql(text)
    assert caught.value.reason in {f"the filter has more than {NODES_MAX} terms", "the filter has more than 2048 words"}


def test_time_is_linear_in_the_text():
    start = time.perf_counter()
    for text in ("'" * 8_191, "/*" * 4_096, "-" * 8_000, "1" * 8_192, "(" * 8_192, "a IN (" + "'x'," * 1_000 + "'x')"):
        with contextlib.suppress(SqlError):
            parse_sql(text)
    assert time.perf_counter() - start < 2


WORDS = tuple("a b 'x' 5 .5 ( ) + - = <> < <= > >= , AND OR NOT IN IS NULL TRUE BETWEEN CONTAINS ENDSWITH".split())  # noqa: SIM905 - they are words


@given(st.lists(st.sampled_from(WORDS), max_size=14))
def test_any_words_are_a_filter_or_refused(words):
    with contextlib.suppress(SqlError):
        assert parse_sql(" ".join(words)) is not None
