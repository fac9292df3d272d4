from __future__ import annotations

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

import pyarrow as pa

from spark_analytics.facts import describe_devices, make_facts
from spark_analytics.options import ReadOptions
from spark_analytics.schema import arrow_schema, columns_of
from tests.support.fan_out_oracle import Sent, count_devices, random_messages

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(300)]
COLUMNS = ("device", "protocol", "born", "stored", "fanout", "record_bytes", "body_bytes", "dispatch_bytes")


def table_of(spark, messages: list[Sent]):
    rows = [
        {
            "device": sent.device,
            "protocol": sent.protocol,
            "born": (sent.stored_ms if sent.born_ms is None else sent.born_ms) * 1000,
            "stored": sent.stored_ms * 1000,
            "fanout": len(sent.queues),
            "record_bytes": sent.record_bytes,
            "body_bytes": sent.body_bytes,
            "dispatch_bytes": sent.dispatch_bytes,
        }
        for sent in messages
    ]
    schema = arrow_schema(columns_of(ReadOptions("x", columns=COLUMNS)))
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema))


def test_facts_of_parts_add_up_to_exact_percentiles(spark):
    messages = random_messages(8, 400)
    parts = [make_facts(table_of(spark, part), 500) for part in (messages[:150], messages[150:])]
    rows = {row["device"]: row.asDict() for row in describe_devices(parts[0].unionAll(parts[1])).collect()}
    expected = count_devices(messages)
    assert rows.keys() == expected.keys()
    for device, counted in expected.items():
        assert {name: rows[device][name] for name in counted} == counted


def test_windows_begin_at_whole_multiples_of_store_time(spark):
    messages = random_messages(8, 400)
    rows = make_facts(table_of(spark, messages), 500).collect()
    starts = {int(row["window_start"].timestamp() * 1000) for row in rows}
    assert starts == {sent.stored_ms // 500 * 500 for sent in messages}
    assert sum(row["skewed"] for row in rows) == 8


def test_bytes_beyond_32_bits_are_added_without_a_loss(spark):
    wide = tuple(f"q{number}" for number in range(3000))
    messages = [Sent("d", "t", wide, 1_790_000_000_000, 2_000_000_000, 10, 1000)] * 3
    (row,) = describe_devices(make_facts(table_of(spark, messages), 1000)).collect()
    assert row["copied_bytes"] == 3 * 3000 * (2_000_000_000 - 1000 + 4)
