from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from core.bytes_map import PARTS_FROM, BytesMap

STEPS = st.lists(st.tuples(st.booleans(), st.binary(max_size=1), st.integers(0, 3)), max_size=60)


@given(STEPS, st.sampled_from([0, PARTS_FROM]))
def test_it_is_a_dict_in_parts_or_not(steps, others):
    model = {b"other%d" % number: number for number in range(others)}
    found = BytesMap(dict(model))
    for is_put, key, value in steps:
        if is_put:
            model[key] = value
            found.put(key, value)
        elif key in model:
            del model[key]
            found.drop(key)
        else:
            with pytest.raises(KeyError):
                found.drop(key)
        assert (found.get(key), len(found)) == (model.get(key), len(model))
    assert sorted(found.items()) == sorted(model.items())


def test_it_goes_on_with_the_dict_of_a_small_map():
    entries = {b"a": 1}
    found = BytesMap(entries)
    found.put(b"b", 2)
    assert entries == {b"a": 1, b"b": 2}


def test_entries_are_there_before_and_behind_the_step_to_parts():
    found = BytesMap({})
    for number in range(PARTS_FROM + 1):
        found.put(b"%d" % number, number)
        assert found.get(b"%d" % number) == number
    assert [found.get(b"%d" % number) for number in range(len(found))] == list(range(PARTS_FROM + 1))
