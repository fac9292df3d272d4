from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")
pytest.importorskip("matplotlib")

import pyarrow.parquet as pq

from core.errors import DataFolderUnusableError
from core.store.message_store import MessageStore
from spark_analytics.jobs import device_fan_out
from spark_analytics.jobs.device_fan_out import ReportFailedError, choose_window_ms, read_extent, run
from spark_analytics.options import OptionError
from tests.support.fan_out_oracle import count_devices, count_queues, count_topics, random_messages
from tests.support.log_builder import read_plainly, sent_as_stored, small_settings, write_log
from tests.support.store import give_back


def table_of(path, key):
    rows = {row[key]: row for row in pq.read_table(path).to_pylist()}
    assert len(rows) == pq.read_table(path).num_rows
    return rows


@pytest.mark.timeout(300)
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_every_number_is_that_of_a_plain_count(tmp_path):
    messages = random_messages(6, 900)
    write_log(tmp_path / "data", messages, small_settings(inline_dispatch_bytes=400))
    sent = sent_as_stored(tmp_path / "data", messages)
    paths = run(tmp_path / "data", tmp_path / "out")

    devices = table_of(paths.devices, "device")
    counted = count_devices(sent)
    assert devices.keys() == counted.keys()
    for device, expected in counted.items():
        assert {name: devices[device][name] for name in expected} == expected
    queues = table_of(paths.queues, "queue")
    assert {queue: (row["messages"], row["copied_bytes"]) for queue, row in queues.items()} == count_queues(sent)
    topics = table_of(paths.topics, "topic")
    assert {topic: (row["messages"], row["dispatches"]) for topic, row in topics.items()} == count_topics(sent)

    told = json.loads(paths.json.read_text(encoding="utf-8"))
    assert told["totals"]["messages"] == 900
    assert told["totals"]["dispatches"] == sum(len(one.queues) for one in sent)
    assert told["quality"]["messages_with_wrong_clock"] == 18
    assert told["quality"]["other_log_bytes"] > 0
    assert "<svg" in paths.page.read_text(encoding="utf-8")


@pytest.mark.timeout(300)
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_of_a_log_with_gaps_what_is_left_is_counted(tmp_path):
    messages = [replace(sent, body_bytes=20_000) for sent in random_messages(7, 600)]
    settings = small_settings(segment_bytes=1 << 20, inline_dispatch_bytes=400, retention={"age_hours": 1})
    write_log(tmp_path / "data", messages, settings)
    (queue, _), *_ = Counter(queue for sent in messages for queue in set(sent.queues)).most_common()[-20:]
    store = MessageStore.open(tmp_path / "data", settings, now_ms=messages[-1].stored_ms)
    give_back(store, messages[-1].stored_ms + 10 * 3_600_000, (store.find_queue(queue.encode()), 0))
    assert store.retention.bytes_punched > 0
    store.close()
    sent = sent_as_stored(tmp_path / "data", messages)
    assert 0 < len(sent) < 600
    assert [one for one in sent if queue in one.queues]
    paths = run(tmp_path / "data", tmp_path / "out")
    queues = table_of(paths.queues, "queue")
    assert {queue: (row["messages"], row["copied_bytes"]) for queue, row in queues.items()} == count_queues(sent)
    devices = table_of(paths.devices, "device")
    counted = count_devices(sent)
    assert devices.keys() == counted.keys()
    for device, expected in counted.items():
        assert {name: devices[device][name] for name in expected} == expected
    told = json.loads(paths.json.read_text(encoding="utf-8"))
    assert told["totals"]["messages"] == len(sent)
    assert told["totals"]["dispatches"] == sum(len(one.queues) for one in sent)


