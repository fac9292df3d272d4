from __future__ import annotations

import json

import pytest
from hypothesis import given, settings, strategies as st

from gateway.admin.management.definitions_text import DefinitionsTextError, split_definitions, write_section

VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


def put_together(text):
    found = {}
    for name, item in split_definitions(text):
        found.setdefault(name, []).append(item)
    return found


@settings(max_examples=100)
@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=5), st.sampled_from([None, 1]))
def test_any_object_comes_apart_as_json_says(document, indent):
    expected = {name: value if isinstance(value, list) else [value] for name, value in document.items() if value != []}
    assert put_together(json.dumps(document, indent=indent)) == expected


@settings(max_examples=100)
@given(
    st.text()
    | VALUES.map(json.dumps)
    | st.dictionaries(st.text(max_size=5), VALUES, max_size=3).map(lambda value: json.dumps(value)[:-2])
)
def test_what_is_no_object_is_refused_as_json_does(text):
    try:
        document = json.loads(text)
    except ValueError:
        document = None
    if isinstance(document, dict):
        put_together(text)
    else:
        with pytest.raises(DefinitionsTextError, match="not JSON"):
            put_together(text)


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"a" 1}', '{"a": [1 2]}', '{"a": 1,}', '{"a": [1,]}', "{} x", "{'a': 1}"]
)
def test_what_is_not_json_is_refused(text):
    with pytest.raises(DefinitionsTextError, match="not JSON"):
        put_together(text)


def test_nesting_without_end_is_refused():
    with pytest.raises(DefinitionsTextError, match="not JSON"):
        put_together('{"a": ' + '{"a": ' * 200_000)


def test_section_is_a_member_with_a_list():
    for count in (0, 1, 2, 500, 501, 1_500):
        items = [{"name": f"q{number}"} for number in range(count)]
        text = "".join(write_section("queues", [json.dumps(item) for item in items]))
        assert json.loads("{" + text + "}") == {"queues": items}
