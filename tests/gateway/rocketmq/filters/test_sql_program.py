from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from gateway.rocketmq.filters.sql_program import NoMatchError, compile_node, cost_of, meets
from gateway.rocketmq.filters.sql_syntax import NODES_MAX, parse_sql

# What the filter module of Apache RocketMQ 5.5.0 said of each: T, F, unknown, or an error that ends the filter.
SEEN = """
a > 5; a=6; T
a > 5; a=5.5; E
a > 5.0; a=5.5; T
a > 5.0; a=x; E
a > 5; ; N
a = 5; a=x; E
a <> 'x'; a=y; T
a <> 'x'; ; N
a IS NULL; ; T
a IS NOT NULL; a=1; T
NOT a; a=true; T
a = TRUE; a=TRUE; T
a = TRUE; a=yes; F
'true' = TRUE; ; T
a IN ('x','y'); a=x; T
a IN ('x','y'); ; N
a NOT IN ('x','y'); a=z; T
a NOT IN ('x','y'); ; N
a BETWEEN 1 AND 5; a=3; T
a NOT BETWEEN 1 AND 5; a=9; T
a NOT BETWEEN 1 AND 5; ; N
a BETWEEN b AND c; a=3,b=1,c=5; T
5 BETWEEN 1 AND b; b=9; T
a CONTAINS 'b'; a=abc; T
a CONTAINS 'b'; ; F
a NOT CONTAINS 'b'; ; F
a NOT CONTAINS 'b'; a=abc; F
a CONTAINS ''; a=abc; F
a NOT STARTSWITH ''; a=x; F
a NOT STARTSWITH 'bc'; a=abc; T
a ENDSWITH 'bc'; a=abc; T
'abc' CONTAINS 'b'; ; T
5 CONTAINS '5'; ; F
(a = 'x') CONTAINS 'tru'; a=x; F
a > b; a=3,b=2; T
a > b; a=x,b=2; E
a = b; a=3,b=3.0; F
a = b; a=5; F
b = a; a=5; N
a <> b; a=5; T
-5 < a; a=3; T
-a < 5; a=3; N
- - 5 < a; a=3; F
-(5) = a; a=-5; T
-(a = 5) = TRUE; a=5; N
a > 5 OR b = 'x'; a=x,b=x; E
b = 'x' OR a > 5; a=x,b=x; T
a > 5 OR b = 'x'; b=x; T
a > 5 OR b = 'y'; b=x; N
a > 5 AND b = 'x'; b=y; F
a > 5 AND b = 'x'; b=x; N
NOT (a > 5); a=6; F
NOT (a > 5); ; N
a > 1e3; a=1001; T
a > 5L; a=6; T
5 = a; a=5.0; E
a = 5.0; a=5; T
a = 'it''s'; a=it's; T
a = b = TRUE; a=1,b=1; T
a = 1 = 1; a=1; F
a IS NULL IS NULL; ; F
TRUE AND NULL; ; N
TRUE OR NULL; ; T
FALSE AND NULL; ; F
NOT NULL; ; N
TRUE IS NULL; ; F
5 = 'x'; ; E
a > 5; a= 6; E
a > 5; a=+6; T
a > 5.5; a= 6 ; T
a > 5.5; a=6d; T
a > 5.5; a=Infinity; T
a > 5; a=; E
A = 'x'; a=x; N
TAGS IN ('t') AND (x > 5); TAGS=t,x=6; T
"""
CASES = [line.split("; ") for line in SEEN.strip().splitlines()]


@pytest.mark.parametrize(("text", "said", "outcome"), CASES)
def test_outcomes_are_those_of_the_official_filter(text, said, outcome):
    properties = dict(pair.split("=", 1) for pair in said.split(",") if "=" in pair)
    program = compile_node(parse_sql(text))
    try:
        found = {True: "T", False: "F", None: "N"}[program(properties)]
    except NoMatchError:
        found = "E"
    assert found == outcome
    assert meets(program, properties) is (outcome == "T")


