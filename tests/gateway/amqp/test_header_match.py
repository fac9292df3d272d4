from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from pamqp import commands, encode

from gateway.amqp.errors import AmqpError
from gateway.amqp.field_table import Field
from gateway.amqp.header_match import HeaderIndex, find_headers, parse_match, read_headers


def field(value):
    if value is None:
        return Field("void", None)
    if isinstance(value, bool):
        return Field("bool", value)
    if isinstance(value, int):
        return Field("signedint" if value % 2 else "long", value)
    return Field("double", value) if isinstance(value, float) else Field("longstr", value.encode())


def table(said):
    return {name: field(value) for name, value in said.items()}


def matches(arguments, headers):
    index = HeaderIndex()
    index.add("q", parse_match(table(arguments)))
    return bool(list(index.find(table(headers))))


@pytest.mark.parametrize(
    ("arguments", "headers", "expected"),
    [
        ({}, {}, True),
        ({"x-match": "any"}, {"a": 1}, False),
        ({"a": 1, "b": "t"}, {"a": 1, "b": "t", "c": 0}, True),
        ({"a": 1, "b": "t"}, {"a": 1}, False),
        ({"x-match": "any", "a": 1, "b": "t"}, {"b": "t"}, True),
        ({"x-match": "any", "a": 1}, {"a": 2}, False),
        ({"a": None}, {"a": "whatever"}, True),
        ({"a": None}, {}, False),
        ({"a": 1}, {"a": "1"}, False),
        ({"a": 1}, {"a": True}, False),
        ({"a": 1}, {"a": 1.0}, True),
        ({"x-a": 1}, {}, True),
        ({"x-match": "all-with-x", "x-a": 1}, {}, False),
        ({"x-match": "all-with-x", "x-a": 1}, {"x-a": 1}, True),
        ({"x-match": "any", "x-a": 1}, {"x-a": 1}, False),
        ({"x-match": "any-with-x", "x-a": 1}, {"x-a": 1}, True),
    ],
)
def test_a_message_matches_by_its_headers_as_in_rabbitmq(arguments, headers, expected):
    assert matches(arguments, headers) == expected


ONE, ONE_AND_A_HALF = b"\0\0\0\0\1", b"\1\0\0\0\x0f"


@pytest.mark.parametrize(
    ("asked", "said", "expected"),
    [
        (Field("signedint", 1), Field("timestamp", 1), True),
        (Field("timestamp", 1), Field("float", 1.0), True),
        (Field("timestamp", 1), Field("timestamp", 2), False),
        (Field("longstr", b"v"), Field("binary", b"v"), True),
        (Field("binary", b"v"), Field("longstr", b"v"), True),
        (Field("binary", b"v"), Field("array", b"v"), False),
        (Field("decimal", ONE), Field("decimal", ONE), True),
        (Field("decimal", ONE), Field("decimal", ONE_AND_A_HALF), False),
        (Field("decimal", ONE), Field("signedint", 1), False),
        (Field("bool", True), Field("double", 1.0), False),
    ],
)
def test_values_are_compared_whatever_type_a_number_or_a_text_has(asked, said, expected):
    index = HeaderIndex()
    for kind in ("any", "all"):
        index.add(kind, parse_match({"x-match": Field("longstr", kind.encode()), "a": asked}))
    assert {owner for owner, _ in index.find({"a": said})} == ({"any", "all"} if expected else set())


def test_bindings_of_numbers_of_two_types_are_taken_back_one_by_one():
    index = HeaderIndex()
    whole, broken = parse_match({"a": Field("signedint", 1)}), parse_match({"a": Field("double", 1.0)})
    index.add("q", whole)
    index.add("q", broken)
    index.remove("q", broken)
    assert [match for _, match in index.find({"a": Field("long", 1)})] == [whole]
    index.remove("q", whole)
    assert not index.find({"a": Field("long", 1)})


def naive(arguments, headers):
    kind = arguments.get("x-match", "all")
    asked = {
        name: value
        for name, value in arguments.items()
        if name != "x-match" and (kind.endswith("-with-x") or not name.startswith("x-"))
    }
    hits = [
        name in headers
        and (value is None or (headers[name] == value and isinstance(headers[name], bool) == isinstance(value, bool)))
        for name, value in asked.items()
    ]
    return any(hits) if kind.startswith("any") else all(hits)


VALUES = st.sampled_from([None, True, 1, 2, 1.0, "1", "t"])
SAID = st.dictionaries(st.sampled_from(["a", "b", "x-c"]), VALUES)
KINDS = st.sampled_from(["all", "any", "all-with-x", "any-with-x"])


@given(st.lists(st.tuples(KINDS, SAID), max_size=5), SAID)
def test_the_index_finds_what_a_look_at_each_pattern_would(patterns, headers):
    index = HeaderIndex()
    kept = {}
    for number, (kind, said) in enumerate(patterns):
        arguments = {"x-match": kind, **said}
        kept[number] = arguments
        index.add(number, parse_match(table(arguments)))
    found = {number for number, _ in index.find(table(headers))}
    assert found == {number for number, arguments in kept.items() if naive(arguments, headers)}
    for number, arguments in kept.items():
        index.remove(number, parse_match(table(arguments)))
    assert not list(index.find(table(headers)))


@pytest.mark.parametrize("said", [{}, {"a": 1}, {"a": 1, "b": None}, {"x-match": "any", "a": 1, "b": "t"}])
def test_a_pattern_is_found_until_it_is_taken_out_as_often_as_it_was_put_in(said):
    index = HeaderIndex()
    for _ in range(3):
        index.add("q", parse_match(table(said)))
    for left in (3, 2, 1, 0):
        assert len(index.find(table({"a": 1, "b": "t"}))) == bool(left)
        if left:
            index.remove("q", parse_match(table(said)))


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (
            Field("longstr", b"some"),
            'Invalid x-match field value <<"some">>; expected all, any, all-with-x, or any-with-x',
        ),
        (Field("long", 1), "Invalid x-match field type long (value 1); expected longstr"),
        (Field("void", None), "Invalid x-match field type void (value undefined); expected longstr"),
        (Field("bool", value=True), "Invalid x-match field type bool (value true); expected longstr"),
    ],
)
def test_an_x_match_that_means_nothing_is_refused(said, text):
    with pytest.raises(AmqpError, match="PRECONDITION_FAILED") as caught:
        parse_match({"x-match": said})
    assert text in str(caught.value)


@given(
    st.fixed_dictionaries(
        {}, optional={"content_type": st.just("t"), "content_encoding": st.just("e"), "priority": st.integers(0, 9)}
    ),
    st.none() | st.dictionaries(st.sampled_from(["a", "b"]), st.sampled_from(["", "x"])),
)
def test_headers_are_found_in_a_property_block(properties, headers):
    if headers is not None:
        properties["headers"] = headers
    block = commands.Basic.Properties(**properties).marshal()
    expected = encode.field_table(headers)[4:] if headers else b""
    found = find_headers(block)
    assert found == expected
    assert {name: one.text for name, one in read_headers(found).items()} == (headers or {})
