from __future__ import annotations

import pytest

pytest.importorskip("pyarrow")

from spark_analytics import dispatch_groups
from spark_analytics.dispatch_groups import DispatchGroups
from spark_analytics.message_columns import MessageColumns
from spark_analytics.options import ReadOptions
from spark_analytics.schema import columns_of
from tests.spark_analytics.test_message_columns import batch_of, dispatch

COLUMNS = columns_of(ReadOptions("x", view="dispatches"))


def add(groups, *rows, names_of=lambda _: []):
    batch = batch_of(*rows)
    groups.add(MessageColumns(batch, 0, names_of, range(batch.count)))


def taken(groups):
    return [row for batch in groups.take_batches(COLUMNS) for row in batch.to_pylist()]


def test_equal_dispatches_are_one_row_across_batches():
    groups = DispatchGroups()
    add(groups, (dispatch("a,b", "0,0"), b"12"), (dispatch("a,b", "7,9"), b"345"), (dispatch("b", "1"), b""))
    add(groups, (dispatch("a,b", "8,9"), b"6"), (b"", b"x"))
    rows = {tuple(row["queues"]): row for row in taken(groups)}
    assert {names: (row["messages"], row["body_bytes"], row["fanout"]) for names, row in rows.items()} == {
        ("a", "b"): (3, 6, 2),
        ("b",): (1, 0, 1),
        (): (1, 1, 0),
    }
    assert taken(groups) == []


def test_a_set_is_told_from_a_list_that_reads_the_same():
    groups = DispatchGroups()
    add(groups, (b"LMQ_SET\x0177\x02", b""), (dispatch("77"), b""), names_of=lambda _: [b"x", b"y"])
    assert sorted(row["queues"] for row in taken(groups)) == [["77"], ["x", "y"]]


def test_partial_sums_are_summed_up_when_they_are_many(monkeypatch):
    monkeypatch.setattr(dispatch_groups, "GROUP_ROWS_MAX", 4)
    groups = DispatchGroups()
    for _ in range(10):
        add(groups, (dispatch("a"), b""), (dispatch("b"), b""))
    assert not groups.is_full
    assert sorted((row["queues"], row["messages"]) for row in taken(groups)) == [(["a"], 10), (["b"], 10)]


def test_sums_that_stay_many_are_said_to_be(monkeypatch):
    monkeypatch.setattr(dispatch_groups, "GROUP_ROWS_MAX", 4)
    groups = DispatchGroups()
    add(groups, *[(dispatch(f"q{number}"), b"") for number in range(6)])
    assert groups.is_full
    assert len(taken(groups)) == 6


def test_long_lists_are_spread_over_batches(monkeypatch):
    monkeypatch.setattr(dispatch_groups, "_QUEUES_A_BATCH_MAX", 5)
    groups = DispatchGroups()
    add(groups, *[(dispatch(",".join(f"q{number}-{k}" for k in range(3))), b"") for number in range(4)])
    batches = list(groups.take_batches(COLUMNS))
    assert [batch.num_rows for batch in batches] == [1, 1, 1, 1]