@pytest.mark.parametrize(
    ("text", "value", "wanted"),
    [
        ("TRUE = a", "True", True),  # official brokers fail on it, on 0.0, and on texts with NaN they compare
        ("a >= 0.0", "0", True),
        ("a > 5.5", "NaN", False),
        ("a > 5.5", "0x1p5", False),
        ("a = 5", "\u0665", False),
        ("a = 5", "5" * 5_000, False),
        ("a > 5.5", "9" * 5_000, False),
        ("a < 1", str(-(2**63)), True),
        ("a < 1", str(-(2**63) - 1), False),
    ],
)
def test_texts_are_numbers_within_reason(text, value, wanted):
    assert meets(compile_node(parse_sql(text)), {"a": value}) is wanted


def test_a_filter_costs_as_much_as_it_looks_at():
    assert cost_of(parse_sql("a = 1")) == 3
    assert cost_of(parse_sql("a > 1 AND NOT (b IN ('x') OR c CONTAINS 'y')")) == 3 + 1 + 1 + 17


def test_the_deepest_filter_that_is_taken_runs():
    text = "a" + " = TRUE" * (NODES_MAX // 2 - 1)
    assert meets(compile_node(parse_sql(text)), {"a": "true"})


# A plain evaluator, which knows nothing of programs

VALUES = st.sampled_from(["1", "2", "-3", "2.5", "x", "true", ""])
ATOMS = st.sampled_from(
    [
        ("n", "a", 1),
        ("n", "b", 2),
        ("n", "a", -3),
        ("s", "a", "x"),
        ("s", "b", "1"),
        ("t", "b", True),
        ("i", "a", ("x", "1")),
        ("0", "a", None),
        ("p", "b", "2"),
    ]
)
TREES = st.recursive(
    ATOMS,
    lambda child: st.one_of(
        st.tuples(st.just("not"), child),
        st.tuples(st.sampled_from(["and", "or"]), st.lists(child, min_size=2, max_size=3)),
    ),
    max_leaves=8,
)


class End(Exception):  # noqa: N818 - it ends a filter, and is no fault
    """The filter cannot be told."""


def plainly(tree, said):
    kind = tree[0]
    if kind == "not":
        found = plainly(tree[1], said)
        return None if found is None else not found
    if kind not in {"and", "or"}:
        return of_atom(kind, said.get(tree[1]), tree[2])
    found = []
    for one in tree[1]:
        found.append(plainly(one, said))
        if found[-1] is (kind == "or"):
            return kind == "or"
    return None if None in found else kind == "and"


def of_atom(kind, value, wanted):
    if kind in {"0", "p"}:
        return value is None if kind == "0" else value is not None and wanted in value
    if value is None:
        return None
    try:
        is_more = kind == "n" and int(value) > wanted
    except ValueError:
        raise End from None
    return is_more or {"s": value == wanted, "t": value == "true", "i": kind == "i" and value in wanted}.get(
        kind, False
    )


def rendered(tree):
    kind = tree[0]
    if kind == "not":
        return f"NOT ({rendered(tree[1])})"
    if kind in {"and", "or"}:
        return f" {kind} ".join(f"({rendered(one)})" for one in tree[1])
    return {
        "n": "{1} > {2}", "s": "{1} = '{2}'", "t": "{1} = TRUE", "i": "{1} in {2}", "0": "{1} is null",
        "p": "{1} contains '{2}'",
    }[kind].format(*tree)  # fmt: skip


@settings(max_examples=300)
@given(TREES, st.dictionaries(st.sampled_from("ab"), VALUES))
def test_programs_say_what_a_plain_evaluator_says(tree, said):
    try:
        wanted = plainly(tree, said) is True
    except End:
        wanted = False
    assert meets(compile_node(parse_sql(rendered(tree))), said) is wanted
