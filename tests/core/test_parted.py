from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from core.parted import CHUNK, PART_MIN, OrderedMap, PartedMap, mix_number, outgrow

KEYS = st.binary(max_size=1)
STEPS = st.lists(st.tuples(st.booleans(), KEYS, st.integers(0, 3)), max_size=60)


@given(STEPS, st.sampled_from([1, 3, PART_MIN]))
def test_it_is_a_dict_in_parts_or_not(steps, part_min):
    import core.parted  # noqa: PLC0415

    before, core.parted.PART_MIN = core.parted.PART_MIN, part_min
    try:
        model, found = {}, PartedMap({})
        for is_set, key, value in steps:
            if is_set:
                model[key] = found[key] = value
            else:
                assert found.pop(key) == model.pop(key, None)
            assert (found.get(key), key in found, len(found)) == (model.get(key), key in model, len(model))
        assert sorted(found.items()) == sorted(model.items())
        assert sorted(found.list_keys()) == sorted(model)
    finally:
        core.parted.PART_MIN = before


def test_no_part_is_ever_large():
    found = PartedMap({}, lambda key: key >> 3)
    for key in range(0, 800_000, 8):
        found[key] = key
    assert max(len(part) for part in found._parts) < PART_MIN
    assert len(PartedMap(dict(found.items()))._parts) > 1


def test_entries_of_a_part_begin_at_many_places_of_its_dict():
    found = PartedMap({b"%d" % number: number for number in range(20_000)})
    places = {hash(key) % 64 for key in found._parts[0]}  # as a dict of 64 places would have it
    assert len(places) > 32


@pytest.mark.parametrize("step", [1, 8, 256, 4_096])
def test_parts_of_numbers_at_equal_distances_do_not_grow_all_at_once(step):
    found = PartedMap({}, mix_number)
    for number in range(0, 300_000 * step, step):
        found[number] = number
    sizes = [len(part) for part in found._parts]
    assert max(sizes) < 1.5 * len(found) / len(sizes)
    assert len(set(sizes)) > 50


@given(STEPS, st.sampled_from([1, 2, CHUNK]))
def test_an_ordered_one_is_a_dict_in_chunks_or_not(steps, chunk):
    import core.parted  # noqa: PLC0415

    before, core.parted.CHUNK = core.parted.CHUNK, chunk
    try:
        model, found = {}, OrderedMap()
        for is_set, key, value in steps:
            if is_set:
                model[key] = found[key] = value
            elif key in model:
                del model[key]
                del found[key]
            else:
                for act in (found.__delitem__, found.__getitem__):
                    with pytest.raises(KeyError):
                        act(key)
            assert (found.get(key), key in found, len(found)) == (model.get(key), key in model, len(model))
            assert list(found) == list(model)
            assert list(found.values()) == list(model.values())
            assert list(found.newest_values()) == list(model.values())[::-1]
            assert bool(found) is bool(model)
    finally:
        core.parted.CHUNK = before


def test_no_chunk_of_an_ordered_one_is_ever_large():
    found = OrderedMap()
    for key in range(100_000):
        found[key] = str(key)
    assert {len(chunk) for chunk in found._chunks.values()} == {CHUNK, 100_000 % CHUNK}
    for key in range(100_000):
        del found[key]
    assert len(found._chunks) == 1


def test_an_ordered_one_may_change_while_it_is_walked():
    found = OrderedMap()
    for key in range(3 * CHUNK):
        found[key] = str(key)
    for key in found:
        del found[key]
        found[-key - 1] = ""
    assert len(found) == 3 * CHUNK
    assert max(found) < 0


def test_a_dict_that_outgrows_its_size_goes_on_in_chunks_and_in_its_order():
    found = first = {}
    for key in range(3 * CHUNK):
        found = outgrow(found)
        found[key] = True
        assert isinstance(found, dict) is (key < CHUNK)
    assert (len(found), len(first)) == (3 * CHUNK, CHUNK)
    assert list(found) == list(range(3 * CHUNK))
    for key in range(3 * CHUNK):
        assert key in found
        del found[key]
    assert not found
