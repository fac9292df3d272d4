from __future__ import annotations

import pytest

from gateway.mqtt import varint
from gateway.mqtt.properties import read_varint

EDGES = [0, 1, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152, 268_435_455]


@pytest.mark.parametrize("value", EDGES)
def test_a_number_takes_as_many_bytes_as_are_told_and_is_read_back(value):
    out = bytearray(b"\xff" * 6)
    end = varint.put(out, 1, value)
    assert end == 1 + varint.size_of(value)
    assert read_varint(bytes(out), 1) == (value, end)
    assert out[0] == 0xFF
    assert set(out[end:]) == {0xFF}


def test_a_number_that_does_not_fit_is_an_error():
    with pytest.raises(IndexError):
        varint.put(bytearray(2), 1, 128)
