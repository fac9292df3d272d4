from __future__ import annotations

import zlib

import pytest

from core.message import StoredBatch
from core.store.layout import MAGIC_V1, MAGIC_V2, SYS_BORN_V6, SYS_STORE_V6, UNIT_BEGINS, UNIT_ENDS, UNIT_GOES_ON
from core.store.record import fill_columns, is_intact
from core.store.record_codec import decode_record
from core.store.record_write import end_part, host_flags, magic_of, write_crc, write_topic
from tests.support.records import encode_record
from tests.support.store import make_record


def test_checksum_covers_just_the_bytes_between_start_and_itself():
    dst = bytearray(b"before" + b"record" + bytes(20))
    assert write_crc(dst, 6, 12) == 32
    assert dst[12:21] == b"__CRC32#\x01"
    assert int(dst[21:31][::-1]) == zlib.crc32(b"record") & 0x7FFFFFFF
    assert dst[31] == 2
    assert dst[:12] == b"beforerecord"


@pytest.mark.parametrize(
    ("size", "magic", "length"),
    [(1, MAGIC_V1, b"\x01"), (127, MAGIC_V1, b"\x7f"), (128, MAGIC_V2, b"\x00\x80"), (255, MAGIC_V2, b"\x00\xff")],
)
def test_length_of_a_topic_takes_two_bytes_from_128_on(size, magic, length):
    topic = b"t" * size
    dst = bytearray(260)
    assert magic_of(size) == magic
    end = write_topic(dst, 1, topic)
    assert dst[1:end] == length + topic


@pytest.mark.parametrize("topic_size", [1, 127, 128, 255])
@pytest.mark.parametrize("born_size", [8, 20])
@pytest.mark.parametrize("store_size", [8, 20])
def test_what_was_written_is_read_whatever_moves_its_parts(topic_size, born_size, store_size):
    flags = (SYS_BORN_V6 if born_size == 20 else 0) | (SYS_STORE_V6 if store_size == 20 else 0)
    record = make_record(
        topic=b"t" * topic_size,
        body=b"kept",
        properties=b"K\x01v\x02",
        born_host=bytes(range(born_size)),
        store_host=bytes(range(100, 100 + store_size)),
        sys_flag=flags,
    )
    assert host_flags(record.born_host, record.store_host) == flags
    assert decode_record(encode_record(record, with_crc=False), 0, 0) == record


@pytest.mark.parametrize(("part", "ended"), [(UNIT_BEGINS, 0), (UNIT_GOES_ON, UNIT_ENDS)])
def test_a_record_that_ends_a_unit_is_sound_and_else_as_it_was(part, ended):
    before = encode_record(make_record(sys_flag=part << 16 | 8), with_crc=True)
    dst = bytearray(b"....") + before
    end_part(dst, 4)
    batch = StoredBatch(1)
    assert fill_columns(batch, 0, dst[4:], 0, 0)
    assert is_intact(batch, 0, dst[4:])
    assert batch.sys_flag[0] == ended << 16 | 8
    assert dst[4:40] + dst[44:-20] == before[:36] + before[40:-20]
