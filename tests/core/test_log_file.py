from __future__ import annotations

import pytest

from core.log_file import LogFile
from core.store.layout import segment_name


def file(**said):
    return LogFile(base=268_435_456, size=9, disk_bytes=9, first_ms=None, last_ms=None, is_newest=False, **said)


def test_it_is_called_as_the_store_calls_it():
    assert file(is_due=False).name == segment_name(268_435_456)


@pytest.mark.parametrize(
    ("is_due", "needed", "is_held"),
    [(False, None, False), (True, 3, True), (True, None, True), (True, 0, False)],
)
def test_it_is_held_where_its_time_is_over_and_something_in_it_is_needed_or_damaged(is_due, needed, is_held):
    assert file(is_due=is_due, needed=needed).is_held == is_held
