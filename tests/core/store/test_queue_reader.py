from __future__ import annotations

from array import array

import pytest

from core.message import StoredBatch
from core.store.queue_reader import read_record
from core.store.record_codec import encode_record
from tests.support.store import light, make_record, open_store, publish, read_queue


@pytest.fixture
def data_dir(tmp_path):
    """Two hundred messages in a few segments, whose 51st record is damaged, in a folder that was closed."""
    store = open_store(tmp_path)
    route = store.make_route(b"T", 0, b"", light("a"))
    batch = publish(store, route, *(b"%03d" % k + b"x" * 900 for k in range(200)))
    store.close()
    place = batch.physical_offset[50]
    damage(tmp_path, place + 95)
    return tmp_path


def damage(data_dir, physical_offset):
    size = 64 * 1024
    path = data_dir / "commitlog" / f"{physical_offset // size * size:020d}"
    data = bytearray(path.read_bytes())
    data[physical_offset % size] ^= 0x40
    path.write_bytes(data)


def test_damaged_record_is_never_given_and_the_rest_is(data_dir):
    store = open_store(data_dir)
    found = read_queue(store, b"%LMQ%a")
    assert [offset for offset, _ in found] == [k for k in range(200) if k != 50]
    into = StoredBatch(4)
    assert store.read(store.find_queue(b"%LMQ%a"), 50, into, 1, 1) == 1
    assert into.queue_offset[0] == 51
    offsets = array("q", [49, 50, 51])
    done = 0
    seen = []
    while done < 3:
        done += store.read_offsets(store.find_queue(b"T/0"), offsets[done:], 3 - done, into)
        seen += into.queue_offset[: into.count]
    assert seen == [49, 51]
    store.close()


def test_last_entry_that_is_damaged_is_passed_by_next_offset(tmp_path):
    store = open_store(tmp_path)
    batch = publish(store, store.make_route(b"T", 0, b"", []), *(b"x" * 900,) * 100)
    store.close()
    damage(tmp_path, batch.physical_offset[20] + 90)
    store = open_store(tmp_path)
    into = StoredBatch(4)
    assert not store.read_at(batch.physical_offset[20], into)
    assert store.read_at(batch.physical_offset[21], into)
    assert into.queue_offset[0] == -1
    assert store.read(store.find_queue(b"T/0"), 100, into, 4, 1) == 0
    assert into.next_offset == 100
    store.close()


def test_times_are_searched_past_damage(data_dir):
    store = open_store(data_dir)
    assert store.offset_at_time(store.find_queue(b"T/0"), 1) == 0
    assert store.offset_at_time(store.find_queue(b"T/0"), 1 << 50) == 200
    assert store.offset_at_time(store.find_queue(b"T/0"), 1 << 50, upper=True) == 199
    store.close()


def test_copied_record_reads_as_it_did_in_the_log():
    raw = encode_record(make_record(physical_offset=1 << 35, body=b"kept"), with_crc=True)
    into = StoredBatch(1)
    assert read_record(raw, into)
    assert bytes(into.buf[into.body_start[0] : into.body_end[0]]) == b"kept"
    assert not read_record(raw[:50], into)
    assert not read_record(raw[:-1], into)
    assert into.count == 0
