from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, strategies as st

from gateway.amqp.binding_terms import plain_terms
from gateway.amqp.definition_draft import read_arguments
from gateway.amqp.errors import AmqpError
from gateway.amqp.field_table import TABLE_FIELDS_MAX, Field, read_table
from gateway.amqp.reply_codes import ReplyCode
from gateway.amqp.table_writer import encode_table

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 63) - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text("abx-", min_size=1, max_size=4), values, min_size=1, max_size=4))
def test_arguments_that_are_told_and_read_again_are_the_same(arguments):
    told = plain_terms(read_arguments(arguments))
    assert plain_terms(read_arguments(json.loads(told))) == told
    assert json.loads(told) == arguments
    by_client = encode_table(arguments)
    assert plain_terms(read_table(by_client, 4, len(by_client))) == told


def test_a_binding_without_arguments_says_nothing():
    assert plain_terms({}) is None


@pytest.mark.parametrize("kind", ["byte", "short", "signedint", "long", "unsignedint", "timestamp"])
def test_whole_numbers_of_all_sizes_are_the_same(kind):
    assert plain_terms({"n": Field(kind, 1)}) == '{"n": 1}'


def test_the_order_of_arguments_says_nothing_and_their_types_do():
    one, two = Field("long", 1), Field("longstr", b"x")
    assert plain_terms({"a": one, "b": two}) == plain_terms({"b": two, "a": one})
    said = [
        Field("long", 1),
        Field("bool", value=True),
        Field("longstr", b"1"),
        Field("double", 1.0),
        Field("void", None),
    ]
    assert len({plain_terms({"a": field}) for field in said}) == len(said)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_without_a_word_in_json_are_texts(value):
    assert plain_terms({"a": Field("double", value)}) == json.dumps({"a": str(value)})


def test_bytes_that_are_no_text_are_told_escaped():
    assert json.loads(plain_terms({"a": Field("binary", b"\xffx")})) == {"a": "\\xffx"}


@pytest.mark.parametrize(
    "value",
    [
        [None] * TABLE_FIELDS_MAX,
        [[None] * (TABLE_FIELDS_MAX // 2), [None] * (TABLE_FIELDS_MAX // 2)],
        {str(number): None for number in range(TABLE_FIELDS_MAX)},
        [{"a": None}] * (TABLE_FIELDS_MAX // 2),
    ],
    ids=["array", "arrays", "table", "tables"],
)
def test_arguments_that_hold_too_many_values_are_refused(value):
    with pytest.raises(AmqpError, match="more than 256 values") as refused:
        plain_terms(read_arguments({"a": value}))
    assert refused.value.code == ReplyCode.PRECONDITION_FAILED


def test_arguments_may_hold_as_many_values_as_a_table_has_fields():
    values = [None] * (TABLE_FIELDS_MAX - 1)
    assert json.loads(plain_terms(read_arguments({"a": values}))) == {"a": values}
