from __future__ import annotations

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

from spark_analytics import partitions
from spark_analytics.options import OptionError, ReadOptions, StreamRefusedError
from spark_analytics.source import LmqDataSource, LogReader
from tests.support.fan_out_oracle import random_messages
from tests.support.log_builder import read_plainly, sent_as_stored, small_settings, write_log

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def messages():
    return random_messages(4, 600)


@pytest.fixture(scope="module")
def folder(messages, tmp_path_factory):
    made = tmp_path_factory.mktemp("log")
    write_log(made, messages, small_settings())
    return made


def test_options_are_checked_before_anything_is_read(folder):
    with pytest.raises(OptionError, match="not a folder"):
        LogReader(ReadOptions(str(folder / "missing"))).partitions()
    with pytest.raises(OptionError, match="no column"):
        LmqDataSource({"path": str(folder), "columns": "colour"}).schema()


def test_each_segment_is_a_partition_or_several(folder, monkeypatch):
    segments = [path for path in (folder / "commitlog").iterdir() if path.stat().st_size]
    assert len(LogReader(ReadOptions(str(folder))).partitions()) == len(segments)
    monkeypatch.setattr(partitions, "TASK_BYTES_MIN", 10_000)
    parts = LogReader(ReadOptions(str(folder), tasks_per_segment=3)).partitions()
    assert 2 * len(segments) < len(parts) <= 3 * len(segments)


def test_a_stream_is_refused_by_who_did_not_open_the_session_too(folder):
    with pytest.raises(StreamRefusedError):
        LmqDataSource({"path": str(folder)}).streamReader(None)


def test_spark_sees_each_record_once(spark, folder):
    table = spark.read.format("lmq").option("path", str(folder)).load()
    found = [row.phys for row in table.select("phys").collect()]
    assert sorted(found) == [record.physical_offset for record in read_plainly(folder)]


def test_a_schema_of_the_callers_picks_the_columns(spark, folder, messages):
    wanted = "device string, queues array<string>, properties map<string,string>"
    table = spark.read.format("lmq").schema(wanted).option("path", str(folder)).load()
    rows = table.collect()
    assert table.columns == ["device", "queues", "properties"]
    assert sorted((row.device or "", *(row.queues or ())) for row in rows) == sorted(
        (sent.device or "", *sent.queues) for sent in messages
    )
    assert {row.properties["LMQ_PROTOCOL"] for row in rows} == {"mqtt", "amqp"}


def test_sql_over_the_other_view(spark, folder, messages):
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW sums USING lmq OPTIONS (path '{folder}', view 'dispatches')")
    (row,) = spark.sql(
        "SELECT sum(messages) AS n, sum(fanout * messages) AS d, sum(body_bytes) AS b FROM sums"
    ).collect()
    sent = sent_as_stored(folder, messages)
    assert (row.n, row.d, row.b) == (
        len(sent), sum(len(one.queues) for one in sent), sum(one.body_bytes for one in sent),
    )  # fmt: skip
