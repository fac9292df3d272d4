from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from gateway.amqp.property_block import BlockReader
from gateway.amqp.stored_properties import StoredProperties, name_code

NAMES = {
    b"LMQ_TOPIC": 1, b"LMQ_CLIENT": 2, b"LMQ_USER": 3, b"LMQ_PROTOCOL": 4, b"LMQ_EXCHANGE": 5, b"LMQ_KEY": 6,
    b"LMQ_AMQP": 7, b"LMQ_SET": 1, b"CONTENT_TYPE": 8, b"INNER_MULTI_DISPATCH": 1, b"INNER_MULTI_QUEUE_OFFSET": 1,
    b"__CRC32#": 1, b"INNER_CITY": 0, b"colour": 0, b"x": 0, b"LMQ_NEWER": 1, b"TAGS": 0, b"CONTENT_TAPE": 0,
}  # fmt: skip


@pytest.mark.parametrize(("name", "code"), NAMES.items())
def test_own_names_are_known(name, code):
    assert name_code(name, 0, len(name)) == code


@given(st.binary(max_size=60))
def test_no_bytes_make_reading_fail(noise):
    found = StoredProperties()
    found.read(noise, 0, len(noise))
    found.amqp_block(noise)
    out = bytearray(600 + 3 * len(noise))
    end = found.write_block(noise, (0, len(noise), 0, 0), 1, 5, out, 0)
    reader = BlockReader()
    reader.read(bytes(out[:end]), 0, end)
    assert reader.delivery_mode == 2
