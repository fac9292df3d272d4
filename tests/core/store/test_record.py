from __future__ import annotations

import zlib
from array import array

import pytest

from core.errors import CorruptRecordError
from core.message import StoredBatch
from core.store.record import (
    BLANK,
    NO_RECORD,
    fill_batch,
    fill_columns,
    find_property,
    find_sound,
    is_intact,
    record_size,
)
from core.store.record_codec import decode_record
from tests.support.records import encode_record
from tests.support.store import make_record


def test_integrity_property_has_ten_digits_lowest_first_over_the_bytes_before():
    raw = encode_record(make_record(), with_crc=True)
    assert raw[-20:-11] == b"__CRC32#\x01"
    assert raw[-1] == 2
    assert int(raw[-11:-1][::-1]) == zlib.crc32(raw[:-20]) & 0x7FFFFFFF


def test_record_is_not_taken_for_one_where_any_part_of_its_end_never_reached_the_disk():
    raw = encode_record(make_record(body=b"kept", properties=b"K\x01" + b"v" * 300 + b"\x02"), with_crc=True)
    columns = StoredBatch(1)
    assert fill_columns(columns, 0, raw, 0, 0)
    for start in range(columns.properties_start[0], len(raw)):
        for end in {start + 1, *range(max(start, len(raw) - 25), len(raw))} - {start}:
            torn = raw[:start] + bytes(end - start) + raw[end:]
            assert not fill_columns(columns, 0, torn, 0, 0) or not is_intact(columns, 0, torn)


def test_every_flipped_bit_is_noticed_with_the_integrity_property():
    raw = encode_record(make_record(properties=b"K\x01v\x02"), with_crc=True)
    for at in range(len(raw) * 8):
        damaged = bytearray(raw)
        damaged[at >> 3] ^= 1 << (at & 7)
        with pytest.raises(CorruptRecordError):
            decode_record(bytes(damaged), 0, 0)


def test_body_damage_is_noticed_without_the_integrity_property():
    raw = bytearray(encode_record(make_record(body=b"abc"), with_crc=False))
    raw[90] ^= 1
    with pytest.raises(CorruptRecordError):
        decode_record(bytes(raw), 0, 0)


def test_record_at_a_foreign_offset_is_none():
    raw = encode_record(make_record(physical_offset=100), with_crc=True)
    columns = StoredBatch(1)
    assert not fill_columns(columns, 0, raw, 0, 0)
    assert fill_columns(columns, 0, raw, 0, 100)


def test_blank_and_nothing_are_told_apart():
    assert record_size(bytes.fromhex("00001000cbd43194") + bytes(100), 0) == BLANK
    assert record_size(bytes(100), 0) == NO_RECORD
    assert record_size(b"", 0) == NO_RECORD
    assert record_size(encode_record(make_record(), with_crc=True)[:-1], 0) == NO_RECORD


def test_every_truncation_and_wrong_length_is_refused_without_a_fault():
    raw = encode_record(make_record(body=b"abc", properties=b"K\x01v\x02"), with_crc=True)
    columns = StoredBatch(1)
    for size in range(len(raw)):
        assert not fill_columns(columns, 0, raw[:size], 0, 0)
    for at in (0, 36, 84, 91, 93):
        for value in (b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x80\x00\x00\x00", b"\x00\x00\xff\xff"):
            damaged = raw[:at] + value + raw[at + 4 :]
            assert not fill_columns(columns, 0, damaged, 0, 0) or not is_intact(columns, 0, damaged)


def test_columns_give_the_publishers_topic_where_there_is_one():
    raw = encode_record(make_record(properties=b"LMQ_TOPIC\x01a/b\x02K\x01v\x02"), with_crc=True)
    columns = StoredBatch(1)
    assert fill_columns(columns, 0, raw, 0, 0)
    assert raw[columns.topic_start[0] : columns.topic_end[0]] == b"a/b"


def test_batch_fill_leaves_out_damage_and_goes_past_it():
    raws = [encode_record(make_record(body=b"x" * 20, physical_offset=i * 133), with_crc=True) for i in range(3)]
    assert len(raws[0]) == 132
    segment = bytearray(b"\0".join(raws))
    segment[133 + 95] ^= 1
    into = StoredBatch(8)
    positions = array("i", [0, 133, 266, -1])
    assert fill_batch(into, segment, 0, positions, 4, 50, 1 << 20, 1 << 30) == 2
    assert list(into.queue_offset[:2]) == [50, 52]
    assert into.next_offset == 54
    into.clear()
    assert fill_batch(into, segment, 0, positions, 4, 50, 1, 0) == 1
    assert into.next_offset == 51
    into.clear()
    assert fill_batch(into, segment, 0, positions, 4, 50, 1 << 20, 0) == 3


def test_property_is_found_by_its_whole_name():
    encoded = b"AB\x01x\x02B\x01y\x02LAST\x01z"
    at = find_property(encoded, 0, len(encoded), b"B")
    assert encoded[at : at + 1] == b"y"
    assert encoded[find_property(encoded, 0, len(encoded), b"LAST") :] == b"z"
    assert find_property(encoded, 0, len(encoded), b"A") == -1
    assert find_property(encoded, 0, len(encoded), b"LAS") == -1
    assert find_property(b"", 0, 0, b"A") == -1


def test_next_sound_record_is_found_after_damage():
    raws = [encode_record(make_record(body=b"x" * 20, physical_offset=k * 132), with_crc=True) for k in range(4)]
    segment = bytearray(b"".join(raws) + bytes(100))
    scratch = StoredBatch(1)
    segment[132 + 60] ^= 1  # its size still leads on
    assert find_sound(scratch, segment, 0, 132, len(segment)) == 264
    segment[132 : 132 + 4] = b"\0\0\1\1"  # it leads nowhere
    assert find_sound(scratch, segment, 0, 132, len(segment)) == 264
    segment[264:396] = bytes(132)
    assert find_sound(scratch, segment, 0, 132, len(segment)) == 396
    assert find_sound(scratch, segment, 0, 396, len(segment)) == -1


def test_record_inside_a_body_is_not_taken_for_one_after_damage():
    inner = encode_record(make_record(physical_offset=1), with_crc=True)
    outer = bytearray(encode_record(make_record(body=inner), with_crc=True))
    outer[3] ^= 1
    assert find_sound(StoredBatch(1), outer, 0, 0, len(outer)) == -1
