from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from core import properties

PART = st.binary(min_size=1, max_size=20).filter(lambda part: not {1, 2} & set(part))


@given(st.dictionaries(PART, PART, max_size=8))
def test_the_encoded_form_decodes_to_the_same_map(items):
    assert properties.decode_properties(properties.encode_properties(items)) == items


def test_a_missing_last_separator_and_rubbish_are_tolerated():
    assert properties.decode_properties(b"a\x01b\x02junk\x02c\x01d") == {b"a": b"b", b"c": b"d"}


@pytest.mark.parametrize(
    ("name", "value"), [(b"", b"x"), (b"LMQ_TOPIC", b"x"), (b"a\x01", b"x"), (b"a", b"x\x02"), (b"DELAY", b"1")]
)
def test_what_would_break_or_forge_the_log_is_not_plain(name, value):
    assert not properties.is_plain(name, value)


def test_origin_leaves_out_what_is_empty_or_cannot_be_stored():
    origin = properties.encode_origin(b"mqtt", b"dev\x01", b"")
    assert properties.decode_properties(origin) == {properties.PROTOCOL: b"mqtt"}
