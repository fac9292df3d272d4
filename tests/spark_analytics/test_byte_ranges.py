from __future__ import annotations

import datetime as dt

import pytest

pytest.importorskip("pyarrow")

import numpy as np

from spark_analytics.byte_ranges import ByteRanges, ints, moments, text_lists


def ranges(buf, *pairs):
    return ByteRanges(
        buf, np.array([start for start, _ in pairs], np.int32), np.array([end for _, end in pairs], np.int32)
    )


def test_a_record_without_the_range_is_null_and_an_empty_one_is_empty():
    found = ranges(b"-abc,d", (1, 4), (0, 0), (4, 4), (3, 6))
    assert found.to_text().to_pylist() == ["abc", None, "", "c,d"]
    assert found.sizes().tolist() == [3, 0, 0, 3]
    assert found.count_items().tolist() == [1, 0, 0, 2]


def test_what_is_no_utf8_is_replaced_and_the_rest_kept():
    assert ranges(b"-\xffok\xc3\xa9", (1, 2), (2, 6), (0, 0)).to_text().to_pylist() == ["\ufffd", "ok\u00e9", None]


def test_moments_are_exact_milliseconds():
    (at,) = moments(np.array([1_790_000_000_123], np.int64)).to_pylist()
    assert at == dt.datetime(2026, 9, 21, 14, 13, 20, 123_000, dt.UTC)


def test_lists_of_text_keep_empty_lists():
    assert text_lists([[b"a", b"b"], [], [b"\xff"]]).to_pylist() == [["a", "b"], [], ["\ufffd"]]


def test_a_column_shares_memory_and_keeps_it_alive():
    assert ints(np.arange(3, dtype=np.int32) + 1).to_pylist() == [1, 2, 3]
