"""A record's checksum tells which bit of it was flipped."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from core.store.flipped_bit import repairs
from tests.support.records import encode_record
from tests.support.store import make_record


@pytest.mark.parametrize("body", [b"", b"hi", bytes(300)])
def test_every_bit_of_a_record_is_found(body):
    record = encode_record(make_record(body=body), with_crc=True)
    for place in range(8 * len(record)):
        damaged = bytearray(record)
        damaged[place // 8] ^= 1 << place % 8
        assert record in repairs(bytes(damaged))


@given(body=st.binary(max_size=20_000), data=st.data())
@settings(max_examples=30, deadline=None)
def test_a_bit_of_a_long_record_is_found_and_hardly_another_one(body, data):
    record = encode_record(make_record(body=body), with_crc=True)
    place = data.draw(st.integers(0, 8 * len(record) - 1))
    damaged = bytearray(record)
    damaged[place // 8] ^= 1 << place % 8
    found = repairs(bytes(damaged))
    assert record in found
    assert len(found) <= 2


@given(st.binary(max_size=300))
def test_any_bytes_are_gone_through(data):
    assert isinstance(repairs(data), list)
