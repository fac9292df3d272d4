from __future__ import annotations

import pytest

from lmq.remoting.integers import read_u16, read_u32

DATA = bytes((0x01, 0x80, 0xFF, 0x00, 0x7F))


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_integers_are_big_endian_and_unsigned(kind):
    assert read_u16(kind(DATA), 1) == 0x80FF
    assert read_u32(kind(DATA), 1) == 0x80FF007F


@pytest.mark.parametrize(("read", "size"), [(read_u16, 2), (read_u32, 4)])
def test_a_position_outside_is_an_error(read, size):
    read(DATA, len(DATA) - size)
    for pos in (-1, len(DATA) - size + 1, len(DATA)):
        with pytest.raises(IndexError):
            read(DATA, pos)
