from __future__ import annotations

import random
from collections import Counter

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa

from core.errors import CorruptRecordError
from core.store.reader import StoreReader
from spark_analytics.batch_reader import read_batches
from spark_analytics.options import ReadOptions
from spark_analytics.partitions import LogRange, plan_ranges
from spark_analytics.schema import MESSAGE_COLUMNS, arrow_schema, columns_of
from tests.support.fan_out_oracle import Sent, count_queues, random_messages
from tests.support.log_builder import read_plainly, sent_as_stored, small_settings, write_log

ALL = tuple(column.name for column in MESSAGE_COLUMNS)


def read(folder, **options):
    wanted = ReadOptions(str(folder), **options)
    ranges = plan_ranges(StoreReader.open(folder).segments(), wanted.starting_ms, wanted.ending_ms)
    batches = [batch for part in ranges for batch in read_batches(wanted, part)]
    return pa.Table.from_batches(batches, arrow_schema(columns_of(wanted)))


@pytest.fixture(scope="module")
def messages():
    """A log with wide messages among others: their lists of queues are interned."""
    dice = random.Random(3)
    made = random_messages(9, 700)
    wide = tuple(f"%LMQ%wide{number:03d}" for number in range(150))
    for place in (5, 6, 300, 301, 699):
        own = made[place]
        made[place] = Sent(own.device, "wide", wide, own.stored_ms, 0, own.body_bytes, 0, own.protocol)
    foreign = made[50]
    made[50] = Sent(None, "t", (), foreign.stored_ms, 0, dice.randrange(20, 90), 0, "rocketmq")
    return made


@pytest.fixture(scope="module")
def folder(messages, tmp_path_factory):
    made = tmp_path_factory.mktemp("log")
    write_log(made, messages, small_settings(inline_dispatch_bytes=1000))
    return made


def test_the_log_spans_segments_and_holds_interned_sets(folder):
    assert len(StoreReader.open(folder).segments()) > 2
    assert any(b"LMQ_SET" in record.properties for record in read_plainly(folder))


def test_each_column_is_what_a_plain_reader_finds(folder, messages):
    table = read(folder, columns=ALL)
    records = list(read_plainly(folder))
    sent = sent_as_stored(folder, messages)
    assert table.num_rows == len(records) == len(messages)
    found = {name: table[name].to_pylist() for name in ALL}
    assert found["phys"] == [record.physical_offset for record in records]
    assert found["topic"] == [one.topic for one in sent]
    assert found["device"] == [one.device for one in sent]
    assert found["protocol"] == [one.protocol for one in sent]
    assert found["fanout"] == [len(one.queues) for one in sent]
    assert [sorted(queues or ()) for queues in found["queues"]] == [sorted(one.queues) for one in sent]
    for name in ("record_bytes", "body_bytes", "dispatch_bytes"):
        assert found[name] == [getattr(one, name) for one in sent], name
    assert found["body"] == [record.body for record in records]
    assert [{key.encode(): value.encode() for key, value in row} for row in found["properties"]] == [
        record.properties for record in records
    ]
    for name, at_ms in (("stored", "stored_ms"), ("born", "born_ms")):
        moments = table[name].cast(pa.int64()).to_pylist()
        assert moments == [getattr(record, at_ms) * 1000 for record in records], name
    assert all(base <= phys for base, phys in zip(found["segment"], found["phys"], strict=True))


def test_columns_come_as_asked_for_and_no_others(folder):
    assert read(folder, columns=("fanout", "phys")).schema.names == ["fanout", "phys"]


def test_store_times_are_half_open(folder, messages):
    first, last = messages[100].stored_ms, messages[400].stored_ms
    table = read(folder, columns=("stored",), starting_ms=first, ending_ms=last)
    assert table.num_rows == 300
    assert table["stored"].cast(pa.int64()).to_pylist()[0] == first * 1000


def test_the_sums_by_dispatch_are_those_of_a_plain_count(folder, messages):
    table = read(folder, view="dispatches")
    sent = sent_as_stored(folder, messages)
    by_queue, copied = Counter(), Counter()
    for row in table.to_pylist():
        assert row["fanout"] == len(row["queues"])
        for queue in row["queues"]:
            by_queue[queue] += row["messages"]
            copied[queue] += row["record_bytes"] - row["dispatch_bytes"] + 4 * row["messages"]
    assert {queue: (by_queue[queue], copied[queue]) for queue in by_queue} == count_queues(sent)
    assert sum(table["messages"].to_pylist()) == len(messages)
    assert sum(table["body_bytes"].to_pylist()) == sum(one.body_bytes for one in sent)


def test_a_set_of_queues_is_one_row_for_each_topic_and_segment(folder, messages):
    table = read(folder, view="dispatches")
    wide = [row for row in table.to_pylist() if row["fanout"] == 150]
    assert len(wide) < 5
    assert sum(row["messages"] for row in wide) == 5


def test_an_empty_log_has_no_rows(tmp_path):
    write_log(tmp_path, [], small_settings())
    assert read(tmp_path).num_rows == 0


def damage(folder, physical_offset):
    path = min((folder / "commitlog").iterdir())
    data = bytearray(path.read_bytes())
    data[physical_offset + 90] ^= 0xFF
    path.write_bytes(data)


def test_a_damaged_record_fails_or_is_left_out(tmp_path):
    write_log(tmp_path, random_messages(1, 30), small_settings())
    victim = list(read_plainly(tmp_path))[7].physical_offset
    damage(tmp_path, victim)
    with pytest.raises(CorruptRecordError) as caught:
        read(tmp_path)
    assert caught.value.physical_offset == victim
    found = read(tmp_path, skip_bad_records=True, columns=("phys",))["phys"].to_pylist()
    assert (len(found), victim in found) == (29, False)


def test_a_part_of_a_segment_can_be_read_by_itself(folder):
    phys = read(folder, columns=("phys",))["phys"].to_pylist()
    part = LogRange(0, phys[3], phys[9])
    (batch,) = read_batches(ReadOptions(str(folder), columns=("phys",)), part)
    assert batch["phys"].to_pylist() == phys[3:9]
