from __future__ import annotations

import zlib

import pytest
from hypothesis import given, strategies as st

from core import octets

WRITERS = [(octets.write_u8, 1), (octets.write_u16, 2), (octets.write_u32, 4), (octets.write_u64, 8)]


@given(st.integers(0, 2**16 - 1), st.integers(0, 2**32 - 1), st.integers(0, 2**63 - 1))
def test_what_is_written_is_read_back(small, middle, large):
    buf = bytearray(16)
    octets.write_u16(buf, 0, small)
    octets.write_u32(buf, 2, middle)
    octets.write_u64(buf, 6, large)
    assert octets.read_u16(buf, 0) == small
    assert octets.read_u32(buf, 2) == middle
    assert octets.read_i64(buf, 6) == large


@given(st.lists(st.sampled_from([0, 1, 2, 3, 97, 127, 128, 255]), max_size=20).map(bytes))
def test_kinds_of_bytes_are_told(data):
    expected = (octets.HAS_ZERO if 0 in data else 0) | (octets.HAS_SEPARATOR if {1, 2} & set(data) else 0)
    expected |= octets.HAS_HIGH if any(one >= 128 for one in data) else 0
    assert octets.kinds_of(b"\0" + data + b"\xff", 1, 1 + len(data)) == expected
    with pytest.raises(IndexError):
        octets.kinds_of(data, 0, len(data) + 1)


def test_signed_reads_keep_the_sign():
    assert octets.read_i32(b"\xff\xff\xff\xfe", 0) == -2
    assert octets.read_i64(b"\xff" * 8, 0) == -1


def test_bytes_are_copied_out_and_never_from_outside():
    assert octets.read_bytes(bytearray(b"abcdef"), 2, 5) == b"cde"
    assert octets.read_bytes(b"abc", 3, 3) == b""
    for pos, end in ((-1, 2), (2, 4), (2, 1)):
        with pytest.raises(IndexError):
            octets.read_bytes(b"abc", pos, end)


@pytest.mark.parametrize(("write", "size"), WRITERS)
def test_a_write_past_the_end_is_refused_and_changes_nothing(write, size):
    buf = bytearray(8)
    for pos in (-1, 9 - size):
        with pytest.raises(IndexError):
            write(buf, pos, 1)
    assert buf == bytearray(8)


@pytest.mark.parametrize(
    ("read", "size"), [(octets.read_u16, 2), (octets.read_u32, 4), (octets.read_i32, 4), (octets.read_i64, 8)]
)
def test_a_read_past_the_end_is_refused(read, size):
    for pos in (-1, 9 - size):
        with pytest.raises(IndexError):
            read(bytes(8), pos)


@given(st.integers(0, 2**63 - 1))
def test_decimals_are_ascii_digits(value):
    buf = bytearray(24)
    end = octets.write_decimal(buf, 2, value)
    assert buf[2:end] == str(value).encode()


def test_copy_refuses_positions_outside_either_buffer():
    dst = bytearray(4)
    octets.copy_bytes(dst, 1, b"abcdef", 2, 3)
    assert dst == b"\x00cde"
    for dst_pos, src_pos, size in ((2, 0, 3), (0, 5, 2), (-1, 0, 1), (0, -1, 1), (0, 0, -1)):
        with pytest.raises(IndexError):
            octets.copy_bytes(dst, dst_pos, b"abcdef", src_pos, size)


def test_equal_bytes_is_false_where_one_buffer_ends_first():
    assert octets.equal_bytes(b"xabc", 1, b"abc", 0, 3)
    assert not octets.equal_bytes(b"xab", 1, b"abc", 0, 3)
    assert not octets.equal_bytes(b"abd", 0, b"abc", 0, 3)


@given(st.binary(max_size=64), st.integers(0, 255))
def test_find_byte_gives_the_first_position_in_range(buf, value):
    assert octets.find_byte(buf, value, 0, len(buf)) == buf.find(value)
    with pytest.raises(IndexError):
        octets.find_byte(buf, value, 0, len(buf) + 1)


@given(st.binary(max_size=300))
def test_crc_is_zlibs_without_the_top_bit(data):
    assert octets.crc32(data, 0, len(data)) == zlib.crc32(data) & 0x7FFFFFFF
