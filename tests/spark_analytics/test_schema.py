from __future__ import annotations

import pytest

pytest.importorskip("pyarrow")

from spark_analytics.options import OptionError, ReadOptions
from spark_analytics.schema import (
    DISPATCH_COLUMNS,
    MESSAGE_COLUMNS,
    arrow_schema,
    columns_of,
    spark_ddl,
)


def names(options):
    return [column.name for column in columns_of(options)]


def test_nothing_asked_for_gives_the_statistics_columns():
    assert names(ReadOptions("d")) == [
        "phys", "topic", "device", "protocol", "stored", "fanout", "record_bytes", "body_bytes", "dispatch_bytes",
    ]  # fmt: skip


def test_bodies_come_when_asked_for():
    assert names(ReadOptions("d", include_body=True))[-1] == "body"


def test_named_columns_come_in_the_order_of_the_names():
    assert names(ReadOptions("d", columns=("queues", "phys"))) == ["queues", "phys"]


def test_the_other_view_has_its_own_columns():
    assert names(ReadOptions("d", view="dispatches")) == [
        column.name for column in DISPATCH_COLUMNS if not column.name.startswith("damage")
    ]


def test_an_unknown_column_is_refused():
    with pytest.raises(OptionError, match="no column 'tpoic'"):
        columns_of(ReadOptions("d", columns=("tpoic",)))


def test_spark_and_arrow_say_the_same():
    assert spark_ddl(MESSAGE_COLUMNS[:2]) == "`phys` bigint, `segment` bigint"
    assert spark_ddl(MESSAGE_COLUMNS).count("`") == 2 * len(MESSAGE_COLUMNS)
    assert all(field.nullable for field in arrow_schema(MESSAGE_COLUMNS))
