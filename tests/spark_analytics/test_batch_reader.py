from __future__ import annotations

import random
from collections import Counter

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa

from core.errors import CorruptRecordError, DataFolderUnusableError
from core.store.reader import StoreReader
from spark_analytics import partitions
from spark_analytics.batch_reader import read_batches
from spark_analytics.options import ReadOptions
from spark_analytics.partitions import LogRange, plan_read
from spark_analytics.schema import MESSAGE_COLUMNS, arrow_schema, columns_of
from tests.support.fan_out_oracle import Sent, count_queues, random_messages
from tests.support.log_builder import read_plainly, sent_as_stored, small_settings, write_log

ALL = tuple(column.name for column in MESSAGE_COLUMNS)


def read(folder, **options):
    wanted = ReadOptions(str(folder), **options)
    ranges = plan_read(StoreReader.open(folder), wanted)
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


def damage(folder, physical_offset, mask=0xFF):
    path = min((folder / "commitlog").iterdir())
    data = bytearray(path.read_bytes())
    data[physical_offset + 90] ^= mask
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


def test_a_segment_is_read_by_several_tasks_and_each_record_once(folder, monkeypatch):
    whole = read(folder, columns=ALL)
    monkeypatch.setattr(partitions, "TASK_BYTES_MIN", 5_000)
    parts = plan_read(StoreReader.open(folder), ReadOptions(str(folder), tasks_per_segment=4))
    segments = StoreReader.open(folder).segments()
    assert len(parts) > 3 * len(segments)
    assert read(folder, columns=ALL, tasks_per_segment=4).equals(whole)
    sums = read(folder, view="dispatches", tasks_per_segment=4)
    assert sum(sums["messages"].to_pylist()) == whole.num_rows


def test_offsets_are_half_open_and_fix_what_is_read(folder):
    phys = read(folder, columns=("phys",))["phys"].to_pylist()
    part = read(folder, columns=("phys",), starting_offset=phys[20], ending_offset=phys[400])
    assert part["phys"].to_pylist() == phys[20:400]


def wipe(folder, start, end):
    path = min((folder / "commitlog").iterdir())
    data = bytearray(path.read_bytes())
    data[start:end] = bytes(end - start)
    path.write_bytes(data)


DAMAGE = ("damage", "damaged_from", "damaged_until", "messages", "fanout")


@pytest.mark.parametrize("is_known", [True, False])
def test_a_damaged_set_costs_dispatches_at_most_and_not_the_read(tmp_path, is_known):
    wide = tuple(f"%LMQ%wide{number:03d}" for number in range(40))
    log = [Sent("d", "t", wide, 1_000 + number, 0, 30, 0, "mqtt") for number in range(9)]
    write_log(tmp_path, log, small_settings(inline_dispatch_bytes=100))
    first = next(read_plainly(tmp_path)).physical_offset
    if is_known:
        damage(tmp_path, 20, 0x04)
    else:
        wipe(tmp_path, 8, first)
    assert read(tmp_path, columns=("fanout",))["fanout"].to_pylist() == [40 if is_known else 0] * 9
    rows = read(tmp_path, view="dispatches", columns=DAMAGE).to_pylist()
    told = [tuple(row.values()) for row in rows if row["damage"]]
    if is_known:
        assert told == [("dispatch set, restored", 0, first, None, None)]
    else:
        assert told == [("dispatch set", 0, first, None, None), ("dispatch set", 0, None, 9, None)]
    assert sum(row["messages"] for row in rows if not row["damage"]) == 9


def test_what_is_skipped_is_told(tmp_path):
    write_log(tmp_path, random_messages(1, 30), small_settings())
    records = list(read_plainly(tmp_path))
    damage(tmp_path, records[7].physical_offset)
    with pytest.raises(CorruptRecordError, match=f"up to {records[8].physical_offset} are damaged"):
        read(tmp_path, view="dispatches")
    rows = read(tmp_path, view="dispatches", columns=DAMAGE, skip_bad_records=True).to_pylist()
    (told,) = [row for row in rows if row["damage"]]
    assert told["damage"] == "record"
    assert (told["damaged_from"], told["damaged_until"]) == (records[7].physical_offset, records[8].physical_offset)


def test_a_missing_segment_fails_with_its_positions_or_is_left_out(tmp_path):
    write_log(tmp_path, random_messages(9, 700), small_settings())
    before = read(tmp_path, columns=("phys",))["phys"].to_pylist()
    (tmp_path / "commitlog" / f"{65_536:020d}").unlink()
    with pytest.raises(DataFolderUnusableError, match=f"{65_536:020d} is missing: positions 65536 to 131072"):
        read(tmp_path)
    found = read(tmp_path, columns=("phys",), skip_bad_records=True)["phys"].to_pylist()
    assert found == [at for at in before if not 65_536 <= at < 131_072]
    assert read(tmp_path, columns=("phys",), ending_offset=65_536)["phys"].to_pylist() == [
        at for at in before if at < 65_536
    ]


def test_a_log_that_ends_before_what_was_confirmed_fails_with_its_positions(tmp_path):
    write_log(tmp_path, random_messages(9, 700), small_settings())
    info = StoreReader.open(tmp_path).segments()[-1]
    path = max((tmp_path / "commitlog").iterdir())
    with path.open("r+b") as file:
        file.truncate(4_096)
    with pytest.raises(DataFolderUnusableError, match=f"positions {info.base + 4096} to {info.end}"):
        read(tmp_path)


def test_positions_that_are_not_there_are_named(folder, tmp_path):
    with pytest.raises(DataFolderUnusableError, match="the log ends before it: positions"):
        read(folder, ending_offset=1 << 40)
    write_log(tmp_path, random_messages(9, 700), small_settings())
    (tmp_path / "commitlog" / ("0" * 20)).unlink()
    with pytest.raises(DataFolderUnusableError, match="not kept any more: positions 100 to 65536"):
        read(tmp_path, starting_offset=100)


def test_a_read_goes_on_where_the_last_row_of_the_one_before_ends(folder):
    table = read(folder, columns=("phys", "record_bytes", "segment"))
    phys, sizes, segments = (table.column(name).to_pylist() for name in ("phys", "record_bytes", "segment"))
    ends_of_segments = [at for at in range(len(phys) - 1) if segments[at] != segments[at + 1]]
    assert ends_of_segments
    for last in (0, 5, 300, *ends_of_segments, len(phys) - 1):
        rest = read(folder, columns=("phys",), starting_offset=phys[last] + sizes[last])
        assert rest.column("phys").to_pylist() == phys[last + 1 :]
