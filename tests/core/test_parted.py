from __future__ import annotations

from hypothesis import given, strategies as st

from core.parted import PART_MIN, PartedMap

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
    finally:
        core.parted.PART_MIN = before


def test_no_part_is_ever_large():
    found = PartedMap({}, lambda key: key >> 3)
    for key in range(0, 800_000, 8):
        found[key] = key
    assert max(len(part) for part in found._parts) < PART_MIN
    assert len(PartedMap(dict(found.items()))._parts) > 1
