from __future__ import annotations

from array import array

import pytest

from core.message import StoredBatch
from gateway.rocketmq.picked_records import copied_bytes_max, copy_records, count_fitting, pick_all, pick_tagged


def records(*properties: bytes) -> StoredBatch:
    batch = StoredBatch(8)
    buf = b""
    for i, text in enumerate(properties):
        batch.record_start[i] = len(buf)
        batch.properties_start[i] = len(buf) + 2
        buf += b"r%d" % i + text
        batch.properties_end[i] = batch.record_end[i] = len(buf)
        buf += b"-"
    batch.buf = buf
    batch.count = len(properties)
    return batch


def test_records_are_picked_by_their_tag():
    batch = records(
        b"TAGS\x01a\x02", b"k\x01v\x02TAGS\x01b", b"XTAGS\x01a\x02", b"", b"TAGS\x01aa\x02", b"k\x01v\x02TAGS\x01a\x02"
    )
    picked = array("i", bytes(32))
    assert pick_tagged(batch, frozenset((b"a", b"b")), picked) == 3
    assert list(picked[:3]) == [0, 1, 5]
    assert pick_all(batch, picked) == 6


def test_records_are_copied_as_stored():
    batch = records(b"x", b"yy", b"z")
    picked = array("i", [0, 2, 0])
    for light_name in (b"", b"%LMQ%x"):
        out = bytearray(4 + copied_bytes_max(batch, picked, 2, light_name))
        assert copy_records(batch, picked, 2, light_name, out, 4) == 10
        assert out[:10] == b"\0\0\0\0r0xr2z"


def test_bodies_are_counted_as_long_as_they_fit_together():
    batch = records(b"", b"", b"")
    for i, size in enumerate((10, 0, 30)):
        batch.body_end[i] = size
    picked = array("i", [0, 1, 2])
    assert [count_fitting(batch, picked, 3, most) for most in (0, 9, 10, 39, 40)] == [0, 0, 2, 2, 3]
    assert count_fitting(batch, array("i", [2, 0]), 2, 29) == 0
    assert count_fitting(batch, picked, 2, 1 << 30) == 2


def copied_light(*properties: bytes, name: bytes = b"%LMQ%x", offset: int = 12) -> bytes:
    """Return what a pull of the light queue `name` gives of records with these properties."""
    texts = [b"...." + len(text).to_bytes(2, "big") + text for text in properties]
    batch = StoredBatch(8)
    batch.buf = b"".join(texts)
    batch.count = len(texts)
    end = 0
    for i, text in enumerate(texts):
        batch.record_start[i] = end
        batch.properties_start[i] = end + 6
        end += len(text)
        batch.properties_end[i] = batch.record_end[i] = end
        batch.queue_offset[i] = offset
    picked = array("i", range(8))
    out = bytearray(copied_bytes_max(batch, picked, len(texts), name))
    return bytes(out[: copy_records(batch, picked, len(texts), name, out, 0)])


CHECKSUM = b"__CRC32#\x010123456789\x02"
NUMBERED = b"INNER_MULTI_DISPATCH\x01%LMQ%x\x02INNER_MULTI_QUEUE_OFFSET\x0112\x02"


@pytest.mark.parametrize(
    ("stored", "given"),
    [
        (b"k\x01v\x02LMQ_SET\x0140\x02" + CHECKSUM, b"k\x01v\x02" + NUMBERED),
        (b"LMQ_SET\x0140\x02k\x01v\x02" + CHECKSUM, NUMBERED + b"k\x01v\x02"),
        (b"LMQ_SET\x0140\x02", NUMBERED),
    ],
)
def test_a_record_says_its_number_in_the_queue_for_the_list_that_is_stored_once(stored, given):
    record = (6 + len(given)).to_bytes(4, "big") + len(given).to_bytes(2, "big") + given
    assert copied_light(stored) == record
    other = b"...." + b"\x00\x04" + b"a\x01b\x02"
    assert copied_light(b"a\x01b\x02", stored, b"a\x01b\x02") == other + record + other


@pytest.mark.parametrize(
    "stored",
    [
        b"",
        b"k\x01LMQ_SET\x02" + CHECKSUM,
        b"XLMQ_SET\x0140\x02",
        b"LMQ_SET\x0140",
        b"k\x01" + b"v" * 32_720 + b"\x02LMQ_SET\x0140\x02" + CHECKSUM,
    ],
)
def test_a_record_without_a_list_that_is_stored_once_or_without_room_for_a_number_is_copied_as_stored(stored):
    assert copied_light(stored) == b"...." + len(stored).to_bytes(2, "big") + stored


def test_a_number_fits_however_large_it_is():
    copied = copied_light(b"LMQ_SET\x0140\x02", name=b"%LMQ%" + b"n" * 9_000, offset=2**63 - 1)
    assert copied.endswith(b"INNER_MULTI_QUEUE_OFFSET\x019223372036854775807\x02")
