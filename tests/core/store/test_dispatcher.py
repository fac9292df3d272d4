from __future__ import annotations

import json
from array import array
from dataclasses import replace
from pathlib import Path

import pytest

from core.reserved import DISPATCH_SET_TOPIC
from core.store.dispatch_set import encode_names
from core.store.dispatcher import Dispatcher
from core.store.head_index import HOLE, HeadIndex
from core.store.queue_names import QueueNames
from core.store.record_codec import Record, decode_record
from tests.support.records import encode_record, entry_code

GOLDEN = Path(__file__).parents[2] / "data" / "rocketmq-5.5.0"


@pytest.fixture
def dispatcher(tmp_path):
    names = QueueNames.open(tmp_path / "queues")
    yield Dispatcher(names, HeadIndex(0))
    names.close()


def entries_of(dispatcher, key):
    """Return (first offset, positions) of a queue."""
    ref = dispatcher.names.find(key)
    head = dispatcher.head
    out = array("i", bytes(4 * 64))
    first = head.first_offset(ref)
    return first, list(out[: head.lookup(ref, first, 64, out)])


def log_of(*records):
    """Return the bytes of records made from (queue offset, properties), end to end, all of queue T/0."""
    log = b""
    for queue_offset, properties in records:
        log += encode_record(
            Record(
                topic=b"T",
                queue_id=0,
                queue_offset=queue_offset,
                physical_offset=len(log),
                body=b"b",
                properties=properties,
            ),
            with_crc=True,
        )
    return log


def lists(names, offsets):
    return b"INNER_MULTI_DISPATCH\x01%b\x02INNER_MULTI_QUEUE_OFFSET\x01%b\x02" % (names, offsets)


def test_official_log_gives_the_official_consume_queues(dispatcher):
    log = (GOLDEN / "commitlog.bin").read_bytes()
    assert dispatcher.run(log, 0, 0) == len(log)
    assert dispatcher.records == 15
    expected = json.loads((GOLDEN / "queues.json").read_text())
    for listed, entries in expected.items():
        key = listed.encode()
        first, positions = entries_of(dispatcher, key.removesuffix(b"/0") if key.startswith(b"%LMQ%") else key)
        assert (first, positions) == (0, [entry[0] for entry in entries]), listed
        for position, size, code in entries:
            record = decode_record(log, position, 0)
            assert len(encode_record(record, with_crc=False)) == size
            assert entry_code(record) == code
    light = {dispatcher.names.key(ref) for ref in range(dispatcher.names.count)}
    light = {key for key in light if key.startswith(b"%LMQ%") and entries_of(dispatcher, key)[1]}
    assert light == {b"%LMQ%" + name for name in (b"a", b"b", b"c", b"d", *(b"w%04d" % k for k in range(1000)))}


def test_same_queue_twice_in_one_list_gets_one_entry(dispatcher):
    dispatcher.run(log_of((0, lists(b"%LMQ%d,%LMQ%d", b"0,0")), (1, lists(b"%LMQ%d", b"1"))), 0, 0)
    first, positions = entries_of(dispatcher, b"%LMQ%d")
    assert (first, len(positions)) == (0, 2)


@pytest.mark.parametrize("offsets", [b"0,", b"", b"0", b",0", b"x,y", b"0,1,2"])
def test_list_without_an_offset_for_each_name_gives_no_entry(dispatcher, offsets):
    log = log_of((0, lists(b"%LMQ%a,plain", offsets)))
    assert dispatcher.run(log, 0, 0) == len(log)
    assert dispatcher.names.find(b"plain") == -1
    assert entries_of(dispatcher, b"%LMQ%a")[1] == []


def test_offsets_that_are_missing_stay_taken(dispatcher):
    dispatcher.run(log_of((5, lists(b"%LMQ%a", b"7")), (8, lists(b"%LMQ%a", b"9"))), 0, 0)
    first, positions = entries_of(dispatcher, b"T/0")
    assert first == 5
    assert positions[1:3] == [HOLE, HOLE]
    assert entries_of(dispatcher, b"%LMQ%a")[0] == 7
    assert entries_of(dispatcher, b"%LMQ%a")[1][1] == HOLE


def test_prepared_and_rolled_back_records_are_in_no_queue(dispatcher):
    log = b""
    for sys_flag in (0, 4, 8, 12):
        record = Record(
            topic=b"T",
            queue_id=0,
            queue_offset=0 if sys_flag in (0, 4, 12) else 1,
            physical_offset=len(log),
            body=b"",
            properties=b"",
            sys_flag=sys_flag,
        )
        log += encode_record(record, with_crc=True)
    dispatcher.run(log, 0, 0)
    assert entries_of(dispatcher, b"T/0")[1] == [0, 2 * len(log) // 4]


def test_message_of_an_unknown_set_is_counted_as_lost(dispatcher):
    dispatcher.run(log_of((0, b"LMQ_SET\x0112345\x02")), 0, 0)
    assert dispatcher.lost == 1
    assert entries_of(dispatcher, b"T/0")[1] == [0]


def test_a_message_on_the_topic_of_dispatch_sets_is_not_believed(dispatcher):
    """No door takes one; a log that has one from elsewhere, or from before, is not led astray by it."""
    body = b"".join(n.to_bytes(4, "big") for n in (1, 1, 9)) + encode_names([b"%LMQ%a"]) + b"\x63"
    forged = Record(
        topic=DISPATCH_SET_TOPIC,
        queue_id=0,
        queue_offset=0,
        physical_offset=0,
        body=body[:8] + (len(body) - 13).to_bytes(4, "big") + body[12:],
        properties=b"UNIQ_KEY\x01k\x02",
    )
    log = encode_record(forged, with_crc=True)
    second = replace(forged, topic=b"T", physical_offset=len(log), properties=b"LMQ_SET\x010\x02")
    log += encode_record(second, with_crc=True)
    assert dispatcher.run(log, 0, 0) == len(log)
    assert dispatcher.names.find(b"%LMQ%a") == -1
    assert (dispatcher.lost, dispatcher.records) == (1, 2)
    assert entries_of(dispatcher, DISPATCH_SET_TOPIC + b"/0")[1] == [0]


def test_damage_stops_the_run_where_it_stands(dispatcher):
    log = bytearray(log_of((0, b""), (1, b""), (2, b"")))
    size = len(log) // 3
    log[size + 60] ^= 1
    assert dispatcher.run(log, 0, 0) == size
    assert dispatcher.run(log, 0, 2 * size) == len(log)
    assert entries_of(dispatcher, b"T/0")[1] == [0, HOLE, 2 * size]


def test_names_share_what_their_neighbours_have():
    names = [b"%%LMQ%%dev%06d" % k for k in range(1000)]
    assert len(encode_names(names)) < 4 * len(names)