@pytest.mark.timeout(300)
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_a_damaged_log_says_where_or_is_read_without_the_record(tmp_path):
    write_log(tmp_path / "data", random_messages(6, 50), small_settings())
    records = list(read_plainly(tmp_path / "data"))
    (path, *_) = sorted((tmp_path / "data" / "commitlog").iterdir())
    data = bytearray(path.read_bytes())
    data[records[9].physical_offset + 90] ^= 1
    path.write_bytes(data)
    with pytest.raises(ReportFailedError, match=f"corrupt record at {records[9].physical_offset}"):
        run(tmp_path / "data", tmp_path / "out")
    paths = run(tmp_path / "data", tmp_path / "out", skip_bad_records=True)
    told = json.loads(paths.json.read_text())
    start, end = records[9].physical_offset, records[10].physical_offset
    assert told["totals"]["messages"] == 49
    assert told["quality"]["skipped"] == [{"start": start, "end": end, "what": "record"}]
    assert told["quality"]["skipped_bytes"] == end - start
    assert f"positions {start} to {end} (record)" in paths.page.read_text(encoding="utf-8")


@pytest.mark.timeout(300)
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_what_is_written_while_a_report_is_made_is_in_none_of_its_tables(tmp_path, monkeypatch):
    messages = random_messages(6, 300)
    write_log(tmp_path / "data", messages[:200], small_settings())
    read_first = device_fan_out.read_extent

    def read_and_write(data_dir):
        extent = read_first(data_dir)
        write_log(data_dir, messages[200:], small_settings())
        return extent

    monkeypatch.setattr(device_fan_out, "read_extent", read_and_write)
    paths = run(tmp_path / "data", tmp_path / "out")
    assert sum(row["messages"] for row in table_of(paths.devices, "device").values()) == 200
    assert sum(row["messages"] for row in table_of(paths.topics, "topic").values()) == 200


def test_a_log_of_which_a_part_is_missing_is_refused_before_spark_is_started(tmp_path):
    write_log(tmp_path / "data", random_messages(6, 900), small_settings())
    (tmp_path / "data" / "commitlog" / f"{65_536:020d}").unlink()
    with pytest.raises(DataFolderUnusableError, match="positions 65536 to 131072"):
        run(tmp_path / "data", tmp_path / "out")
    assert [one.start for one in read_extent(tmp_path / "data").missing] == [65_536]


@pytest.mark.timeout(300)
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_an_empty_log_makes_an_empty_report(tmp_path):
    write_log(tmp_path / "data", [], small_settings())
    paths = run(tmp_path / "data", tmp_path / "out")
    assert json.loads(paths.json.read_text())["totals"]["messages"] == 0


@pytest.mark.parametrize(
    ("said", "line"),
    [
        (
            "Aborted\nTraceback (most recent call last):\ncore.errors.CorruptRecordError: corrupt record at 7: x\n\tat",
            "corrupt record at 7: x",
        ),
        ("An error occurred while calling o1.parquet.\n: java.io.IOException: no chmod\n\tat java.base", "no chmod"),
        ("something else\nand more", "something else"),
        ("", "ValueError"),
    ],
)
def test_a_failure_is_told_in_one_line(said, line):
    assert str(ReportFailedError(ValueError(said))) == line


def test_a_folder_that_is_none_or_holds_no_log_is_refused(tmp_path):
    with pytest.raises(OptionError, match="is not a folder"):
        read_extent(tmp_path / "missing")
    with pytest.raises(DataFolderUnusableError):
        read_extent(tmp_path)


def test_the_extent_is_that_of_the_records(tmp_path):
    messages = random_messages(6, 900)
    write_log(tmp_path, messages, small_settings())
    extent = read_extent(tmp_path)
    records = list(read_plainly(tmp_path))
    assert (extent.first_store_ms, extent.last_store_ms) == (messages[0].stored_ms, messages[-1].stored_ms)
    assert extent.end == records[-1].physical_offset + records[-1].record_bytes
    assert extent.segment_count > 1
    assert extent.log_bytes >= sum(record.record_bytes for record in records)


@pytest.mark.parametrize(
    ("covered_s", "window_s"), [(0, 1), (30, 1), (89, 1), (90, 2), (3600, 60), (86_400, 3600), (10**9, 604_800)]
)
def test_windows_are_as_short_as_can_be_drawn(covered_s, window_s):
    assert choose_window_ms(5_000, 5_000 + covered_s * 1000) == window_s * 1000
