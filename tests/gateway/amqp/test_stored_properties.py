from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from gateway.amqp.property_block import BlockReader
from gateway.amqp.stored_properties import StoredProperties, name_code

NAMES = {
    b"LMQ_TOPIC": 1, b"LMQ_CLIENT": 2, b"LMQ_USER": 3, b"LMQ_PROTOCOL": 4, b"LMQ_EXCHANGE": 5, b"LMQ_KEY": 6,
    b"LMQ_AMQP": 7, b"LMQ_SET": 1, b"CONTENT_TYPE": 8, b"INNER_MULTI_DISPATCH": 1, b"INNER_MULTI_QUEUE_OFFSET": 1,
    b"__CRC32#": 1, b"INNER_CITY": 0, b"colour": 0, b"x": 0, b"LMQ_NEWER": 1, b"TAGS": 0, b"CONTENT_TAPE": 0,
    b"LMQ_PAIR": 10, b"x-amqp-type": 11, b"x-ampere": 0, b"LMQ_TTL_MS": 9,
}  # fmt: skip


@pytest.mark.parametrize(("name", "code"), NAMES.items())
def test_own_names_are_known(name, code):
    assert name_code(name, 0, len(name)) == code


@given(st.binary(max_size=60))
def test_no_bytes_make_reading_fail(noise):
    found = StoredProperties()
    found.read(noise, 0, len(noise))
    found.amqp_block(noise)
    out = bytearray(600 + 5 * len(noise))
    end = found.write_block(noise, (0, len(noise), 0, 0), 1, 5, out, 0)
    reader = BlockReader()
    reader.read(bytes(out[:end]), 0, end)
    assert reader.delivery_mode == 2


@given(
    st.lists(
        st.sampled_from((b"x-amqp-types\x01Aa=Fb=lc=", b"a\x01[[],[],[]]", b"b\x01{}", b"c\x015", b"a\x01[1,1,1,1]"))
    )
)
def test_block_of_typed_headers_fits_into_its_room(pieces):
    encoded = b"\x02".join(pieces) + b"\x02"
    found = StoredProperties()
    found.read(encoded, 0, len(encoded))
    out = bytearray(600 + 5 * len(encoded))
    end = found.write_block(encoded, (0, len(encoded), 0, 0), 1, 5, out, 0)
    BlockReader().read(bytes(out[:end]), 0, end)
