"""How much of a database's answer is taken: rows are read one by one, and a long answer is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gateway.auth.backends.question import BackendError

FIELD_BYTES_MAX = 64 * 1024  # of one row at PostgreSQL, of one text at SQLite; chosen: far more than a user's rules
ANSWER_BYTES_MAX = 256 * 1024  # of all rows; chosen: four rows of the largest kind
VALUE_BYTES = 64  # what each value takes besides its text

Row = Sequence[object]


def read_rows(fetch: Callable[[], Row | None], rows_max: int) -> list[Row]:
    """Return the first rows.

    Args:
        fetch: Gives the next one, None where there is none.
        rows_max: How many at most.

    Raises:
        BackendError: They are too long, taken together.
    """
    rows: list[Row] = []
    left = ANSWER_BYTES_MAX
    while len(rows) < rows_max and (row := fetch()) is not None:
        left -= sum(map(_measure, row))
        if left < 0:
            raise BackendError(f"the query gives more than {ANSWER_BYTES_MAX} bytes")
        rows.append(row)
    return rows


def _measure(value: object) -> int:
    if isinstance(value, list | tuple):
        return VALUE_BYTES + sum(map(_measure, value))
    return VALUE_BYTES + (len(value) if isinstance(value, str | bytes) else 0)
