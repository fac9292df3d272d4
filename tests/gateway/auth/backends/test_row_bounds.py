from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from gateway.auth.backends.question import BackendError
from gateway.auth.backends.row_bounds import ANSWER_BYTES_MAX, read_rows

values = st.none() | st.integers() | st.text(max_size=50) | st.binary(max_size=50) | st.lists(st.text(), max_size=5)


@given(st.lists(st.lists(values, max_size=5), max_size=20), st.integers(0, 25))
def test_first_rows_are_read_and_no_more(rows, rows_max):
    left = iter(rows)
    assert read_rows(lambda: next(left, None), rows_max) == rows[:rows_max]
    assert list(left) == rows[rows_max:]


@pytest.mark.parametrize("value", ["x" * 10_000, b"x" * 10_000, ["x" * 5_000, "y" * 5_000], (None,) * 200])
def test_rows_without_end_are_none_as_soon_as_they_are_too_long(value):
    count = 0

    def fetch():
        nonlocal count
        count += 1
        return ("name", value)

    with pytest.raises(BackendError, match=f"more than {ANSWER_BYTES_MAX} bytes"):
        read_rows(fetch, 1 << 30)
    assert count <= ANSWER_BYTES_MAX // 10_000 + 1
    assert read_rows(fetch, 3) == [("name", value)] * 3
