from __future__ import annotations

import json

import pytest
from hypothesis import given, settings, strategies as st

from gateway.admin.management.definitions_text import DefinitionsSplitter, DefinitionsTextError, write_section

VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


def put_together(text, size=1 << 20):
    """Take a text apart that comes in parts of a size."""
    splitter, found = DefinitionsSplitter(), {}
    for at in range(0, len(text) + 1, size):
        splitter.feed(text[at : at + size], is_last=at + size > len(text))
        for name, item in splitter.found():
            found.setdefault(name, []).append(item)
    return found


@settings(max_examples=100)
@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=5), st.sampled_from([None, 1]), st.integers(1, 30))
def test_any_object_comes_apart_as_json_says_however_it_comes(document, indent, size):
    expected = {name: value if isinstance(value, list) else [value] for name, value in document.items() if value != []}
    assert put_together(json.dumps(document, indent=indent), size) == expected


@settings(max_examples=100)
@given(
    st.text()
    | VALUES.map(json.dumps)
    | st.dictionaries(st.text(max_size=5), VALUES, max_size=3).map(lambda value: json.dumps(value)[:-2]),
    st.integers(1, 30),
)
def test_what_is_no_object_is_refused_as_json_does(text, size):
    try:
        document = json.loads(text)
    except ValueError:
        document = None
    if isinstance(document, dict):
        put_together(text, size)
    else:
        with pytest.raises(DefinitionsTextError, match="not JSON"):
            put_together(text, size)


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"a" 1}', '{"a": [1 2]}', '{"a": 1,}', '{"a": [1,]}', "{} x", "{'a': 1}"]
)
def test_what_is_not_json_is_refused(text):
    for size in (1, 1_000):
        with pytest.raises(DefinitionsTextError, match="not JSON"):
            put_together(text, size)


def test_numbers_that_come_in_parts_are_whole():
    text = '{"a": 12.5e3, "b": [-1.25, 3, true], "c": {"d": [1, 2.5]}}'
    for size in range(1, len(text)):
        assert put_together(text, size) == {"a": [12500.0], "b": [-1.25, 3, True], "c": [{"d": [1, 2.5]}]}


def test_what_is_wrong_is_said_with_its_line():
    text = '{\n "a": [1,\n  2,\n  x]}'
    for size in (1, 7, 1_000):
        with pytest.raises(DefinitionsTextError, match="Expecting value in line 4"):
            put_together(text, size)


def test_what_came_whole_is_given_before_the_rest_is_there():
    splitter = DefinitionsSplitter()
    splitter.feed('{"queues": [{"name": "a"}, {"name": "b"}, {"na')
    assert list(splitter.found()) == [("queues", {"name": "a"}), ("queues", {"name": "b"})]
    splitter.feed('me": "c"}]}', is_last=True)
    assert list(splitter.found()) == [("queues", {"name": "c"})]


def test_nesting_without_end_is_refused():
    with pytest.raises(DefinitionsTextError, match="not JSON"):
        put_together('{"a": ' + '{"a": ' * 200_000)


def test_section_is_a_member_with_a_list():
    for count in (0, 1, 2, 500, 501, 1_500):
        items = [{"name": f"q{number}"} for number in range(count)]
        text = "".join(write_section("queues", [json.dumps(item) for item in items]))
        assert json.loads("{" + text + "}") == {"queues": items}
