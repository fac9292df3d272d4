from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, strategies as st

from gateway.amqp.field_table import check_table, read_table
from gateway.amqp.table_writer import encode_table

NUMBERS = st.integers(-9, 9) | st.floats(allow_nan=False)


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (None, b"V"),
        (True, b"t\1"),
        (False, b"t\0"),
        (1, b"l\0\0\0\0\0\0\0\1"),
        (-(1 << 63), b"l\x80\0\0\0\0\0\0\0"),
        (0.1, b"d\x3f\xb9\x99\x99\x99\x99\x99\x9a"),
        (datetime(1970, 1, 2, tzinfo=UTC), b"T\0\0\0\0\0\1\x51\x80"),
        ("\u00fc", b"S\0\0\0\2\xc3\xbc"),
        ([1, "x"], b"A\0\0\0\x0fl\0\0\0\0\0\0\0\1S\0\0\0\1x"),
        ({"k": []}, b"F\0\0\0\7\1kA\0\0\0\0"),
    ],
)
def test_each_value_has_the_type_that_rabbitmq_gives_it(value, encoded):
    assert encode_table({"n": value}) == (len(encoded) + 2).to_bytes(4, "big") + b"\1n" + encoded


@given(st.dictionaries(st.text(max_size=20), st.none() | st.booleans() | NUMBERS))
def test_what_is_written_is_read(table):
    encoded = encode_table(table)
    assert check_table(encoded, 0, len(encoded)) == len(encoded)
    assert {name: field.value for name, field in read_table(encoded, 4, len(encoded)).items()} == table


@pytest.mark.parametrize(
    ("value", "said"),
    [(1 << 63, "too large"), ({"x" * 256: 1}, "256 bytes, more than 255"), ([b"x"], "no values of type bytes")],
)
def test_what_a_table_cannot_have_is_refused(value, said):
    with pytest.raises((ValueError, TypeError), match=said):
        encode_table({"n": value})
