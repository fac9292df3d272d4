from __future__ import annotations

import json
import zlib
from array import array
from pathlib import Path

import pytest

from core.errors import CorruptRecordError
from core.message import StoredBatch
from core.properties import decode_properties
from core.store.record import (
    BLANK,
    NO_RECORD,
    Record,
    decode_record,
    encode_record,
    fill_batch,
    fill_columns,
    find_property,
    is_intact,
    record_size,
    tags_code,
)

GOLDEN = Path(__file__).parents[2] / "data" / "rocketmq-5.5.0"


def golden_records():
    log = (GOLDEN / "commitlog.bin").read_bytes()
    pos = 0
    while pos < len(log):
        yield pos, decode_record(log, pos, 0)
        pos += record_size(log, pos)


def make_record(**fields):
    values = {"topic": b"T", "queue_id": 3, "queue_offset": 7, "physical_offset": 0, "body": b"hi", "properties": b""}
    return Record(**(values | fields))


def test_official_log_decodes_to_what_was_sent():
    stored = {record.physical_offset: record for _, record in golden_records()}
    accepted = [sent for sent in json.loads((GOLDEN / "sent.json").read_text()) if sent["response"]["code"] == 0]
    assert len(accepted) >= 12
    for sent in accepted:
        record = stored[int(sent["response"]["msgId"][-16:], 16)]
        body = b"z" * 65_536 if sent["body"].startswith("65536 bytes") else bytes.fromhex(sent["body"])
        assert record.body == body
        assert record.flag == sent["flag"]
        assert record.born_ms == sent["bornTimestamp"]
        properties = decode_properties(record.properties)
        assert properties.get(b"REAL_TOPIC", record.topic).decode() == sent["topic"]
        assert int(properties.get(b"REAL_QID", record.queue_id)) == sent["queueId"]
        for name, value in decode_properties(sent["properties"].encode()).items():
            if name != b"WAIT":
                assert properties[name] == value


def test_official_records_encode_back_byte_for_byte():
    log = (GOLDEN / "commitlog.bin").read_bytes()
    records = list(golden_records())
    assert len(records) == 15
    for pos, record in records:
        assert encode_record(record, with_crc=False) == log[pos : pos + record_size(log, pos)]


def test_official_tags_codes_are_java_hashes():
    queues = json.loads((GOLDEN / "queues.json").read_text())
    codes = {entry[0]: entry[2] for key, queue in queues.items() if "SCHEDULE" not in key for entry in queue}
    for pos, record in golden_records():
        if pos in codes:
            assert tags_code(record.properties) == codes[pos]
    assert tags_code(b"TAGS\x01TagA\x02") == 2598919
    assert tags_code("TAGS\x01\N{GRINNING FACE}abcdefghij\x02".encode()) < 0


@pytest.mark.parametrize("with_crc", [False, True])
@pytest.mark.parametrize("hosts", [(8, 8), (20, 8), (8, 20), (20, 20)])
@pytest.mark.parametrize("topic", [b"", b"t" * 127, b"t" * 128, b"t" * 255])
def test_any_record_decodes_to_itself(with_crc, hosts, topic):
    record = make_record(
        topic=topic,
        body=b"x" * 300,
        properties=b"A\x01b\x02",
        flag=-5,
        sys_flag=(0x10 if hosts[0] == 20 else 0) | (0x20 if hosts[1] == 20 else 0),
        born_ms=1_790_000_000_000,
        born_host=bytes(range(hosts[0])),
        store_ms=1_790_000_000_001,
        store_host=bytes(range(hosts[1])),
        reconsume_times=2,
        prepared_offset=11,
        physical_offset=1 << 40,
    )
    raw = encode_record(record, with_crc=with_crc)
    decoded = decode_record(raw, 0, 1 << 40)
    if with_crc:
        assert decoded.properties[:-20] == record.properties
        decoded = Record(**(vars(decoded) | {"properties": decoded.properties[:-20]}))
    assert decoded == record


def test_integrity_property_has_ten_digits_lowest_first_over_the_bytes_before():
    raw = encode_record(make_record(), with_crc=True)
    assert raw[-20:-11] == b"__CRC32#\x01"
    assert raw[-1] == 2
    assert int(raw[-11:-1][::-1]) == zlib.crc32(raw[:-20]) & 0x7FFFFFFF


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
