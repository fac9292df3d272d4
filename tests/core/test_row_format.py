from __future__ import annotations

from core.row_format import FIRST, UNSAID, RowFormat


def test_a_value_goes_through_the_steps_from_its_version_on():
    form = RowFormat(3, {0: lambda value: value + b"0", 2: lambda value: value + b"2"})
    assert [form.upgrade(version, b"x") for version in range(4)] == [b"x02", b"x2", b"x2", b"x"]


def test_a_table_without_steps_takes_its_values_as_they_are():
    assert FIRST.upgrade(UNSAID, b"x") == b"x"
