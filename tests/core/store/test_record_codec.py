from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.errors import CorruptRecordError
from core.properties import decode_properties
from core.store.record import record_size
from core.store.record_codec import Record, decode_record
from tests.support.records import encode_record, entry_code, tags_code
from tests.support.store import make_record

GOLDEN = Path(__file__).parents[2] / "data" / "rocketmq-5.5.0"


def golden_records():
    log = (GOLDEN / "commitlog.bin").read_bytes()
    pos = 0
    while pos < len(log):
        yield pos, decode_record(log, pos, 0)
        pos += record_size(log, pos)


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


def test_delayed_record_has_the_time_at_which_it_is_due():
    record = make_record(topic=b"SCHEDULE_TOPIC_XXXX", properties=b"DELAY\x013\x02", store_ms=1_000)
    assert entry_code(record) == 11_000
    assert entry_code(make_record(properties=b"DELAY\x013\x02TAGS\x01a\x02")) == 97


def test_what_is_no_record_is_refused():
    with pytest.raises(CorruptRecordError) as caught:
        decode_record(bytes(200), 50, 1_000)
    assert caught.value.physical_offset == 1_050
