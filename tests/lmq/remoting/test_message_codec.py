from __future__ import annotations

import json
import zlib
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from lmq.remoting.errors import RecordError
from lmq.remoting.message_codec import (
    BatchItem,
    decode_batch,
    decode_records,
    encode_batch,
    encode_properties_text,
    inflate_body,
)

GOLDEN = Path(__file__).parents[2] / "data" / "rocketmq-5.5.0"
LOG = (GOLDEN / "commitlog.bin").read_bytes()
STORED = [sent for sent in json.loads((GOLDEN / "sent.json").read_text()) if sent["response"]["code"] == 0]


def test_the_official_log_decodes_to_what_was_sent():
    records = list(decode_records(LOG))
    by_offset = {record.physical_offset: record for record in records}
    for sent in STORED:
        offset = int(sent["response"]["msgId"][-16:], 16)
        record = by_offset[offset]
        if record.topic == b"SCHEDULE_TOPIC_XXXX":
            continue
        if " bytes of " in sent["body"]:
            size, byte = sent["body"].split(" bytes of ")
            body = bytes.fromhex(byte) * int(size)
        else:
            body = bytes.fromhex(sent["body"])
        assert record.topic.decode() == sent["topic"]
        assert record.body == (zlib.decompress(body) if sent["sysFlag"] & 1 else body)
        assert (record.flag, record.born_ms) == (sent["flag"], sent["bornTimestamp"])
        assert record.queue_offset == int(sent["response"]["queueOffset"])


def test_a_record_tells_its_numbers_in_light_queues():
    record = next(r for r in decode_records(LOG) if b"INNER_MULTI_QUEUE_OFFSET" in r.properties)
    names = record.properties[b"INNER_MULTI_DISPATCH"].split(b",")
    offsets = record.properties[b"INNER_MULTI_QUEUE_OFFSET"].split(b",")
    assert record.light_offset(names[0]) == int(offsets[0])
    assert record.light_offset(b"%LMQ%another") is None


@given(st.integers(0, 4000), st.integers(0, 255))
def test_a_damaged_log_decodes_or_is_an_error(position, value):
    damaged = bytearray(LOG[:4001])
    damaged[position] = value
    try:
        list(decode_records(bytes(damaged)))
    except RecordError:
        return


@given(st.binary(max_size=300))
def test_any_bytes_are_records_or_an_error(data):
    try:
        list(decode_records(data))
    except RecordError:
        return


def test_a_wrong_check_sum_is_an_error():
    first = bytearray(LOG[: int.from_bytes(LOG[:4], "big")])
    first[88] ^= 1
    with pytest.raises(RecordError, match="check sum"):
        list(decode_records(bytes(first)))


def test_bodies_are_inflated_up_to_a_limit():
    body = zlib.compress(b"x" * 1000)
    assert inflate_body(body, 0x301, 1000) == b"x" * 1000
    for bad, sys_flag, limit in (
        (body, 0x301, 999),
        (body[:-5], 0x301, 1000),
        (b"junk", 0x301, 1000),
        (body, 0x201, 1000),
    ):
        with pytest.raises(RecordError):
            inflate_body(bad, sys_flag, limit)


ITEMS = st.lists(
    st.builds(
        BatchItem, flag=st.integers(-(2**31), 2**31 - 1), body=st.binary(max_size=20), properties=st.binary(max_size=20)
    ),
    max_size=5,
)


@given(ITEMS)
def test_a_batch_decodes_to_what_was_encoded(items):
    assert list(decode_batch(encode_batch(items))) == items


@given(ITEMS, st.data())
def test_a_damaged_batch_decodes_or_is_an_error(items, data):
    body = bytearray(encode_batch(items) + data.draw(st.binary(max_size=5)))
    if body:
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    try:
        list(decode_batch(bytes(body)))
    except RecordError:
        return


def test_properties_become_the_header_text():
    assert encode_properties_text({b"a": b"1", b"b": "ü".encode()}) == "a\x011\x02b\x01ü\x02"
